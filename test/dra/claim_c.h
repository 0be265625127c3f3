// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/types.h>

namespace devmgr::dra {

/// The UID of claim C.
inline const ClaimUid kC{"u-C"};

}  // namespace devmgr::dra
