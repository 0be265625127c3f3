// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace devmgr::plugin {

inline constexpr char kResource[] = "example.com/dev";

}  // namespace devmgr::plugin
