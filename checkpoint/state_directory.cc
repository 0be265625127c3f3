// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state_directory.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <string>
#include <string_view>

#include "checkpoint/disk.h"
#include "checkpoint/keys.h"
#include "checkpoint/witness.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatText = "devmgr ledger format ";
/// Our own small files; what is longer is not ours.
constexpr std::size_t kMaxSmallFile = 4096;
/// From this one on the format file is sealed.
constexpr std::uint64_t kSealedFormat = 2;

absl::Status SystemError(int error_number, std::string_view verb,
                         const fs::path& path) {
  const std::string what = fmt::format("cannot {} '{}'", verb, path.string());
  switch (error_number) {
    case EROFS:
      return PermissionDeniedError("{}: {}", what, ErrnoText(error_number));
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return InvalidArgumentError("{}: {}", what, ErrnoText(error_number));
    default:
      return ErrnoStatus(error_number, what);
  }
}

absl::StatusOr<bool> Exists(const fs::path& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT) return false;
  return SystemError(errno, "look at", path);
}

absl::Status CheckIsDirectory(const fs::path& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    return SystemError(errno, "use state directory", path);
  }
  if (S_ISDIR(info.st_mode)) return absl::OkStatus();
  return InvalidArgumentError("state directory '{}' is not a directory",
                              path.string());
}

/// Makes what is missing of `path`, one directory after the other, each on disk
/// before there is anything in it.
absl::Status MakeDirectory(rocksdb::FileSystem& disk, const fs::path& path,
                           mode_t mode) {
  const fs::path parent =
      path.has_parent_path() ? path.parent_path() : fs::path(".");
  DEVMGR_ASSIGN_OR_RETURN(const bool found, Exists(path));
  if (found) {
    // Perhaps made by a process that was killed before it could sync. An older
    // one is not ours, and some file systems cannot sync at all.
    SyncDirectory(disk, parent).IgnoreError();
    return absl::OkStatus();
  }
  DEVMGR_RETURN_IF_ERROR(MakeDirectory(disk, parent, 0777));
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return SystemError(errno, "make directory", path);
  }
  return SyncDirectory(disk, parent);
}

absl::Status MakeStateDirectory(rocksdb::FileSystem& disk,
                                const fs::path& directory) {
  // The parent of `a/b/` is `a/b`.
  const fs::path path =
      directory.has_filename() ? directory : directory.parent_path();
  DEVMGR_RETURN_IF_ERROR(MakeDirectory(disk, path, 0700));
  return CheckIsDirectory(path);
}

