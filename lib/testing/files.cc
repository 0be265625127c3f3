// SPDX-License-Identifier: Apache-2.0
#include "testing/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr::testing {
namespace {

absl::Status FileError(const char* doing, const std::filesystem::path& file) {
  const int error = errno;
  return ErrnoStatus(error, fmt::format("{} '{}'", doing, file.string()));
}

/// Makes renames and removals in the directory of `file` durable.
absl::Status SyncDirectoryOf(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.parent_path();
  const UniqueFd fd(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return FileError("cannot open", directory);
  if (::fsync(fd.get()) != 0) return FileError("cannot sync", directory);
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, std::string_view content,
                      const std::filesystem::path& file) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return FileError("cannot write", file);
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd) != 0) return FileError("cannot sync", file);
  return absl::OkStatus();
}

absl::Status WriteThenRename(const std::filesystem::path& temporary,
                             const std::filesystem::path& file,
                             std::string_view content) {
  const UniqueFd fd(::open(temporary.c_str(),
                           O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return FileError("cannot create", temporary);
  DEVMGR_RETURN_IF_ERROR(WriteAll(fd.get(), content, temporary));
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    return FileError("cannot rename into place", file);
  }
  return absl::OkStatus();
}

}  // namespace

std::filesystem::path TemporaryNameOf(const std::filesystem::path& file) {
  return file.string() + ".tmp";
}

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& file,
                                     std::size_t limit) {
  // O_NONBLOCK: a FIFO must not hold us up.
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FileError("cannot open", file);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return FileError("cannot stat", file);
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgumentError("'{}' is not a regular file", file.string());
  }
  std::string content;
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("cannot read", file);
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > limit) {
      return ResourceExhaustedError("'{}' has more than {} bytes",
                                    file.string(), limit);
    }
  }
}

absl::Status WriteFileAtomically(const std::filesystem::path& file,
                                 std::string_view content) {
  const std::filesystem::path temporary = TemporaryNameOf(file);
  if (absl::Status written = WriteThenRename(temporary, file, content);
      !written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  return SyncDirectoryOf(file);
}

absl::Status RemoveFile(const std::filesystem::path& file) {
  bool removed = false;
  for (const std::filesystem::path& path : {TemporaryNameOf(file), file}) {
    if (::unlink(path.c_str()) == 0) {
      removed = true;
    } else if (errno != ENOENT) {
      return FileError("cannot remove", path);
    }
  }
  return removed ? SyncDirectoryOf(file) : absl::OkStatus();
}

absl::Status MakeDirectory(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return ErrnoStatus(error.value(), fmt::format("cannot make directory '{}'",
                                                  directory.string()));
  }
  return absl::OkStatus();
}

}  // namespace devmgr::testing
