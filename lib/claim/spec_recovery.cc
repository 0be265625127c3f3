// SPDX-License-Identifier: Apache-2.0
#include "claim/spec_recovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "claim/claim_machine.h"
#include "claim/draft.h"

namespace devmgr::claim {
namespace {

using state::ClaimRecord;
using state::Decision;
using state::DecisionKind;
using state::DriverPhase;
using state::DriverRecord;
using state::PodPhase;
using state::PodRecord;
using state::SpecRecovery;
using state::State;

/// Null when the driver has no part in the claim.
const DriverRecord* PartOf(const State& state, const ClaimUid& uid,
                           const std::string& driver) {
  const ClaimRecord* claim = state.FindClaim(uid);
  if (claim == nullptr) return nullptr;
  const auto part = claim->drivers.find(driver);
  return part != claim->drivers.end() ? &part->second : nullptr;
}

/// Pods that were Ready with the claim are Preparing until it is prepared.
void TakeBackPods(Draft& draft, const State& state, const ClaimUid& uid) {
  for (const PodUid& pod_uid : state.FindClaim(uid)->pods) {
    const PodRecord* pod = state.FindPod(pod_uid);
    if (pod == nullptr || pod->phase != PodPhase::kReady) continue;
    PodRecord* edited = draft.EditPod(pod_uid);
    edited->phase = PodPhase::kPreparing;
    edited->answer = nullptr;
  }
}

}  // namespace

std::vector<std::string> PodsThatMayRun(const State& state,
                                        const ClaimRecord& claim,
                                        const KnownIdle& known) {
  std::vector<std::string> pods;
  for (const PodUid& uid : claim.pods) {
    const PodRecord* pod = state.FindPod(uid);
    // A reboot ends all containers, and none starts before its pod is Ready.
    if (pod == nullptr || pod->boot_id != known.boot_id) continue;
    if (!known.pods.contains(uid)) pods.push_back(pod->name.ToString());
  }
  return pods;
}

SpecRemedy RemedyFor(const State& state, const ClaimRecord& claim,
                     const std::string& driver, const KnownIdle& known) {
  const DriverRecord& part = claim.drivers.at(driver);
  if (part.phase == DriverPhase::kPrepared &&
      part.spec_recovery == SpecRecovery::kNone) {
    return SpecRemedy::kPrepareAgain;
  }
  // One that wants no such calls has nothing to forget.
  if (part.spec_recovery == SpecRecovery::kRenewed || part.skipped.prepare ||
      part.skipped.unprepare) {
    return SpecRemedy::kNothing;
  }
  return PodsThatMayRun(state, claim, known).empty() ? SpecRemedy::kRenew
                                                     : SpecRemedy::kStopPods;
}

Decision PrepareAgain(const State& state, const ClaimUid& uid,
                      const std::string& driver) {
  const DriverRecord* part = PartOf(state, uid, driver);
  if (part == nullptr || part->phase != DriverPhase::kPrepared) return {};
  Draft draft(state);
  DriverRecord& anew = draft.EditClaim(uid)->drivers[driver];
  anew = part->Anew();
  anew.spec_recovery = SpecRecovery::kAskedAgain;
  TakeBackPods(draft, state, uid);
  return draft.Finish(DecisionKind::kRepair, "");
}

Decision Renew(const State& state, const ClaimUid& uid,
               const std::string& driver, const KnownIdle& known,
               const std::vector<state::PreparedDevice>& answered) {
  const DriverRecord* part = PartOf(state, uid, driver);
  if (part == nullptr || part->phase == DriverPhase::kUnpreparing ||
      part->spec_recovery == SpecRecovery::kUnprepareFirst ||
      RemedyFor(state, *state.FindClaim(uid), driver, known) !=
          SpecRemedy::kRenew) {
    return {};
  }
  Draft draft(state);
  DriverRecord& renewed = draft.EditClaim(uid)->drivers[driver];
  if (part->phase == DriverPhase::kPreparing) renewed.devices = answered;
  renewed = renewed.Anew();
  renewed.spec_recovery = SpecRecovery::kUnprepareFirst;
  TakeBackPods(draft, state, uid);
  return draft.Finish(DecisionKind::kRepair, "");
}

Decision RecordSpecsFound(const State& state,
                          const std::vector<ClaimUid>& claims) {
  Draft draft(state);
  for (const ClaimUid& uid : claims) {
    const ClaimRecord* claim = state.FindClaim(uid);
    if (claim == nullptr) continue;
    for (const auto& [driver, part] : claim->drivers) {
      if (part.phase != DriverPhase::kPrepared ||
          part.spec_recovery == SpecRecovery::kNone) {
        continue;
      }
      draft.EditClaim(uid)->drivers[driver].spec_recovery = SpecRecovery::kNone;
    }
  }
  return draft.Finish(DecisionKind::kPrepareResult,
                      "the CDI specs that were missing are there");
}

}  // namespace devmgr::claim
