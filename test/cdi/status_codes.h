// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

namespace devmgr {

inline constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;
inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

}  // namespace devmgr
