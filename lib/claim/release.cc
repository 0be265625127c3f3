// SPDX-License-Identifier: Apache-2.0
#include "claim/release.h"

#include <devmgr/duration.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "claim/claim_machine.h"
#include "claim/draft.h"
#include "claim/replaced_claim.h"
#include "common/counted.h"
#include "common/status.h"

namespace devmgr::claim {
namespace {

using state::ClaimRecord;
using state::Debt;
using state::Decision;
using state::DecisionKind;
using state::DriverPhase;
using state::DriverRecord;
using state::PodPhase;
using state::PodRecord;
using state::State;

/// It is unprepared for its pods, which keep it.
bool IsRenewed(const DriverRecord& driver) {
  return StateOf(&driver) == ClaimState::kRenewing;
}

bool IsOwed(const DriverRecord& driver) {
  return driver.phase == DriverPhase::kUnpreparing;
}

std::vector<std::string> PodNames(const State& state,
                                  const ClaimRecord& claim) {
  std::vector<std::string> names;
  for (const PodUid& uid : claim.pods) {
    const PodRecord* pod = state.FindPod(uid);
    names.push_back(pod != nullptr ? pod->name.ToString() : uid.value);
  }
  return names;
}

/// The pods hold the claim no longer.
void LetPodsGo(Draft& draft, const State& state, const ClaimUid& uid) {
  for (const PodUid& pod : state.FindClaim(uid)->pods) {
    if (state.FindPod(pod) == nullptr) continue;
    std::erase(draft.EditPod(pod)->claims, uid);
  }
}

/// Its devices have a name by which a device plugin may give them, too; the pod
/// is what keeps that from it.
bool ServesExtendedResources(const State& state, const ClaimRecord& claim) {
  const auto wants_by_name = [&](const state::ContainerNeed& need) {
    return std::any_of(
        need.wants.begin(), need.wants.end(), [&](const state::Want& want) {
          return want.claim == claim.uid && !want.resource.empty();
        });
  };
  return std::any_of(
      claim.pods.begin(), claim.pods.end(), [&](const PodUid& uid) {
        const PodRecord* pod = state.FindPod(uid);
        return pod != nullptr &&
               std::any_of(pod->needs.begin(), pod->needs.end(), wants_by_name);
      });
}

/// A pod does not wait for a claim that is owed by drivers that may do it
/// later.
void DeferIfAllowed(Draft& draft, const State& state, const ClaimUid& uid,
                    const DebtRules& rules) {
  const ClaimRecord& claim = *draft.Claim(uid);
  const bool deferred = std::all_of(
      claim.drivers.begin(), claim.drivers.end(), [&](const auto& driver) {
        return driver.second.debt.has_value() &&
               rules.For(claim, driver.first).kind == DebtPolicy::Kind::kDefer;
      });
  if (!deferred || ServesExtendedResources(state, *state.FindClaim(uid))) {
    return;
  }
  LetPodsGo(draft, state, uid);
  draft.EditClaim(uid)->pods.clear();
}

/// These drivers have nothing to do with the claim any more.
void DropDrivers(Draft& draft, const State& state, const ClaimUid& uid,
                 const std::set<std::string>& drivers, const DebtRules& rules) {
  ClaimRecord* claim = draft.EditClaim(uid);
  for (const std::string& driver : drivers) claim->drivers.erase(driver);
  if (!claim->drivers.empty()) return DeferIfAllowed(draft, state, uid, rules);
  LetPodsGo(draft, state, uid);
  draft.EraseClaim(uid);
}

/// The last pod gives the claim up.
void BeginUnprepare(Draft& draft, const State& state, const ClaimRecord& claim,
                    const ReleaseTerms& terms) {
  std::set<std::string> done;
  for (auto& [name, driver] : draft.EditClaim(claim.uid)->drivers) {
    if (driver.skipped.unprepare) done.insert(name);
    driver.phase = DriverPhase::kUnpreparing;
    driver.spec_recovery = state::SpecRecovery::kNone;
    const auto why = terms.absent.find(name);
    if (why == terms.absent.end()) continue;
    driver.debt = Debt{terms.now_ms, 0, why->second, PodNames(state, claim)};
  }
  DropDrivers(draft, state, claim.uid, done, terms.rules);
}

constexpr char kReleased[] = "pod is released";

Decision Forget(const PodRecord& pod) {
  Decision decision;
  decision.kind = DecisionKind::kRelease;
  decision.pods = {pod.name};
  decision.message = kReleased;
  decision.changes.push_back(state::ErasePod{pod.uid});
  return decision;
}

/// Erases the pods of `ending` that hold no claims after the draft, and did
/// before it. False: there are none.
bool ForgetEnded(Draft& draft, const State& state,
                 const std::set<PodUid>& ending) {
  bool any = false;
  for (const PodUid& uid : ending) {
    const PodRecord* before = state.FindPod(uid);
    if (before == nullptr || before->claims.empty() ||
        before->phase != PodPhase::kReleasing ||
        !draft.Pod(uid)->claims.empty()) {
      continue;
    }
    draft.ErasePod(uid);
    any = true;
  }
  return any;
}

template <typename Which>
std::set<std::string> DriversThat(const ClaimRecord& claim,
                                  const Which& which) {
  std::set<std::string> drivers;
  for (const auto& [name, driver] : claim.drivers) {
    if (which(name, driver)) drivers.insert(name);
  }
  return drivers;
}

}  // namespace

DebtPolicy DebtRules::For(const ClaimRecord& claim,
                          const std::string& driver) const {
  const auto own = by_driver.find(driver);
  if (own != by_driver.end()) return own->second;
  return claim.network_attached ? DebtPolicy{} : fallback;
}

bool DebtRules::Forgive() const {
  return fallback.kind == DebtPolicy::Kind::kForgive ||
         std::any_of(by_driver.begin(), by_driver.end(), [](const auto& own) {
           return own.second.kind == DebtPolicy::Kind::kForgive;
         });
}

std::string DebtPolicyText(const DebtPolicy& policy) {
  switch (policy.kind) {
    case DebtPolicy::Kind::kBlock:
      return "block";
    case DebtPolicy::Kind::kDefer:
      return "defer";
    case DebtPolicy::Kind::kForgive:
      return "forgiveAfter: " + FormatDuration(policy.forgive_after);
  }
  return "";
}

Decision BeginRelease(const State& state, const PodUid& uid,
                      const ReleaseTerms& terms) {
  Decision nothing;
  nothing.kind = DecisionKind::kUnprepareIntent;
  const PodRecord* old = state.FindPod(uid);
  if (old == nullptr) return nothing;
  if (old->claims.empty()) return terms.ends ? Forget(*old) : nothing;
  if (old->phase == PodPhase::kReleasing) return nothing;
  Draft draft(state);
  PodRecord* pod = draft.EditPod(uid);
  pod->phase = PodPhase::kReleasing;
  pod->answer = nullptr;
  pod->claims.clear();
  for (const ClaimUid& claim_uid : old->claims) {
    const ClaimRecord* claim = state.FindClaim(claim_uid);
    if (claim == nullptr) continue;
    if (claim->pods.size() > 1) {
      draft.EditClaim(claim_uid)->pods.erase(uid);
      continue;
    }
    pod->claims.push_back(claim_uid);
    BeginUnprepare(draft, state, *claim, terms);
  }
  if (terms.ends && draft.Pod(uid)->claims.empty()) {
    draft.ErasePod(uid);
    return draft.Finish(DecisionKind::kRelease, kReleased);
  }
  return draft.Finish(DecisionKind::kUnprepareIntent,
                      "claims are to be unprepared");
}

Decision GiveUpReplaced(const State& state, const PodUid& pod,
                        const ReleaseTerms& terms, const std::string& boot_id) {
  const PodRecord* record = state.FindPod(pod);
  if (record == nullptr || !MayBookAnew(*record, boot_id)) return {};
  return BeginRelease(state, pod, terms);
}

Decision RecordUnprepared(const State& state, const std::string& driver,
                          const std::set<ClaimUid>& unprepared,
                          const DebtRules& rules,
                          const std::set<PodUid>& ending) {
  Draft draft(state);
  for (const ClaimUid& uid : unprepared) {
    const ClaimRecord* claim = state.FindClaim(uid);
    if (claim == nullptr) continue;
    const auto part = claim->drivers.find(driver);
    if (part == claim->drivers.end()) continue;
    if (IsRenewed(part->second)) {
      DriverRecord& renewed = draft.EditClaim(uid)->drivers[driver];
      renewed.spec_recovery = state::SpecRecovery::kRenewed;
      renewed.void_cdi_device_ids.clear();
      renewed.devices.clear();
      renewed.boot_id.clear();
    } else if (IsOwed(part->second)) {
      DropDrivers(draft, state, uid, {driver}, rules);
    }
  }
  const bool ended = ForgetEnded(draft, state, ending);
  return draft.Finish(
      ended ? DecisionKind::kRelease : DecisionKind::kUnprepareResult,
      fmt::format("driver {} unprepared{}{}", driver, ended ? ", and " : "",
                  ended ? kReleased : ""));
}

absl::StatusOr<Decision> ForgetPod(const State& state, const PodUid& uid) {
  const PodRecord* pod = state.FindPod(uid);
  if (pod == nullptr) {
    Decision nothing;
    nothing.kind = DecisionKind::kRelease;
    return nothing;
  }
  if (!pod->claims.empty()) {
    return FailedPreconditionError("pod '{}' still holds {}",
                                   pod->name.ToString(),
                                   Counted(pod->claims.size(), "claim"));
  }
  return Forget(*pod);
}

Decision RecordDebts(const State& state, const std::string& driver,
                     const std::map<ClaimUid, FailedTries>& failed,
                     const DebtRules& rules, std::int64_t now_ms) {
  Draft draft(state);
  for (const auto& [uid, tries] : failed) {
    const ClaimRecord* claim = state.FindClaim(uid);
    if (claim == nullptr) continue;
    const auto part = claim->drivers.find(driver);
    if (part == claim->drivers.end() || !IsOwed(part->second)) continue;
    const std::optional<Debt>& known = part->second.debt;
    if (known.has_value() && known->last_error == tries.error &&
        tries.attempts < 2 * std::max(known->attempts, 1U)) {
      // The rules may be others than when it was written.
      DeferIfAllowed(draft, state, uid, rules);
      continue;
    }
    Debt& debt = draft.EditClaim(uid)->drivers[driver].debt.emplace(
        known.value_or(Debt{now_ms, 0, "", PodNames(state, *claim)}));
    debt.attempts = std::max(debt.attempts, tries.attempts);
    debt.last_error = tries.error;
    DeferIfAllowed(draft, state, uid, rules);
  }
  return draft.Finish(DecisionKind::kDebt,
                      fmt::format("driver {} has not unprepared", driver));
}

std::vector<ForgivableDebt> ForgivableDebts(const State& state,
                                            const DebtRules& rules) {
  std::vector<ForgivableDebt> debts;
  for (const auto& [uid, claim] : state.claims) {
    for (const auto& [name, driver] : claim->drivers) {
      if (!driver.debt.has_value()) continue;
      const DebtPolicy policy = rules.For(*claim, name);
      if (policy.kind != DebtPolicy::Kind::kForgive) continue;
      debts.push_back({uid, name, driver.debt->since_ms, policy.forgive_after});
    }
  }
  return debts;
}

Decision ForgiveDebts(const State& state, const DebtRules& rules,
                      const std::vector<ForgivableDebt>& due) {
  Draft draft(state);
  std::map<ClaimUid, std::set<std::string>> drivers;
  for (const ForgivableDebt& debt : ForgivableDebts(state, rules)) {
    if (std::find(due.begin(), due.end(), debt) == due.end()) continue;
    drivers[debt.claim].insert(debt.driver);
  }
  for (const auto& [uid, dropped] : drivers) {
    DropDrivers(draft, state, uid, dropped, rules);
  }
  return draft.Finish(
      DecisionKind::kForgiven,
      "drivers have not unprepared it within the time of forgiveAfter");
}

absl::StatusOr<Decision> ForceRelease(const State& state,
                                      const ObjectName& name,
                                      const std::string& reason) {
  if (reason.empty()) return InvalidArgumentError("a reason is required");
  const std::vector<ClaimUid> claims = state.ClaimsNamed(name);
  if (claims.empty()) {
    return NotFoundError("claim '{}' is not in the ledger", name.ToString());
  }
  Draft draft(state);
  std::set<std::string> drivers;
  for (const ClaimUid& uid : claims) {
    const auto owed = DriversThat(
        *state.FindClaim(uid),
        [](const auto&, const auto& driver) { return IsOwed(driver); });
    if (!owed.empty()) DropDrivers(draft, state, uid, owed, {});
    drivers.insert(owed.begin(), owed.end());
  }
  if (drivers.empty()) {
    return FailedPreconditionError(
        "claim '{}' is used by {}: release these first", name.ToString(),
        fmt::join(PodNames(state, *state.FindClaim(claims.front())), ", "));
  }
  return draft.Finish(
      DecisionKind::kForgiven,
      fmt::format("an operator released it without waiting for {}: {}",
                  fmt::join(drivers, ", "), reason));
}

std::vector<ClaimUid> OwedClaims(const State& state,
                                 const std::string& driver) {
  std::vector<ClaimUid> claims;
  for (const auto& [uid, claim] : state.claims) {
    const bool owed = std::any_of(
        claim->drivers.begin(), claim->drivers.end(), [&](const auto& part) {
          return IsOwed(part.second) &&
                 (driver.empty() || part.first == driver);
        });
    if (owed) claims.push_back(uid);
  }
  return claims;
}

}  // namespace devmgr::claim
