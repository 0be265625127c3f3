// SPDX-License-Identifier: Apache-2.0
#include "claim/prepare_intent.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "claim/backing.h"
#include "claim/claim_machine.h"
#include "claim/container_answer.h"
#include "claim/draft.h"
#include "claim/held_hardware.h"
#include "claim/replaced_claim.h"
#include "common/counted.h"
#include "common/status.h"

namespace devmgr::claim {
namespace {

using state::ClaimRecord;
using state::Decision;
using state::DecisionKind;
using state::DriverPhase;
using state::DriverRecord;
using state::PodPhase;
using state::PodRecord;
using state::ResourcesByClaims;
using state::SpecRecovery;
using state::State;

bool FullyPrepared(const ClaimRecord& claim, const std::string& boot_id) {
  return std::none_of(claim.drivers.begin(), claim.drivers.end(),
                      [&](const auto& driver) {
                        return driver.second.phase != DriverPhase::kPrepared ||
                               NeedsPrepare(driver.second, boot_id);
                      });
}

/// What the drivers' answers turned out to be is in use by another pod: a Ready
/// one, or one whose device plugin has answered. Of two that are not Ready
/// neither waits for the other.
std::optional<HeldHardware> FindAnsweredElsewhere(const State& state,
                                                  const Draft& draft,
                                                  const PodRecord& pod) {
  const auto is_ready = [&](const PodUid& uid) {
    const PodRecord* other = draft.Pod(uid);
    return other != nullptr && other->phase == PodPhase::kReady;
  };
  const auto counts = [&](const state::HardwareHolding& holding) {
    if (holding.kind == state::HardwareHolding::Kind::kPod) {
      const PodRecord* other = state.FindPod(PodUid{*holding.uid});
      return other->phase != PodPhase::kAllocating;
    }
    if (holding.kind == state::HardwareHolding::Kind::kContainer) return true;
    const ClaimRecord* claim = state.FindClaim(ClaimUid{*holding.uid});
    return claim != nullptr &&
           std::any_of(claim->pods.begin(), claim->pods.end(), is_ready);
  };
  for (const ClaimUid& uid : pod.claims) {
    const ClaimRecord* claim = draft.Claim(uid);
    if (claim == nullptr) continue;
    for (const auto& [driver, part] : claim->drivers) {
      for (const state::PreparedDevice& device : part.devices) {
        auto held = FindHardwareHolder(state, device.hardware,
                                       {driver, pod.uid, uid.value}, counts);
        if (held.has_value()) return held;
      }
    }
  }
  return std::nullopt;
}

/// Makes the pod kReady with its frozen answer if nothing is left to prepare,
/// and no other pod uses what was prepared.
absl::Status FreezeIfDone(const State& state, Draft& draft, const PodUid& uid,
                          const std::string& boot_id) {
  PodRecord* pod = draft.EditPod(uid);
  // After the recovery of a damaged ledger: what its containers want, and maybe
  // more claims, comes with its plan.
  if (pod->needs.empty() && !pod->claims.empty()) return absl::OkStatus();
  for (const ClaimUid& claim : pod->claims) {
    const ClaimRecord* record = draft.Claim(claim);
    if (record == nullptr || !FullyPrepared(*record, boot_id)) {
      return absl::OkStatus();
    }
  }
  if (FindAnsweredElsewhere(state, draft, *pod).has_value()) {
    return absl::OkStatus();
  }
  DEVMGR_ASSIGN_OR_RETURN(pod->answer,
                          AnswerFor(*pod, [&](const ClaimUid& claim) {
                            return draft.Claim(claim);
                          }));
  pod->phase = PodPhase::kReady;
  pod->boot_id = boot_id;
  return absl::OkStatus();
}

void Reference(Draft& draft, const PlannedClaim& planned, const PodUid& pod) {
  ClaimRecord* record = draft.EditClaim(planned.uid);
  record->name = planned.name;
  record->pods.insert(pod);
  record->network_attached =
      record->network_attached || planned.network_attached;
  for (const std::string& driver : planned.drivers) {
    const auto [part, fresh] = record->drivers.try_emplace(driver);
    const auto devices = planned.devices.find(driver);
    // Also where it was booked before this was kept.
    if (part->second.allocated.empty() && devices != planned.devices.end()) {
      part->second.allocated = devices->second;
    }
    if (!fresh) continue;
    const auto skipped = planned.skipped.find(driver);
    if (skipped != planned.skipped.end()) {
      part->second.skipped = skipped->second;
    }
    const auto handle = planned.handles.find(driver);
    if (handle != planned.handles.end()) {
      part->second.handle = handle->second;
    }
  }
}

/// What the last look for its CDI specs means for their recovery.
void TakeLook(const SpecLook& look, const ClaimUid& uid, DriverRecord* part) {
  if (look.found.contains(uid)) {
    part->spec_recovery = SpecRecovery::kNone;
  } else if (look.missing.contains(uid) &&
             part->spec_recovery == SpecRecovery::kNone) {
    part->spec_recovery = SpecRecovery::kAskedAgain;
  }
}

/// Answers of another boot are void: the driver is asked again, unless it wants
/// no such call.
void ForgetOtherBoots(Draft& draft, const ClaimUid& uid,
                      const std::string& boot_id) {
  const ClaimRecord* record = draft.Claim(uid);
  if (record == nullptr || FullyPrepared(*record, boot_id)) return;
  for (auto& [name, driver] : draft.EditClaim(uid)->drivers) {
    if (!NeedsPrepare(driver, boot_id)) continue;
    driver = driver.Anew();
    if (!driver.skipped.prepare) continue;
    driver.phase = DriverPhase::kPrepared;
    driver.boot_id = boot_id;
  }
}

/// Takes over a plan; claims taken earlier stay, for unprepare to find.
void TakePlan(Draft& draft, const PodPlan& plan, PodRecord* pod) {
  for (const PlannedClaim& planned : plan.claims) {
    Reference(draft, planned, pod->uid);
    if (std::find(pod->claims.begin(), pod->claims.end(), planned.uid) ==
        pod->claims.end()) {
      pod->claims.push_back(planned.uid);
    }
  }
  pod->needs = plan.needs;
}

/// The extended resources that claims of the plan serve.
std::set<ResourceName> NamesOf(const PodPlan& plan) {
  std::set<ResourceName> names;
  for (const state::ContainerNeed& need : plan.needs) {
    for (const state::Want& want : need.wants) {
      if (!want.resource.empty()) names.insert(want.resource);
    }
  }
  return names;
}

/// Names that nobody has served so far.
void TakeNames(const State& state, const PodPlan& plan, std::int64_t now_ms,
               Decision* decision) {
  for (const std::string& name : NamesOf(plan)) {
    if (state.FindResource(name) != nullptr) continue;
    auto record = std::make_shared<state::ResourceRecord>();
    record->name = name;
    record->backing = state::Backing::kClass;
    record->since_ms = now_ms;
    decision->changes.push_back(state::PutResource{std::move(record)});
  }
}

absl::Status CheckBookable(const PodRecord* record, const PodIdentity& pod,
                           const PodPlan* plan) {
  const bool known = record != nullptr && record->phase != PodPhase::kWaiting;
  if (!known && plan == nullptr) {
    return NotFoundError("pod '{}' with UID '{}' is not admitted",
                         pod.name.ToString(), pod.uid.value);
  }
  if (known && state::IsEvicting(*record)) {
    return FailedPreconditionError("pod '{}' has to leave its devices: {}",
                                   record->name.ToString(),
                                   record->eviction->message);
  }
  if (known && record->phase == PodPhase::kRejected) {
    return FailedPreconditionError("pod '{}' is rejected: {}",
                                   record->name.ToString(), record->message);
  }
  if (known && record->phase == PodPhase::kReleasing) {
    return FailedPreconditionError("pod '{}' is being released",
                                   record->name.ToString());
  }
  if (known && record->phase == PodPhase::kAllocating) {
    return FailedPreconditionError("devices of pod '{}' are being allocated",
                                   record->name.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

std::shared_ptr<PodRecord> NewPod(const State& state, const PodIdentity& pod,
                                  std::int64_t now_ms) {
  auto record = std::make_shared<PodRecord>();
  record->uid = pod.uid;
  record->name = pod.name;
  record->first_seen_ms = now_ms;
  record->first_seen_seq = state.seq + 1;
  return record;
}

Verdict CheckPlannedNames(const State& state, const PodPlan& plan,
                          const PodUid& pod) {
  Verdict verdict;
  if (plan.sharing != Sharing::kOneOwner) return verdict;
  const PodRecord* record = state.FindPod(pod);
  // What it holds stays its own.
  const std::set<ResourceName> held =
      record != nullptr ? ResourcesByClaims(*record) : std::set<ResourceName>();
  for (const ResourceName& resource : NamesOf(plan)) {
    if (held.contains(resource)) continue;
    Worsen(verdict, CheckNoPluginDevices(state, resource, pod));
  }
  return verdict;
}

bool NeedsPrepare(const DriverRecord& driver, const std::string& boot_id) {
  return driver.phase == DriverPhase::kPreparing ||
         (driver.phase == DriverPhase::kPrepared && driver.boot_id != boot_id);
}

Decision RecordSeen(const State& state, const PodIdentity& pod,
                    std::int64_t now_ms, const std::string& message) {
  Decision decision;
  decision.kind = DecisionKind::kSeen;
  if (state.FindPod(pod.uid) != nullptr) return decision;
  decision.pods = {pod.name};
  decision.message = message;
  decision.changes.push_back(state::PutPod{NewPod(state, pod, now_ms)});
  return decision;
}

absl::StatusOr<Decision> RejectPod(const State& state, const PodIdentity& pod,
                                   std::int64_t now_ms,
                                   const Verdict& verdict) {
  Decision decision;
  decision.kind = DecisionKind::kReject;
  const PodRecord* old = state.FindPod(pod.uid);
  if (old != nullptr && old->phase == PodPhase::kRejected) return decision;
  if (old != nullptr && !old->claims.empty()) {
    return FailedPreconditionError(
        "pod '{}' holds {} and cannot be rejected any more",
        pod.name.ToString(), Counted(old->claims.size(), "claim"));
  }
  auto record = old != nullptr ? std::make_shared<PodRecord>(*old)
                               : NewPod(state, pod, now_ms);
  record->phase = PodPhase::kRejected;
  record->reason = verdict.reason;
  record->message = verdict.message;
  record->answer = nullptr;
  record->needs.clear();
  record->holds.clear();
  record->alignment = nullptr;
  decision.pods = {pod.name};
  decision.message = verdict.message;
  decision.changes.push_back(state::PutPod{std::move(record)});
  return decision;
}

absl::StatusOr<BookResult> BookPod(const State& state, const PodIdentity& pod,
                                   std::int64_t now_ms, const PodPlan* plan,
                                   const std::string& boot_id) {
  const PodRecord* old = state.FindPod(pod.uid);
  DEVMGR_RETURN_IF_ERROR(CheckBookable(old, pod, plan));
  BookResult result;
  result.decision.kind = DecisionKind::kPrepareIntent;
  const bool was_ready = old != nullptr && old->phase == PodPhase::kReady;
  if (was_ready && old->boot_id == boot_id) return result;
  // Once Ready, only the ledger counts; a reboot prepares the same again.
  if (was_ready) plan = nullptr;
  if (plan != nullptr) {
    for (const PlannedClaim& planned : plan->claims) {
      Worsen(result.verdict, CheckPlanned(state, planned, pod.uid, boot_id));
    }
    Worsen(result.verdict, CheckPlannedNames(state, *plan, pod.uid));
    if (result.verdict.kind != Verdict::Kind::kAdmit) return result;
  }
  Draft draft(state);
  PodRecord* record = old != nullptr ? draft.EditPod(pod.uid)
                                     : draft.AddPod(NewPod(state, pod, now_ms));
  if (plan != nullptr) {
    record->name = pod.name;  // Not known when its record was lost.
    if (pod.alignment != nullptr) record->alignment = pod.alignment;
    TakePlan(draft, *plan, record);
  }
  record->phase = PodPhase::kPreparing;
  record->answer = nullptr;
  for (const ClaimUid& claim : record->claims) {
    ForgetOtherBoots(draft, claim, boot_id);
  }
  DEVMGR_RETURN_IF_ERROR(FreezeIfDone(state, draft, pod.uid, boot_id));
  if (plan == nullptr || old != nullptr) {
    // Its drivers have answered; the claims stay its own meanwhile.
    const PodRecord& booked = *draft.Pod(pod.uid);
    if (const auto held = FindAnsweredElsewhere(state, draft, booked);
        booked.phase == PodPhase::kPreparing && held.has_value()) {
      result.verdict = WaitForHardware("what a driver prepared", *held);
      return result;
    }
  }
  result.decision =
      draft.Finish(DecisionKind::kPrepareIntent, "claims are to be prepared");
  if (plan != nullptr) TakeNames(state, *plan, now_ms, &result.decision);
  return result;
}

Decision RecordPrepared(
    const State& state, const std::string& driver,
    const std::map<ClaimUid, std::vector<state::PreparedDevice>>& prepared,
    const std::string& boot_id, const SpecLook& look) {
  Draft draft(state);
  std::set<PodUid> pods;
  for (const auto& [uid, devices] : prepared) {
    const ClaimRecord* claim = state.FindClaim(uid);
    if (claim == nullptr) continue;
    const auto part = claim->drivers.find(driver);
    if (part == claim->drivers.end() ||
        part->second.phase == DriverPhase::kPrepared) {
      continue;
    }
    DriverRecord& answered = draft.EditClaim(uid)->drivers[driver];
    // Given up meanwhile, or to be unprepared first, it stays so; but the
    // driver has these now.
    if (StateOf(&answered) == ClaimState::kPreparing) {
      answered.phase = DriverPhase::kPrepared;
      TakeLook(look, uid, &answered);
    }
    answered.devices = devices;
    answered.boot_id = boot_id;
    answered.void_cdi_device_ids.clear();
    pods.insert(claim->pods.begin(), claim->pods.end());
  }
  for (const PodUid& uid : pods) {
    const PodRecord* pod = state.FindPod(uid);
    if (pod != nullptr && pod->phase == PodPhase::kPreparing) {
      // An error is ours, and the pod's next BookPod returns it.
      FreezeIfDone(state, draft, uid, boot_id).IgnoreError();
    }
  }
  return draft.Finish(DecisionKind::kPrepareResult,
                      fmt::format("driver {} prepared", driver));
}

}  // namespace devmgr::claim
