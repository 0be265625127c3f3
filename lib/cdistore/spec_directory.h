// SPDX-License-Identifier: Apache-2.0
//
// The spec files of CDI directories, on disk.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <vector>

#include "cdi/spec.h"

namespace devmgr::cdistore {

/// Longest file that is read, and most files of one directory.
inline constexpr std::size_t kMaxSpecBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxSpecFiles = 10'000;

/// Reads all `*.json` and `*.yaml` of the directories, in order of name. A
/// missing directory is an empty one; no other trouble is fatal either, each is
/// told. Blocks for the disk.
cdi::SpecFiles ReadSpecFiles(
    const std::vector<std::filesystem::path>& directories);

/// What SetAside makes of a path. Its suffix hides the file from every reader.
std::filesystem::path AsidePath(const std::filesystem::path& file);

/// Renames a spec file to its AsidePath, unless it holds something else by
/// now. Replaces what was set aside from the same path before.
///   NotFound            the file is gone
///   FailedPrecondition  it is not what was read
absl::Status SetAside(const cdi::SpecFile& file);

}  // namespace devmgr::cdistore