absl::Status WriteAll(int fd, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError(errno, "write", path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmall(int fd, const fs::path& path) {
  std::string text(kMaxSmallFile, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::pread(fd, text.data() + size, text.size() - size,
                                static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "read", path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

// ---- the lock

fs::path LockPath(const fs::path& directory) { return directory / "lock"; }

std::string LockText() {
  return fmt::format("{} pid {}\n", ::program_invocation_short_name,
                     ::getpid());
}

/// `devmgrd (pid 123)` for what LockText wrote.
std::string HolderOf(int fd, const fs::path& path) {
  const auto text = ReadSmall(fd, path);
  const std::string unknown = "another process";
  if (!text.ok() || !text->ends_with('\n')) return unknown;
  const std::string line = text->substr(0, text->size() - 1);
  const std::size_t pid = line.rfind(" pid ");
  const bool printable = std::all_of(
      line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (pid == std::string::npos || !printable) return unknown;
  return fmt::format("{} (pid {})", line.substr(0, pid), line.substr(pid + 5));
}

absl::Status HeldError(int fd, const fs::path& directory) {
  return FailedPreconditionError("state directory '{}' is held by {}",
                                 directory.string(),
                                 HolderOf(fd, LockPath(directory)));
}

absl::StatusOr<FileLock> TakeLock(const fs::path& directory) {
  const fs::path path = LockPath(directory);
  UniqueFd fd(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return SystemError(errno, "open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError(errno, "lock", path);
    // Readers lock it shared and leave the text of the last holder.
    if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) {
      return FailedPreconditionError(
          "state directory '{}' is being read by another process",
          directory.string());
    }
    return HeldError(fd.get(), directory);
  }
  if (::ftruncate(fd.get(), 0) != 0) return SystemError(errno, "write", path);
  DEVMGR_RETURN_IF_ERROR(WriteAll(fd.get(), LockText(), path));
  return FileLock(std::move(fd));
}

/// Locks nothing when there is no lock file: a store that runs has one.
absl::StatusOr<FileLock> TakeLockForReading(const fs::path& directory) {
  const fs::path path = LockPath(directory);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) {
    if (errno == ENOENT) return FileLock(UniqueFd());
    return SystemError(errno, "open", path);
  }
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return FileLock(std::move(fd));
  if (errno != EWOULDBLOCK) return SystemError(errno, "lock", path);
  return HeldError(fd.get(), directory);
}

// ---- the format file

fs::path FormatPath(const fs::path& directory) { return directory / "format"; }

absl::StatusOr<std::uint64_t> ParseFormat(std::string_view text,
                                          const fs::path& path) {
  std::uint64_t version = 0;
  if (text.starts_with(kFormatText)) {
    const char* const begin = text.data() + kFormatText.size();
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(begin, end, version);
    if (error == std::errc() && rest != end && *rest == '\n') {
      const bool whole =
          version < kSealedFormat ? rest + 1 == end : Unseal(text).has_value();
      if (whole) return version;
    }
  }
  return DataLossError("'{}' is damaged", path.string());
}

/// What the format file says, a format that we can read; 0 without the file.
absl::StatusOr<std::uint64_t> CheckFormat(const fs::path& directory) {
  const fs::path path = FormatPath(directory);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) {
    if (errno == ENOENT) return 0;
    return SystemError(errno, "open", path);
  }
  DEVMGR_ASSIGN_OR_RETURN(const std::string text, ReadSmall(fd.get(), path));
  DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t version, ParseFormat(text, path));
  if (version >= kOldestFormat && version <= kFormatVersion) return version;
  return FailedPreconditionError(
      "the ledger in '{}' has format {}, this version of devmgr knows formats "
      "{} to {}; nothing was changed",
      directory.string(), version, kOldestFormat, kFormatVersion);
}

/// A directory that has no format file must have nothing that comes after it.
absl::Status CheckNothingWithoutFormat(const fs::path& directory) {
  for (const fs::path& path : {directory / "db", WitnessPath(directory)}) {
    DEVMGR_ASSIGN_OR_RETURN(const bool found, Exists(path));
    if (!found) continue;
    return DataLossError("'{}' is there, but '{}' is missing", path.string(),
                         FormatPath(directory).string());
  }
  return absl::OkStatus();
}

// ---- what is damaged

/// `path.damaged-<time>`, or with a number when that is taken.
absl::StatusOr<fs::path> UnusedName(const fs::path& path, std::int64_t now_ms) {
  const std::string name =
      fmt::format("{}.damaged-{:%Y%m%dT%H%M%SZ}", path.string(),
                  fmt::gmtime(static_cast<std::time_t>(now_ms / 1000)));
  fs::path unused = name;
  for (int number = 2;; ++number) {
    DEVMGR_ASSIGN_OR_RETURN(const bool used, Exists(unused));
    if (!used) return unused;
    unused = fmt::format("{}-{}", name, number);
  }
}

/// Moves a file or directory aside, if there is one; returns where it is.
absl::StatusOr<fs::path> KeepAside(rocksdb::FileSystem& disk,
                                   const fs::path& path, std::int64_t now_ms) {
  DEVMGR_ASSIGN_OR_RETURN(const bool found, Exists(path));
  if (!found) return fs::path();
  DEVMGR_ASSIGN_OR_RETURN(const fs::path kept, UnusedName(path, now_ms));
  DEVMGR_RETURN_IF_ERROR(Rename(disk, path, kept));
  return kept;
}

}  // namespace

absl::StatusOr<StateDirectory> StateDirectory::Hold(
    const fs::path& directory, std::shared_ptr<rocksdb::FileSystem> disk) {
  if (directory.empty()) {
    return InvalidArgumentError("no state directory is given");
  }
  DEVMGR_RETURN_IF_ERROR(MakeStateDirectory(*disk, directory));
  // Before the lock, because taking that writes; and again under it.
  const absl::Status format = CheckFormat(directory).status();
  if (!format.ok() && !absl::IsDataLoss(format)) return format;
  DEVMGR_ASSIGN_OR_RETURN(FileLock lock, TakeLock(directory));
  return Look(directory, std::move(disk), std::move(lock));
}

absl::StatusOr<StateDirectory> StateDirectory::HoldForReading(
    const fs::path& directory) {
  DEVMGR_RETURN_IF_ERROR(CheckIsDirectory(directory));
  DEVMGR_ASSIGN_OR_RETURN(FileLock lock, TakeLockForReading(directory));
  DEVMGR_ASSIGN_OR_RETURN(StateDirectory held,
                          Look(directory, /*disk=*/nullptr, std::move(lock)));
  DEVMGR_RETURN_IF_ERROR(held.damage());
  if (held.has_ledger()) return held;
  return NotFoundError("there is no ledger in '{}'", directory.string());
}

absl::StatusOr<StateDirectory> StateDirectory::Look(
    const fs::path& directory, std::shared_ptr<rocksdb::FileSystem> disk,
    FileLock lock) {
  StateDirectory held(directory, std::move(disk), std::move(lock));
  const auto format = CheckFormat(directory);
  if (format.ok()) {
    held.format_ = *format;
    if (*format == 0) held.damage_ = CheckNothingWithoutFormat(directory);
  } else if (absl::IsDataLoss(format.status())) {
    held.damage_ = format.status();
  } else {
    return format.status();
  }
  return held;
}

absl::Status StateDirectory::PrepareNewDatabase() {
  DEVMGR_ASSIGN_OR_RETURN(const bool found, Exists(new_database()));
  return found ? RemoveDirectory(*disk_, new_database()) : absl::OkStatus();
}

absl::Status StateDirectory::CommitNewDatabase() {
  DEVMGR_RETURN_IF_ERROR(SyncDirectory(*disk_, path_));
  return SetFormat(kFormatVersion);
}

absl::Status StateDirectory::SetFormat(std::uint64_t format) {
  if (format_ == format) return absl::OkStatus();
  const std::string text = fmt::format("{}{}\n", kFormatText, format);
  DEVMGR_RETURN_IF_ERROR(ReplaceFile(*disk_, FormatPath(path_), Seal(text)));
  DEVMGR_RETURN_IF_ERROR(SyncDirectory(*disk_, path_));
  format_ = format;
  return absl::OkStatus();
}

absl::Status StateDirectory::CheckInPlace() const {
  struct stat held {};
  struct stat found {};
  if (::fstat(lock_.fd(), &held) != 0)
    return SystemError(errno, "look at", path_);
  const bool same = ::stat(LockPath(path_).c_str(), &found) == 0 &&
                    found.st_dev == held.st_dev && found.st_ino == held.st_ino;
  if (same && ::stat((database() / "CURRENT").c_str(), &found) == 0) {
    return absl::OkStatus();
  }
  return UnavailableError(
      "the state directory '{}' was removed or replaced while it was in use; "
      "nothing is decided until it is back in its place or this process is "
      "started again",
      path_.string());
}

absl::Status StateDirectory::SettleDatabase() {
  DEVMGR_ASSIGN_OR_RETURN(const fs::path found, FindDatabase());
  if (found == database()) {
    // Left by a crash in ReplaceDatabase. Should the database be lost one day,
    // this must not be taken for it.
    DEVMGR_RETURN_IF_ERROR(PrepareNewDatabase());
  } else {
    DEVMGR_RETURN_IF_ERROR(Rename(*disk_, found, database()));
  }
  // Always: who renamed it, or the format file, may not have come this far.
  return SyncDirectory(*disk_, path_);
}

absl::StatusOr<fs::path> StateDirectory::ReplaceDatabase(
    const std::function<absl::Status(const fs::path&)>& write,
    std::int64_t now_ms) {
  DEVMGR_RETURN_IF_ERROR(SettleDatabase());
  DEVMGR_RETURN_IF_ERROR(PrepareNewDatabase());
  DEVMGR_RETURN_IF_ERROR(write(new_database()));
  if (absl::IsDataLoss(ReadWitness(*disk_, path_).status())) {
    DEVMGR_RETURN_IF_ERROR(
        KeepAside(*disk_, WitnessPath(path_), now_ms).status());
  }
  if (!damage_.ok()) {
    DEVMGR_RETURN_IF_ERROR(
        KeepAside(*disk_, FormatPath(path_), now_ms).status());
  }
  DEVMGR_RETURN_IF_ERROR(CommitNewDatabase());
  damage_ = absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(const fs::path kept,
                          KeepAside(*disk_, database(), now_ms));
  DEVMGR_RETURN_IF_ERROR(SyncDirectory(*disk_, path_));
  DEVMGR_RETURN_IF_ERROR(SettleDatabase());
  return kept;
}

absl::StatusOr<fs::path> StateDirectory::FindDatabase() const {
  for (const fs::path& path : {database(), new_database()}) {
    DEVMGR_ASSIGN_OR_RETURN(const bool found, Exists(path));
    if (found) return path;
  }
  return DataLossError("'{}' is missing", database().string());
}

}  // namespace devmgr::checkpoint
