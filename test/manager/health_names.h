// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.h"

namespace devmgr {

inline constexpr auto kGood = device::Health::kHealthy;
inline constexpr auto kBad = device::Health::kUnhealthy;

}  // namespace devmgr
