// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/types.h>

#include <string>

#include "state/state.h"

namespace devmgr::claim {

/// Which call a driver owes a claim.
enum class CallNeed { kNothing, kPrepare, kUnprepare };

/// By what is recorded; kNothing for claims and drivers that there are not.
CallNeed NeedOf(const state::State& state, const ClaimUid& claim,
                const std::string& driver);

}  // namespace devmgr::claim
