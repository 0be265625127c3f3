// SPDX-License-Identifier: Apache-2.0
#pragma once

// An enumerator in it is called kDriver, too; declared later it would hide the
// name below, which is an error.
#include <devmgr/status_types.h>

namespace devmgr {

inline constexpr char kDriver[] = "d.example.com";
inline constexpr char kOther[] = "e.example.com";

}  // namespace devmgr
