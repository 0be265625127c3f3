// SPDX-License-Identifier: Apache-2.0
#include "admission/judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "claim/prepare_intent.h"
#include "claim/replaced_claim.h"

namespace devmgr::admission {
namespace {

using state::PodPhase;
using state::PodRecord;

Verdict WaitForDriver(const std::string& driver) {
  return {Verdict::Kind::kWait,
          "DriverNotRegistered",
          fmt::format("DRA driver {} is not registered", driver),
          {{WaitingFor::Kind::kDriver, driver}}};
}

Verdict WaitForPod(std::string reason, std::string message,
                   const ObjectName& pod) {
  return {Verdict::Kind::kWait,
          std::move(reason),
          std::move(message),
          {{WaitingFor::Kind::kPod, pod.ToString()}}};
}

/// Drivers that have to be called for the claim and are not there.
Verdict CheckDrivers(
    const ClaimUid& claim, const std::vector<std::string>& drivers,
    const std::map<std::string, state::SkippedOperations>& skipped,
    const JudgeInput& input) {
  Verdict verdict;
  const state::ClaimRecord* record = input.state.FindClaim(claim);
  for (const std::string& driver : drivers) {
    const auto skips = skipped.find(driver);
    if (skips != skipped.end() && skips->second.prepare) continue;
    if (record != nullptr) {
      const auto part = record->drivers.find(driver);
      if (part != record->drivers.end() &&
          !claim::NeedsPrepare(part->second, input.boot_id)) {
        continue;
      }
    }
    if (!input.driver_registered(driver)) {
      claim::Worsen(verdict, WaitForDriver(driver));
    }
  }
  return verdict;
}

/// An older pod of the same name is released before this one is judged.
Verdict CheckPredecessor(const Pod& pod, const state::State& state) {
  for (const PodUid& uid : state.PodsNamed(pod.metadata.FullName())) {
    if (uid.value == pod.metadata.uid) break;  // those after it are newer
    return WaitForPod(
        "PreviousPodReleasing",
        fmt::format("pod {} with UID {} is not released yet",
                    pod.metadata.FullName().ToString(), uid.value),
        pod.metadata.FullName());
  }
  return {};
}

/// The verdict that the ledger alone settles, if it does.
bool SettledByLedger(const PodRecord& record, const JudgeInput& input,
                     Judgement* judgement) {
  judgement->from_ledger = true;
  switch (record.phase) {
    case PodPhase::kRejected:
      judgement->verdict = {
          Verdict::Kind::kReject, record.reason, record.message, {}};
      return true;
    case PodPhase::kReleasing:
      judgement->verdict = WaitForPod(
          "PodReleasing",
          fmt::format("pod {} is being released", record.name.ToString()),
          record.name);
      return true;
    case PodPhase::kReady:
      // Only the ledger counts from here on, in another boot too.
      judgement->verdict = JudgeBooked(record, input);
      return true;
    case PodPhase::kWaiting:
    case PodPhase::kAllocating:
    case PodPhase::kAdmitted:
    case PodPhase::kPreparing:
      judgement->from_ledger = false;
      return false;
  }
  return false;
}

/// A pod waits, for this reason, for what the party does that allocates claims.
bool IsLeftToScheduler(std::string_view reason) {
  return reason == "ClaimNotCreated" || reason == "ClaimNotReserved" ||
         reason == "ClaimNotAllocated" || reason == "ExtendedResourceNotMapped";
}

}  // namespace

Verdict JudgeBooked(const PodRecord& pod, const JudgeInput& input) {
  Verdict verdict;
  if (pod.phase == PodPhase::kReady && pod.boot_id == input.boot_id) {
    return verdict;
  }
  for (const ClaimUid& claim : pod.claims) {
    const state::ClaimRecord* record = input.state.FindClaim(claim);
    if (record == nullptr) continue;
    std::vector<std::string> drivers;
    std::map<std::string, state::SkippedOperations> skipped;
    for (const auto& [name, part] : record->drivers) {
      drivers.push_back(name);
      skipped[name] = part.skipped;
    }
    claim::Worsen(verdict, CheckDrivers(claim, drivers, skipped, input));
  }
  return verdict;
}

Judgement Judge(const Pod& pod, const JudgeInput& input) {
  Judgement judgement;
  const PodUid uid{pod.metadata.uid};
  const PodRecord* record = input.state.FindPod(uid);
  if (record != nullptr && SettledByLedger(*record, input, &judgement)) {
    return judgement;
  }
  if (!pod.metadata.deletion_timestamp.empty()) {
    judgement.verdict =
        WaitForPod("PodTerminating",
                   fmt::format("pod {} is being deleted",
                               pod.metadata.FullName().ToString()),
                   pod.metadata.FullName());
    return judgement;
  }
  claim::PlanResult planned =
      claim::PlanPod(pod, input.objects, input.plan_options);
  judgement.verdict = std::move(planned.verdict);
  judgement.plan = std::move(planned.plan);
  claim::Worsen(judgement.verdict, CheckPredecessor(pod, input.state));
  const bool may_book_anew =
      record != nullptr && claim::MayBookAnew(*record, input.boot_id);
  judgement.book_anew =
      may_book_anew && claim::HoldsRecreated(input.state, input.objects, uid);
  for (const claim::PlannedClaim& planned_claim : judgement.plan.claims) {
    claim::Worsen(
        judgement.verdict,
        claim::CheckPlanned(input.state, planned_claim, uid, input.boot_id));
    judgement.book_anew =
        judgement.book_anew ||
        (may_book_anew &&
         claim::HoldsReplaced(input.state, planned_claim, uid));
    claim::Worsen(judgement.verdict,
                  CheckDrivers(planned_claim.uid, planned_claim.drivers,
                               planned_claim.skipped, input));
  }
  claim::Worsen(judgement.verdict,
                claim::CheckPlannedNames(input.state, judgement.plan, uid));
  SettleRejection(record, &judgement.verdict);
  return judgement;
}

void CompleteWait(Authority authority, const std::vector<WaitingFor>& or_for,
                  Verdict* verdict) {
  if (verdict->kind != Verdict::Kind::kWait) return;
  auto& all = verdict->waiting_for;
  all.insert(all.end(), or_for.begin(), or_for.end());
  if (authority == Authority::kScheduler &&
      IsLeftToScheduler(verdict->reason)) {
    verdict->message +=
        "; authority: scheduler, so a control plane has to do it";
  } else if (authority == Authority::kSplit &&
             IsLeftToScheduler(verdict->reason)) {
    verdict->message +=
        "; authority: split, which shares out devices of device plugins only, "
        "so a control plane has to do it";
  }
}

void SettleRejection(const PodRecord* record, Verdict* verdict) {
  if (verdict->kind != Verdict::Kind::kReject) return;
  if (record != nullptr && !record->claims.empty()) {
    verdict->kind = Verdict::Kind::kWait;
  } else {
    verdict->waiting_for.clear();
  }
}

Wake WakeBy(WaitingFor::Kind kind) {
  switch (kind) {
    case WaitingFor::Kind::kDevices:
    case WaitingFor::Kind::kFreeDevices:
    case WaitingFor::Kind::kFewerDevices:
    case WaitingFor::Kind::kTaint:
      return Wake::kInTurn;
    default:
      return Wake::kAtOnce;
  }
}

bool IsNeverMissed(WaitingFor::Kind kind) {
  switch (kind) {
    case WaitingFor::Kind::kResource:
    case WaitingFor::Kind::kDeviceClass:
    case WaitingFor::Kind::kClaimTemplate:
    case WaitingFor::Kind::kQuota:
    case WaitingFor::Kind::kAuthority:
      return true;
    default:
      return WakeBy(kind) == Wake::kInTurn;
  }
}

Wake WakeBy(const std::set<WaitingFor>& changes,
            const std::vector<WaitingFor>& waiting_for) {
  Wake wake = Wake::kNot;
  for (const WaitingFor& what : waiting_for) {
    if (changes.contains(what)) wake = std::max(wake, WakeBy(what.kind));
  }
  return wake;
}

}  // namespace devmgr::admission
