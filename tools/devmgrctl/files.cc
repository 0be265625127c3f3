// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "environment.h"

namespace devmgr::ctl {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

absl::Status Failed(const char* doing, const std::string& path) {
  const int error = errno;
  const auto code = error == ENOENT ? absl::StatusCode::kNotFound
                    : error == EACCES || error == EPERM
                        ? absl::StatusCode::kPermissionDenied
                        : absl::StatusCode::kFailedPrecondition;
  return MakeError(code, fmt::format("{} '{}': {}", doing, path,
                                     std::generic_category().message(error)));
}

/// Closes a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status WriteAll(int fd, std::string_view content,
                      const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("cannot write", path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status SyncDirectoryOf(const std::string& path) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  const Descriptor fd(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) {
    return Failed("cannot sync", directory.string());
  }
  return absl::OkStatus();
}

absl::Status WriteThenRename(int fd, const std::string& temporary,
                             const std::string& path,
                             std::string_view content) {
  absl::Status status = WriteAll(fd, content, temporary);
  if (!status.ok()) return status;
  struct stat old {};
  if (::stat(path.c_str(), &old) == 0 &&
      ::fchmod(fd, old.st_mode & 07777) != 0) {
    return Failed("cannot set the mode of", temporary);
  }
  if (::fsync(fd) != 0) return Failed("cannot sync", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return Failed("cannot rename into place", path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  // O_NONBLOCK: a pipe must not hold us up.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) {
    return Failed("cannot read", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     fmt::format("'{}' is not a regular file", path));
  }
  std::string content;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("cannot read", path);
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > kMaxBytes) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition,
          fmt::format("'{}' has more than {} bytes", path, kMaxBytes));
    }
  }
}

absl::Status ReplaceFile(const std::string& path, std::string_view content) {
  std::string temporary = path + ".XXXXXX.tmp";
  const Descriptor fd(::mkostemps(temporary.data(), 4, O_CLOEXEC));
  if (fd.get() < 0) return Failed("cannot create", temporary);
  const absl::Status status =
      WriteThenRename(fd.get(), temporary, path, content);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return SyncDirectoryOf(path);
}

}  // namespace devmgr::ctl
