// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace devmgr {

inline constexpr char kGpu[] = "example.com/gpu";
inline constexpr char kDriver[] = "gpu.example.com";

}  // namespace devmgr
