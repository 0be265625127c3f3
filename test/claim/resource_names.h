// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace devmgr::claim {

inline constexpr char kGpu[] = "example.com/gpu";
inline constexpr char kNic[] = "example.com/nic";

}  // namespace devmgr::claim
