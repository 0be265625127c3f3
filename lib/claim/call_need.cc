// SPDX-License-Identifier: Apache-2.0
#include "claim/call_need.h"

namespace devmgr::claim {

CallNeed NeedOf(const state::State& state, const ClaimUid& uid,
                const std::string& driver) {
  const state::ClaimRecord* claim = state.FindClaim(uid);
  if (claim == nullptr) return CallNeed::kNothing;
  const auto part = claim->drivers.find(driver);
  if (part == claim->drivers.end()) return CallNeed::kNothing;
  switch (part->second.phase) {
    case state::DriverPhase::kPreparing:
      return part->second.spec_recovery == state::SpecRecovery::kUnprepareFirst
                 ? CallNeed::kUnprepare
                 : CallNeed::kPrepare;
    case state::DriverPhase::kUnpreparing:
      return CallNeed::kUnprepare;
    case state::DriverPhase::kPrepared:
      break;
  }
  return CallNeed::kNothing;
}

}  // namespace devmgr::claim
