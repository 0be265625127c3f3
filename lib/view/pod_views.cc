// SPDX-License-Identifier: Apache-2.0
#include "view/pod_views.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "api/meta.h"
#include "claim/call_need.h"
#include "common/status.h"
#include "state/views.h"
#include "view/health_views.h"

namespace devmgr::view {
namespace {

void DropMessages(std::vector<ContainerResourceStatus>* containers) {
  for (ContainerResourceStatus& container : *containers) {
    for (ResourceStatus& resource : container.resources) {
      for (ResourceHealth& device : resource.resources) device.message.clear();
    }
  }
}

/// A pod that was Ready in an earlier boot is Preparing until it is again.
bool IsOfEarlierBoot(const Moment& moment, const state::PodRecord& pod) {
  return moment.terms != nullptr && !pod.boot_id.empty() &&
         pod.boot_id != moment.terms->boot_id &&
         pod.phase != state::PodPhase::kReleasing &&
         pod.phase != state::PodPhase::kRejected && !pod.eviction.has_value();
}

/// What is said of the pod beyond the ledger; null: nothing.
const Verdict* NoteOf(const Moment& moment, const state::PodRecord& pod,
                      PodState state) {
  if (pod.phase == state::PodPhase::kRejected) return nullptr;
  const Verdict* note = moment.pods.notes.Find(pod.uid);
  // Of a Ready pod only that it is refused by what it asks for now, or why it
  // is not released.
  const bool counts =
      note != nullptr &&
      (state != PodState::kReady || note->kind == Verdict::Kind::kReject ||
       IsHeldByRuntime(*note));
  return counts ? note : nullptr;
}

std::string TextOf(const ClaimAtDriver& key, const Calls::Unanswered& call,
                   const state::ClaimRecord& claim, const state::State& state) {
  const auto& [uid, driver] = key;
  if (call.since_ms.has_value()) {
    return fmt::format(
        "DRA driver {} was asked at {} to {} ResourceClaim '{}' and has not "
        "answered yet",
        driver, api::TimestampOf(*call.since_ms),
        call.prepare ? "prepare" : "unprepare", claim.name.ToString());
  }
  const bool prepare =
      claim::NeedOf(state, uid, driver) == claim::CallNeed::kPrepare;
  return fmt::format(
      "the call that has DRA driver {} {} ResourceClaim '{}' waits for other "
      "calls to end",
      driver, prepare ? "prepare" : "unprepare", claim.name.ToString());
}

/// Adds which drivers the pod waits for while they are being asked.
void AddCalls(const Moment& moment, const state::PodRecord& pod,
              PodInfo* info) {
  std::string text;
  const auto& unanswered = moment.calls.unanswered;
  for (const ClaimUid& uid : pod.claims) {
    const state::ClaimRecord* claim = moment.state.FindClaim(uid);
    if (claim == nullptr) continue;
    for (auto call = unanswered.lower_bound({uid, ""});
         call != unanswered.end() && call->first.first == uid; ++call) {
      if (!text.empty()) text += "; ";
      text += TextOf(call->first, call->second, *claim, moment.state);
      const WaitingFor driver{WaitingFor::Kind::kDriver, call->first.second};
      auto& all = info->waiting_for;
      if (std::find(all.begin(), all.end(), driver) == all.end()) {
        all.push_back(driver);
      }
    }
  }
  if (text.empty()) return;
  if (info->reason.empty()) info->reason = "DriverAsked";
  if (!info->message.empty()) {
    info->message += "; ";
  } else if (info->state == PodState::kPreparing) {
    info->message = "being prepared: ";
  }
  info->message += text;
}

}  // namespace

bool IsHeldByRuntime(const Verdict& note) {
  return std::any_of(
      note.waiting_for.begin(), note.waiting_for.end(),
      [](const auto& what) { return what.kind == WaitingFor::Kind::kRuntime; });
}

PodState StateOf(const Moment& moment, const state::PodRecord& pod) {
  if (IsOfEarlierBoot(moment, pod)) return PodState::kPreparing;
  if (state::IsEvicting(pod) && pod.phase != state::PodPhase::kReleasing) {
    return PodState::kEvicting;
  }
  const PodState state = state::PodStateOf(pod.phase);
  return state == PodState::kPreparing &&
                 NoteOf(moment, pod, state) != nullptr &&
                 !moment.pods.asking.contains(pod.uid)
             ? PodState::kWaiting
             : state;
}

PodInfo InfoOf(const Moment& moment, const state::PodRecord& pod) {
  PodInfo info = state::PodInfoOf(pod, moment.state);
  if (moment.terms == nullptr) return info;
  if (moment.terms->health) {
    info.allocated_resources = AllocatedResourcesOf(moment, pod);
    if (!moment.terms->health_messages) {
      DropMessages(&info.allocated_resources);
    }
  }
  info.state = StateOf(moment, pod);
  if (IsOfEarlierBoot(moment, pod)) {
    info.reason = "Rebooted";
    info.message = "prepared in another boot, to be prepared again";
  }
  if (const Verdict* note = NoteOf(moment, pod, info.state)) {
    if (info.state == PodState::kEvicting) {
      info.message += "; " + note->message;
    } else {
      info.reason = note->reason;
      info.message = note->message;
    }
    info.waiting_for = note->waiting_for;
  }
  const bool may_wait =
      info.state != PodState::kReady && info.state != PodState::kRejected;
  if (may_wait) AddCalls(moment, pod, &info);
  return info;
}

ClaimInfo InfoOf(const Moment& moment, const state::ClaimRecord& claim) {
  ClaimInfo info = state::ClaimInfoOf(claim, moment.state);
  for (ClaimDriverInfo& driver : info.drivers) {
    driver.last_error = LastError(moment.calls, claim.uid, driver.driver);
  }
  return info;
}

std::vector<DebtInfo> DebtsOf(const Moment& moment) {
  std::vector<DebtInfo> debts = state::DebtsOf(moment.state);
  if (moment.terms == nullptr) return debts;
  for (DebtInfo& debt : debts) {
    debt.attempts = Attempts(moment.calls, moment.state, debt.uid, debt.driver);
    debt.policy = claim::DebtPolicyText(moment.terms->debt_rules.For(
        *moment.state.FindClaim(debt.uid), debt.driver));
  }
  return debts;
}

std::string LastError(const Calls& calls, const ClaimUid& claim,
                      const std::string& driver) {
  const Calls::Error* error = calls.errors.Find(ClaimAtDriver(claim, driver));
  return error != nullptr ? MessageOf(error->status) : "";
}

std::uint32_t Attempts(const Calls& calls, const state::State& state,
                       const ClaimUid& claim, const std::string& driver) {
  const std::uint32_t* counted =
      calls.attempts.Find(ClaimAtDriver(claim, driver));
  if (counted != nullptr) return *counted;
  const state::ClaimRecord* record = state.FindClaim(claim);
  if (record == nullptr) return 0;
  const auto part = record->drivers.find(driver);
  if (part == record->drivers.end() || !part->second.debt.has_value()) return 0;
  return part->second.debt->attempts;
}

}  // namespace devmgr::view
