// SPDX-License-Identifier: Apache-2.0
//
// How a pod gives up what it has: unprepared, ended, evicted, forgotten. See
// pod_lifecycle.h.
#include <algorithm>
#include <utility>
#include <vector>

#include "claim/eviction.h"
#include "claim/release.h"
#include "common/status.h"
#include "pods/pod_lifecycle.h"

namespace devmgr::pods {

using state::PodPhase;
using state::PodRecord;

void PodLifecycle::Unprepare(OperationId id, const PodUid& pod,
                             DeviceManager::Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(Stopped());
  Begin(id, pod, /*prepare=*/false, std::move(done));
  GiveUp(id, pod, /*ends=*/false);
}

void PodLifecycle::End(OperationId id, const PodUid& pod,
                       DeviceManager::Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(Stopped());
  Begin(id, pod, /*prepare=*/false, std::move(done)).ends = true;
  GiveUp(id, pod, /*ends=*/true);
}

void PodLifecycle::Evict(OperationId id, const PodUid& pod,
                         DeviceManager::Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(Stopped());
  Begin(id, pod, /*prepare=*/false, std::move(done)).evicts = true;
  GiveUp(id, pod, /*ends=*/false);
}

void PodLifecycle::GiveUp(OperationId id, const PodUid& pod, bool ends) {
  admitted_.erase(pod);
  known_.notes.erase(pod);
  claim::ReleaseTerms terms = Terms(pod);
  terms.ends = ends;
  parts_.ledger.Submit(
      [pod, terms = std::move(terms)](
          const state::State& state) -> absl::StatusOr<state::Decision> {
        return claim::BeginRelease(state, pod, terms);
      },
      parts_.executor,
      [this, id, pod](const absl::Status& status) {
        if (!operations_.contains(id)) {  // cancelled
          CarryOutRelease(pod);
        } else if (status.ok()) {
          AskDrivers(id);
        } else {
          Finish(id, WithContext(status, "unprepare dynamic resources"));
        }
      });
}

void PodLifecycle::HoldEnd(const PodUid& pod, const Verdict& why) {
  DEVMGR_ASSERT_ON(parts_.executor);
  const Verdict* note = known_.notes.Find(pod);
  if (note != nullptr && note->reason == why.reason &&
      note->message == why.message) {
    return;
  }
  Note(pod, why);
}

void PodLifecycle::DecideLast(OperationId id, const PodUid& pod, bool evicts) {
  parts_.ledger.Submit(
      [pod, evicts](const state::State& state) {
        return evicts ? claim::FinishEviction(state, pod)
                      : claim::ForgetPod(state, pod);
      },
      parts_.executor,
      [this, id](const absl::Status& status) {
        if (operations_.contains(id)) Finish(id, status);
      });
}

std::set<PodUid> PodLifecycle::Ending(const std::set<ClaimUid>& claims) const {
  std::set<PodUid> pods;
  for (const ClaimUid& uid : claims) {
    const state::ClaimRecord* claim = parts_.state.FindClaim(uid);
    if (claim != nullptr) pods.insert(claim->pods.begin(), claim->pods.end());
  }
  std::set<PodUid> ending;
  for (const auto& [id, operation] : operations_) {
    if (operation.ends && pods.contains(operation.pod)) {
      ending.insert(operation.pod);
    }
  }
  return ending;
}

claim::ReleaseTerms PodLifecycle::Terms(const PodUid& pod) const {
  return {AbsentDrivers(pod), parts_.debt_rules, parts_.now_ms()};
}

void PodLifecycle::CarryOutRelease(const PodUid& uid) {
  const PodRecord* pod = parts_.state.FindPod(uid);
  if (pod == nullptr || pod->phase != PodPhase::kReleasing) return;
  const bool is_asked = std::any_of(
      operations_.begin(), operations_.end(), [&](const auto& operation) {
        return operation.second.pod == uid && !operation.second.prepare;
      });
  if (!is_asked) calls_.Drive(pod->claims);
}

std::map<std::string, std::string> PodLifecycle::AbsentDrivers(
    const PodUid& uid) const {
  std::map<std::string, std::string> absent;
  const PodRecord* pod = parts_.state.FindPod(uid);
  if (pod == nullptr) return absent;
  for (const ClaimUid& claim_uid : pod->claims) {
    const state::ClaimRecord* claim = parts_.state.FindClaim(claim_uid);
    if (claim == nullptr) continue;
    for (const auto& [driver, part] : claim->drivers) {
      if (parts_.drivers.IsConnected(driver)) continue;
      absent[driver] =
          parts_.drivers.IsRegistered(driver)
              ? fmt::format("no instance of DRA driver {} is connected", driver)
              : fmt::format("DRA driver {} is not registered", driver);
    }
  }
  return absent;
}

void PodLifecycle::Release(OperationId id, const PodUid& pod,
                           DeviceManager::Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(Stopped());
  simple_.insert(id);
  parts_.ledger.Submit(
      [pod](const state::State& state) { return claim::ForgetPod(state, pod); },
      parts_.executor,
      [this, id, done](const absl::Status& status) {
        done(simple_.erase(id) == 0 ? CancelledError("cancelled") : status);
      });
}

}  // namespace devmgr::pods
