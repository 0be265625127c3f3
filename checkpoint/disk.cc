// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/disk.h"

#include <fmt/core.h>
#include <rocksdb/env.h>
#include <rocksdb/io_status.h>

#include <algorithm>
#include <memory>

#include "checkpoint/crc32c.h"
#include "checkpoint/rocksdb_config.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSealText = "crc32c ";
/// What is read at once: few calls, and it fits a processor's cache.
constexpr std::size_t kPiece = 128 * 1024;

absl::Status DiskError(const rocksdb::Status& status, std::string_view verb,
                       const fs::path& path) {
  return FromRocksDb(status,
                     fmt::format("cannot {} '{}'", verb, path.string()));
}

std::string SealLine(std::string_view text) {
  return fmt::format("{}{:08x}\n", kSealText, Crc32c(text));
}

}  // namespace

absl::Status SyncDirectory(rocksdb::FileSystem& disk, const fs::path& path) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  rocksdb::IOStatus status =
      disk.NewDirectory(path.string(), {}, &directory, nullptr);
  if (status.ok()) status = directory->Fsync({}, nullptr);
  return DiskError(status, "sync directory", path);
}

absl::Status Rename(rocksdb::FileSystem& disk, const fs::path& from,
                    const fs::path& to) {
  return DiskError(disk.RenameFile(from.string(), to.string(), {}, nullptr),
                   "move", from);
}

absl::Status RemoveDirectory(rocksdb::FileSystem& disk, const fs::path& path) {
  DEVMGR_ASSIGN_OR_RETURN(const auto names, NamesIn(disk, path));
  for (const std::string& name : names) {
    const fs::path entry = path / name;
    if (IsDirectory(disk, entry)) {
      DEVMGR_RETURN_IF_ERROR(RemoveDirectory(disk, entry));
    } else {
      DEVMGR_RETURN_IF_ERROR(DiskError(
          disk.DeleteFile(entry.string(), {}, nullptr), "remove", entry));
    }
  }
  return DiskError(disk.DeleteDir(path.string(), {}, nullptr), "remove", path);
}

absl::StatusOr<std::vector<std::string>> NamesIn(rocksdb::FileSystem& disk,
                                                 const fs::path& path) {
  std::vector<std::string> names;
  DEVMGR_RETURN_IF_ERROR(
      DiskError(disk.GetChildren(path.string(), {}, &names, nullptr),
                "read directory", path));
  std::erase(names, ".");
  std::erase(names, "..");
  std::sort(names.begin(), names.end());
  return names;
}

bool IsDirectory(rocksdb::FileSystem& disk, const fs::path& path) {
  bool is_directory = false;
  return disk.IsDirectory(path.string(), {}, &is_directory, nullptr).ok() &&
         is_directory;
}

absl::Status ReplaceFile(rocksdb::FileSystem& disk, const fs::path& path,
                         std::string_view text) {
  const fs::path draft = path.string() + ".new";
  if (auto status = DiskError(
          rocksdb::WriteStringToFile(&disk, std::string(text), draft.string(),
                                     /*should_sync=*/true),
          "write", draft);
      !status.ok()) {
    return status;
  }
  return Rename(disk, draft, path);
}

absl::StatusOr<bool> VisitFileIfAny(
    rocksdb::FileSystem& disk, const fs::path& path,
    const std::function<void(std::string_view)>& visit) {
  rocksdb::IOStatus status =
      disk.FileExists(path.string(), rocksdb::IOOptions(), nullptr);
  if (status.IsNotFound()) return false;
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  if (status.ok()) {
    status = disk.NewSequentialFile(path.string(), rocksdb::FileOptions(),
                                    &file, nullptr);
  }
  std::string space(kPiece, '\0');
  for (rocksdb::Slice piece("."); status.ok() && !piece.empty();) {
    status = file->Read(space.size(), rocksdb::IOOptions(), &piece,
                        space.data(), nullptr);
    if (status.ok()) visit({piece.data(), piece.size()});
  }
  if (!status.ok()) return DiskError(status, "read", path);
  return true;
}

absl::StatusOr<std::optional<std::string>> ReadFileIfAny(
    rocksdb::FileSystem& disk, const fs::path& path) {
  std::string bytes;
  DEVMGR_ASSIGN_OR_RETURN(
      const bool found, VisitFileIfAny(disk, path, [&](std::string_view piece) {
        bytes += piece;
      }));
  return found ? std::optional(std::move(bytes)) : std::nullopt;
}

std::string Seal(std::string_view text) {
  return std::string(text) + SealLine(text);
}

std::optional<std::string_view> Unseal(std::string_view sealed) {
  const std::size_t line = SealLine("").size();
  if (sealed.size() < line) return std::nullopt;
  const std::string_view text = sealed.substr(0, sealed.size() - line);
  if (sealed.substr(text.size()) != SealLine(text)) return std::nullopt;
  return text;
}

}  // namespace devmgr::checkpoint
