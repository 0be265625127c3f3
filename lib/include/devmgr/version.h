// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/export.h>

#include <string_view>

namespace devmgr {

/// Version of the library, such as `0.1.0`.
DEVMGR_EXPORT std::string_view Version();

}  // namespace devmgr
