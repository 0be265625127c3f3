// SPDX-License-Identifier: Apache-2.0
#include "control/outlook.h"

#include <variant>

namespace devmgr::control {

Outlook OutlookWith(const std::vector<state::Change>& changes,
                    const state::State& state, const ObjectSnapshot& objects) {
  Outlook outlook{state, objects};
  for (const state::Change& change : changes) {
    const auto& claim = std::get<state::PutLocalClaim>(change).claim;
    outlook.objects.claims.insert_or_assign(claim->object->metadata.FullName(),
                                            claim->object);
    outlook.state.Put(claim);
  }
  return outlook;
}

}  // namespace devmgr::control
