// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

namespace devmgr::plugin {

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

}  // namespace devmgr::plugin
