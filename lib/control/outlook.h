// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::control {

/// State and objects as they are once the changes of a provision are committed.
struct Outlook {
  state::State state;
  ObjectSnapshot objects;  ///< Claims alone differ.
};

/// `changes` are those of a Provision: records of claims alone.
Outlook OutlookWith(const std::vector<state::Change>& changes,
                    const state::State& state, const ObjectSnapshot& objects);

}  // namespace devmgr::control
