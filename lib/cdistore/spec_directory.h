// SPDX-License-Identifier: Apache-2.0
//
// What checks want from CDI directories: all of it, once, and files set aside.
#pragma once

#include <absl/status/status.h>
#include <devmgr/cdi_registry.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace devmgr::cdistore {

/// What the directories define. A missing one is an empty one; no other trouble
/// is fatal either, each is an error in the answer. Blocks for the disk.
std::shared_ptr<const CdiRegistry> ReadSpecFiles(
    const std::vector<std::filesystem::path>& directories);

/// For messages: which directories were searched.
std::vector<std::string> NamesOf(
    const std::vector<std::filesystem::path>& directories);

/// What SetAside makes of a path. Its suffix hides the file from every reader.
std::filesystem::path AsidePath(const std::filesystem::path& file);

/// Renames a spec file to its AsidePath, unless it holds something else by
/// now. Replaces what was set aside from the same path before.
///   NotFound            the file is gone
///   FailedPrecondition  it is not what was read
absl::Status SetAside(const CdiSpecFile& file);

}  // namespace devmgr::cdistore
