// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace devmgr::testing {

/// The name under which `file` is written before it is renamed into place.
/// CDI readers ignore it: they look for `.json` and `.yaml` only.
std::filesystem::path TemporaryNameOf(const std::filesystem::path& file);

/// Content of a regular file.
///   NotFound           there is none
///   InvalidArgument    it is not a regular file
///   ResourceExhausted  it has more than `limit` bytes
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& file,
                                     std::size_t limit);

/// Replaces `file` in one step; on return it is on disk. On an error the old
/// content stays and no temporary file is left.
absl::Status WriteFileAtomically(const std::filesystem::path& file,
                                 std::string_view content);

/// Removes `file` and its temporary name; neither needs to be there. On return
/// the removal is on disk.
absl::Status RemoveFile(const std::filesystem::path& file);

/// Makes `directory` and its parents.
absl::Status MakeDirectory(const std::filesystem::path& directory);

}  // namespace devmgr::testing
