// SPDX-License-Identifier: Apache-2.0
//
// Files in the state directory that have to last over a power failure, on the
// file system of the database.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <rocksdb/file_system.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::checkpoint {

absl::Status SyncDirectory(rocksdb::FileSystem& disk,
                           const std::filesystem::path& path);

absl::Status Rename(rocksdb::FileSystem& disk,
                    const std::filesystem::path& from,
                    const std::filesystem::path& to);

/// Removes a directory with all that is in it.
absl::Status RemoveDirectory(rocksdb::FileSystem& disk,
                             const std::filesystem::path& path);

/// What is in a directory, sorted.
absl::StatusOr<std::vector<std::string>> NamesIn(
    rocksdb::FileSystem& disk, const std::filesystem::path& path);

bool IsDirectory(rocksdb::FileSystem& disk, const std::filesystem::path& path);

/// Puts `text` into a file at once: whoever opens it finds the old text or the
/// new one. Lasts with the next SyncDirectory. Uses `<path>.new`.
absl::Status ReplaceFile(rocksdb::FileSystem& disk,
                         const std::filesystem::path& path,
                         std::string_view text);

/// Gives a file to `visit`, a piece at a time. False: there is none.
absl::StatusOr<bool> VisitFileIfAny(
    rocksdb::FileSystem& disk, const std::filesystem::path& path,
    const std::function<void(std::string_view)>& visit);

/// All of a file; nothing when there is none.
absl::StatusOr<std::optional<std::string>> ReadFileIfAny(
    rocksdb::FileSystem& disk, const std::filesystem::path& path);

/// `text`, whole lines, with a last line that holds its checksum.
std::string Seal(std::string_view text);

/// What was sealed; nothing when a bit of it is not as it was.
std::optional<std::string_view> Unseal(std::string_view sealed);

}  // namespace devmgr::checkpoint
