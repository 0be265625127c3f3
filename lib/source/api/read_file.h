// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>

namespace devmgr::apiserver {

/// The content of a regular file of at most 1 MiB. Nothing else is waited for,
/// such as a pipe.
///   NotFound, PermissionDenied, Unavailable  as the kernel says
///   InvalidArgument                          it is no such file
absl::StatusOr<std::string> ReadSmallFile(const std::filesystem::path& file);

}  // namespace devmgr::apiserver
