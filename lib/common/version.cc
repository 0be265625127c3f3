// SPDX-License-Identifier: Apache-2.0
#include <devmgr/version.h>

namespace devmgr {

std::string_view Version() { return DEVMGR_VERSION; }

}  // namespace devmgr
