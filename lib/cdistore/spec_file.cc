// SPDX-License-Identifier: Apache-2.0
#include "cdistore/spec_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr::cdistore {
namespace {

namespace fs = std::filesystem;

/// More than a tick of the clock that file systems take times from.
constexpr std::int64_t kCoarseNs = 100'000'000;

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

std::int64_t Nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileSignature SignatureFrom(const struct stat& info) {
  return {info.st_dev,
          info.st_ino,
          info.st_mode,
          info.st_size,
          Nanoseconds(info.st_mtim),
          Nanoseconds(info.st_ctim)};
}

/// A change from now on shows in another signature.
bool IsSettled(const FileSignature& signature) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return Nanoseconds(now) - signature.changed_ns > kCoarseNs;
}

absl::Status CannotRead(int error, const fs::path& file) {
  return ErrnoStatus(error, fmt::format("cannot read '{}'", file.string()));
}

absl::Status CannotList(int error, const fs::path& directory) {
  return ErrnoStatus(
      error, fmt::format("cannot read directory '{}'", directory.string()));
}

absl::StatusOr<FileSignature> SignatureOfOpen(int fd, const fs::path& file) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return CannotRead(errno, file);
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgumentError("'{}' is not a regular file", file.string());
  }
  return SignatureFrom(info);
}

absl::Status TooLong(const fs::path& file, std::size_t max_bytes) {
  return ResourceExhaustedError("'{}' has more than {} bytes", file.string(),
                                max_bytes);
}

absl::StatusOr<std::string> ReadAll(int fd, const fs::path& file,
                                    std::size_t max_bytes) {
  std::string text;
  for (;;) {
    const std::size_t size = text.size();
    text.resize(size + kChunkBytes);
    const ssize_t got =
        ::pread(fd, text.data() + size, kChunkBytes, static_cast<off_t>(size));
    const int error = errno;
    text.resize(size + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got < 0 && error == EINTR) continue;
    if (got < 0) return CannotRead(error, file);
    if (got == 0) return text;
    if (text.size() > max_bytes) return TooLong(file, max_bytes);
  }
}

}  // namespace

bool IsSpecName(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".yaml");
}

absl::StatusOr<Listing> ListSpecs(const fs::path& directory, std::size_t most) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()),
                                                   ::closedir);
  if (stream == nullptr) return CannotList(errno, directory);
  Listing listing;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    if (!IsSpecName(entry->d_name)) continue;
    listing.names.emplace(entry->d_name);
    if (listing.names.size() <= most) continue;
    listing.names.erase(std::prev(listing.names.end()));
    ++listing.left_out;
  }
  if (errno != 0) return CannotList(errno, directory);
  return listing;
}

absl::StatusOr<FileSignature> SignatureOf(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return CannotRead(errno, file);
  return SignatureFrom(info);
}

absl::StatusOr<Reading> ReadSpecText(const fs::path& file,
                                     std::size_t max_bytes) {
  // O_NONBLOCK: a pipe must not hold us up.
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return CannotRead(errno, file);
  Reading reading;
  DEVMGR_ASSIGN_OR_RETURN(reading.signature, SignatureOfOpen(fd.get(), file));
  if (reading.signature.size > static_cast<std::int64_t>(max_bytes)) {
    return TooLong(file, max_bytes);
  }
  reading.settled = IsSettled(reading.signature);
  DEVMGR_ASSIGN_OR_RETURN(reading.text, ReadAll(fd.get(), file, max_bytes));
  DEVMGR_ASSIGN_OR_RETURN(const FileSignature after,
                          SignatureOfOpen(fd.get(), file));
  reading.settled = reading.settled && after == reading.signature;
  return reading;
}

}  // namespace devmgr::cdistore
