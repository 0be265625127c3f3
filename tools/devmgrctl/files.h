// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace devmgr::ctl {

/// Content of a regular file of up to 16 MiB.
///   NotFound, PermissionDenied  as the kernel says
///   FailedPrecondition          it is no such file, or another error
absl::StatusOr<std::string> ReadFile(const std::string& path);

/// Replaces a file, or makes it, in one step; on return it is on disk. It keeps
/// its mode; a new one has 0600. After an error all is as before.
///   errors as ReadFile
absl::Status ReplaceFile(const std::string& path, std::string_view content);

}  // namespace devmgr::ctl
