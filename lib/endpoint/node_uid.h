// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>

namespace devmgr::endpoint {

/// The UID of the node's object, by which slices say whose they are: read from
/// `file`, or made once and kept there.
///   DataLoss     the file holds no UUID
///   Unavailable  it cannot be read or written
absl::StatusOr<std::string> KeepNodeUid(const std::filesystem::path& file);

}  // namespace devmgr::endpoint
