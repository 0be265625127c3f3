// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <string_view>

namespace devmgr {

/// What to do about a file that is there already.
enum class IfPresent { kReplace, kFail };

/// Mode 0644 whatever the umask, or 0600.
enum class FileMode { kReadable, kPrivate };

/// When a file that was written is on disk: on return, or whenever the kernel
/// writes it. Then a kill loses nothing; after a power failure the file may be
/// the old one, cut short, or missing.
enum class Durability { kOnReturn, kLater };

/// Writes `content` into `file` in one step: others see the old file or the new
/// one. On return it is on disk, unless it need not be. Directories that are
/// missing are made, mode 0755. The temporary file beside it ends in
/// `.tmp`, which no reader of specs or manifests looks at; after an error there
/// is none, and `file` is as before.
///   AlreadyExists     it is there, with kFail
///   PermissionDenied  the directory is not ours to write
///   Unavailable       as the kernel says: the disk is full, ...
absl::Status WriteFileAtomically(const std::filesystem::path& file,
                                 std::string_view content,
                                 IfPresent if_present = IfPresent::kReplace,
                                 FileMode mode = FileMode::kReadable,
                                 Durability durability = Durability::kOnReturn);

/// Removes `file`, which need not be there, and what writers of it that were
/// killed have left beside it. On return that is on disk.
absl::Status RemoveFile(const std::filesystem::path& file);

}  // namespace devmgr
