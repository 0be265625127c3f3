// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace devmgrd {

/// The UIDs of users that are given by UID or by name.
///   InvalidArgument  names the one that is no user
absl::StatusOr<std::vector<unsigned>> FindUsers(
    const std::vector<std::string>& users);

}  // namespace devmgrd
