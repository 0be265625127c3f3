// SPDX-License-Identifier: Apache-2.0
//
// Decisions about claims: pure functions from the projection to the changes
// that one ledger batch makes. The ledger thread calls them with the working
// state, so what they find is what holds.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "claim/pod_plan.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// A pod as the ledger first hears of it.
struct PodIdentity {
  PodUid uid;
  ObjectName name;
  bool local = false;  ///< As PodRecord has it, for the devices it gets.
  /// The same. Null: what the record has stays.
  std::shared_ptr<const PodAlignmentInfo> alignment = nullptr;
};

/// The record of a pod that is seen for the first time: kWaiting.
std::shared_ptr<state::PodRecord> NewPod(const state::State& state,
                                         const PodIdentity& pod,
                                         std::int64_t now_ms);

/// Makes the pod known in phase kWaiting; nothing when it is known already.
state::Decision RecordSeen(const state::State& state, const PodIdentity& pod,
                           std::int64_t now_ms, const std::string& message);

/// Rejects a pod that holds nothing, for good.
///   FailedPrecondition  it holds claims
absl::StatusOr<state::Decision> RejectPod(const state::State& state,
                                          const PodIdentity& pod,
                                          std::int64_t now_ms,
                                          const Verdict& verdict);

/// May the pod use its claims for the extended resources that they are mapped
/// to? Waits as CheckNoPluginDevices of backing.h says.
Verdict CheckPlannedNames(const state::State& state, const PodPlan& plan,
                          const PodUid& pod);

/// Verdict and, with kAdmit, the decision (maybe without changes).
struct BookResult {
  Verdict verdict;
  state::Decision decision;
};

/// Records the intent to prepare: the pod references every claim of the plan,
/// and every driver that has not prepared it in this boot becomes kPreparing.
/// Waits as CheckPlanned and CheckPlannedNames say. A name that nothing has
/// served so far is the classes' from then on. A pod with nothing left to
/// prepare becomes kReady in the same decision. A pod that holds its claims
/// already needs no `plan` (may be null); with one, the pod need not be known
/// yet.
///   NotFound            the pod is not known, and there is no plan
///   FailedPrecondition  it is rejected, being released or evicted
absl::StatusOr<BookResult> BookPod(const state::State& state,
                                   const PodIdentity& pod, std::int64_t now_ms,
                                   const PodPlan* plan,
                                   const std::string& boot_id);

/// What was found when the CDI specs of what a driver prepared were looked for.
struct SpecLook {
  std::set<ClaimUid> found;    ///< All are there.
  std::set<ClaimUid> missing;  ///< Some are not.
};

/// Of which pods it is known that no container runs.
struct KnownIdle {
  std::string boot_id;    ///< Of this boot: what was in another has ended.
  std::set<PodUid> pods;  ///< Though they were Ready in this boot.
};

/// What `driver` prepared in this boot. Claims that were given up meanwhile
/// stay kUnpreparing, with what there is to unprepare; so do those that are to
/// be unprepared first. Pods for which this was the last thing become kReady.
state::Decision RecordPrepared(
    const state::State& state, const std::string& driver,
    const std::map<ClaimUid, std::vector<state::PreparedDevice>>& prepared,
    const std::string& boot_id, const SpecLook& look = {});

/// True when a driver of the claim still has to be asked in this boot.
bool NeedsPrepare(const state::DriverRecord& driver,
                  const std::string& boot_id);

}  // namespace devmgr::claim
