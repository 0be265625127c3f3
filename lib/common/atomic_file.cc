// SPDX-License-Identifier: Apache-2.0
#include "common/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

#include "common/status.h"
#include "common/unique_fd.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;

/// Of a temporary file: `FILE.XXXXXX.tmp`.
constexpr std::string_view kRandomPart = ".XXXXXX";
constexpr std::string_view kSuffix = ".tmp";

absl::Status Failed(const char* doing, const fs::path& path) {
  const int error = errno;
  return ErrnoStatus(error, fmt::format("{} '{}'", doing, path.string()));
}

absl::Status MakeDirectories(const fs::path& directory) {
  if (directory.empty() || ::mkdir(directory.c_str(), 0755) == 0 ||
      errno == EEXIST) {
    return absl::OkStatus();
  }
  if (errno != ENOENT) return Failed("cannot make directory", directory);
  DEVMGR_RETURN_IF_ERROR(MakeDirectories(directory.parent_path()));
  if (::mkdir(directory.c_str(), 0755) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return Failed("cannot make directory", directory);
}

/// Makes renames and removals in the directory of `file` durable.
absl::Status SyncDirectoryOf(const fs::path& file) {
  const fs::path directory =
      file.parent_path().empty() ? fs::path(".") : file.parent_path();
  const UniqueFd fd(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Failed("cannot open", directory);
  if (::fsync(fd.get()) != 0) return Failed("cannot sync", directory);
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, std::string_view content, const fs::path& file,
                      FileMode mode, Durability durability) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("cannot write", file);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  // The mode of the temporary file is 0600, less what the umask takes.
  if (::fchmod(fd, mode == FileMode::kPrivate ? 0600 : 0644) != 0) {
    return Failed("cannot set the mode of", file);
  }
  if (durability == Durability::kOnReturn && ::fsync(fd) != 0) {
    return Failed("cannot sync", file);
  }
  return absl::OkStatus();
}

absl::Status MoveIntoPlace(const std::string& temporary, const fs::path& file,
                           IfPresent if_present) {
  if (if_present == IfPresent::kReplace) {
    if (::rename(temporary.c_str(), file.c_str()) == 0) return absl::OkStatus();
    return Failed("cannot rename into place", file);
  }
  // As renameat2(RENAME_NOREPLACE), which not every file system has.
  if (::link(temporary.c_str(), file.c_str()) == 0) {
    ::unlink(temporary.c_str());
    return absl::OkStatus();
  }
  if (errno != EEXIST) return Failed("cannot link into place", file);
  return AlreadyExistsError("'{}' is there already", file.string());
}

bool IsTemporaryOf(const std::string& name, const std::string& file) {
  return name.size() == file.size() + kRandomPart.size() + kSuffix.size() &&
         name.starts_with(file + ".") && name.ends_with(kSuffix);
}

absl::Status RemoveLeftovers(const fs::path& file) {
  const fs::path directory =
      file.parent_path().empty() ? fs::path(".") : file.parent_path();
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  while (!error && entries != fs::directory_iterator()) {
    const fs::path path = entries->path();
    if (IsTemporaryOf(path.filename(), file.filename()) &&
        ::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return Failed("cannot remove", path);
    }
    entries.increment(error);
  }
  if (!error || error == std::errc::no_such_file_or_directory) {
    return absl::OkStatus();
  }
  return ErrnoStatus(error.value(),
                     fmt::format("cannot list '{}'", directory.string()));
}

}  // namespace

absl::Status WriteFileAtomically(const fs::path& file, std::string_view content,
                                 IfPresent if_present, FileMode mode,
                                 Durability durability) {
  DEVMGR_RETURN_IF_ERROR(MakeDirectories(file.parent_path()));
  std::string temporary =
      file.string() + std::string(kRandomPart) + std::string(kSuffix);
  const UniqueFd fd(::mkostemps(temporary.data(),
                                static_cast<int>(kSuffix.size()), O_CLOEXEC));
  if (!fd.valid()) return Failed("cannot create", temporary);
  absl::Status status =
      WriteAll(fd.get(), content, temporary, mode, durability);
  if (status.ok()) status = MoveIntoPlace(temporary, file, if_present);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  if (durability == Durability::kLater) return absl::OkStatus();
  return SyncDirectoryOf(file);
}

absl::Status RemoveFile(const fs::path& file) {
  DEVMGR_RETURN_IF_ERROR(RemoveLeftovers(file));
  if (::unlink(file.c_str()) == 0) return SyncDirectoryOf(file);
  return errno == ENOENT ? absl::OkStatus() : Failed("cannot remove", file);
}

}  // namespace devmgr
