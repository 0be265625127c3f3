// SPDX-License-Identifier: Apache-2.0
#include "pods/pod_lifecycle.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/names.h"
#include "api/pod.h"
#include "api/quote.h"
#include "claim/claim_names.h"
#include "claim/eviction.h"
#include "claim/held_hardware.h"
#include "claim/replaced_claim.h"
#include "common/status.h"
#include "device/pod_needs.h"
#include "view/pod_views.h"

namespace devmgr::pods {
namespace {

using state::PodPhase;
using state::PodRecord;

/// A driver's code goes through, unless it would tell our caller something
/// about the pod: whatever a driver refuses may work later.
absl::StatusCode CodeOfDriverError(const absl::Status& error) {
  const bool misleading = absl::IsFailedPrecondition(error) ||
                          absl::IsNotFound(error) || absl::IsCancelled(error);
  return misleading ? absl::StatusCode::kUnavailable : error.code();
}

constexpr char kFailedPrepare[] = "FailedPrepareDynamicResources";
constexpr char kFailedUnprepare[] = "FailedUnprepareDynamicResources";
constexpr char kUnallocated[] = "UnallocatedDevicePrepared";

bool IsAllocated(const AllocationResult& allocation, const std::string& driver,
                 const state::PreparedDevice& device) {
  const auto& results = allocation.results;
  return std::any_of(results.begin(), results.end(), [&](const auto& result) {
    return result.driver == driver && result.pool == device.pool &&
           result.device == device.device;
  });
}

/// Drivers answer for devices that their claim was not given. The containers
/// get them all the same: the driver may know better than an object that
/// changed since.
void TellUnallocated(const std::string& driver,
                     const DriverCalls::PreparedClaims& claims,
                     const state::State& state, const ObjectSnapshot& objects,
                     events::EventLog& events) {
  for (const auto& [uid, devices] : claims) {
    const state::ClaimRecord* record = state.FindClaim(uid);
    if (record == nullptr) continue;
    const auto found = objects.claims.find(record->name);
    if (found == objects.claims.end()) continue;
    const ResourceClaim& claim = *found->second;
    // Another claim of that name; and old allocations name no devices.
    if (claim.metadata.uid != uid.value || !claim.status.allocation ||
        claim.status.allocation->results.empty()) {
      continue;
    }
    for (const state::PreparedDevice& device : devices) {
      // Old drivers do not name them.
      if (device.device.empty()) continue;
      if (IsAllocated(*claim.status.allocation, driver, device)) continue;
      events.Add(true, kUnallocated, "ResourceClaim", record->name,
                 fmt::format("DRA driver {} prepared device {}/{}, which the "
                             "claim's allocation lacks",
                             driver, device.pool, device.device));
      break;  // One word for each claim will do.
    }
  }
}

bool IsPrepared(const std::shared_ptr<const state::ClaimRecord>& claim,
                const std::string& driver) {
  if (claim == nullptr) return false;
  const auto part = claim->drivers.find(driver);
  return part != claim->drivers.end() &&
         part->second.phase == state::DriverPhase::kPrepared;
}

}  // namespace

PodLifecycle::PodLifecycle(Parts parts)
    : parts_(std::move(parts)),
      calls_({parts_.drivers, parts_.ledger, parts_.state, parts_.boot_id,
              parts_.debt_rules, parts_.now_ms, parts_.executor,
              [this](const std::set<ClaimUid>& claims) { OnSettled(claims); },
              parts_.calls_at_once, parts_.keep_share_ids,
              [this](const std::string& driver,
                     const DriverCalls::PreparedClaims& claims) {
                TellUnallocated(driver, claims, parts_.state,
                                *parts_.objects.Current(), parts_.events);
              },
              parts_.look_at_answer, parts_.look_at_hardware,
              [this](const std::set<ClaimUid>& claims) {
                return Ending(claims);
              }}) {}

claim::PodIdentity PodLifecycle::IdentityOf(const Pod& pod) {
  return {PodUid{pod.metadata.uid}, pod.metadata.FullName()};
}

absl::Status PodLifecycle::Stopped() {
  return CancelledError("the manager stops");
}

admission::JudgeInput PodLifecycle::Input(const ObjectSnapshot& objects) const {
  return {parts_.state, objects, parts_.boot_id,
          [this](const std::string& driver) {
            return !stopped_ && parts_.drivers.IsRegistered(driver);
          },
          parts_.plan_options};
}

bool PodLifecycle::IsReady(const PodUid& uid) const {
  const PodRecord* pod = parts_.state.FindPod(uid);
  return pod != nullptr && pod->phase == PodPhase::kReady &&
         pod->boot_id == parts_.boot_id;
}

void PodLifecycle::Prepare(OperationId id, const PodUid& pod,
                           DeviceManager::Done done) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (stopped_) return done(Stopped());
  Begin(id, pod, true, std::move(done));
  if (IsReady(pod)) {
    EndIfSettled(id);
    return;
  }
  const std::vector<ObjectName> claims = ClaimsToRead(pod);
  if (claims.empty()) return Book(id, pod);
  parts_.objects.ReadAnew(claims, [this, id, claims](const absl::Status& s) {
    OnClaimsRead(id, claims, s);
  });
}

std::vector<ObjectName> PodLifecycle::ClaimsToRead(const PodUid& uid) const {
  const auto admitted = admitted_.find(uid);
  if (admitted == admitted_.end()) return {};
  const Pod& pod = *admitted->second;
  const auto objects = parts_.objects.Current();
  Verdict unused;
  const claim::ClaimNames names(pod, *objects, parts_.plan_options, &unused);
  std::vector<ObjectName> claims;
  for (const claim::NamedClaim& named : names.claims()) {
    ObjectName name{pod.metadata.ns, named.name};
    const auto found = objects->claims.find(name);
    if (found == objects->claims.end()) continue;  // It waits for it.
    if (parts_.state.FindClaim(ClaimUid{found->second->metadata.uid}) !=
        nullptr) {
      continue;
    }
    claims.push_back(std::move(name));
  }
  return claims;
}

void PodLifecycle::OnClaimsRead(OperationId id,
                                const std::vector<ObjectName>& claims,
                                const absl::Status& status) {
  const auto operation = operations_.find(id);
  if (operation == operations_.end()) return;  // cancelled
  const PodUid pod = operation->second.pod;
  if (status.ok()) return Book(id, pod);
  Verdict wait{
      Verdict::Kind::kWait, claim::kClaimUnavailable, MessageOf(status), {}};
  for (const ObjectName& name : claims) {
    wait.waiting_for.push_back({WaitingFor::Kind::kClaim, name.ToString()});
  }
  const auto finish = [this, id, status](const absl::StatusOr<Verdict>&) {
    if (!operations_.contains(id)) return;  // cancelled
    Finish(id, WithContext(status, "prepare dynamic resources"));
  };
  const auto admitted = admitted_.find(pod);
  if (admitted == admitted_.end()) return finish(Verdict{});
  RecordVerdict(id, IdentityOf(*admitted->second), wait, finish);
}

void PodLifecycle::Book(OperationId id, const PodUid& pod) {
  claim::PodIdentity identity{pod, {}};
  std::shared_ptr<const claim::PodPlan> plan;
  Verdict judged;
  bool book_anew = false;
  if (const auto admitted = admitted_.find(pod); admitted != admitted_.end()) {
    identity = IdentityOf(*admitted->second);
    identity.alignment = parts_.devices.AlignmentOf(pod);
    // What it was admitted for may have been withdrawn since.
    const auto objects = parts_.objects.Current();
    auto judgement = admission::Judge(*admitted->second, Input(*objects));
    if (!judgement.from_ledger) {
      judged = std::move(judgement.verdict);
      book_anew = judgement.book_anew;
      plan = std::make_shared<claim::PodPlan>(std::move(judgement.plan));
    }
  }
  using Booked = ledger::Ledger::Decided<Verdict>;
  parts_.ledger.Submit<Verdict>(
      [identity, plan, judged = std::move(judged), book_anew,
       terms = book_anew ? Terms(pod) : claim::ReleaseTerms(),
       now = parts_.now_ms(), boot_id = parts_.boot_id](
          const state::State& state) -> absl::StatusOr<Booked> {
        Verdict verdict = judged;
        if (verdict.kind == Verdict::Kind::kAdmit) {
          DEVMGR_ASSIGN_OR_RETURN(
              claim::BookResult booked,
              claim::BookPod(state, identity, now, plan.get(), boot_id));
          verdict = std::move(booked.verdict);
          if (verdict.kind == Verdict::Kind::kAdmit) {
            return Booked{std::move(booked.decision), std::move(verdict)};
          }
        }
        if (book_anew) {
          return Booked{
              claim::GiveUpReplaced(state, identity.uid, terms, boot_id),
              std::move(verdict)};
        }
        // Another pod was faster. That this one waits is recorded.
        state::Decision seen =
            claim::RecordSeen(state, identity, now, verdict.message);
        return Booked{std::move(seen), std::move(verdict)};
      },
      parts_.executor,
      [this, id, book_anew](const absl::StatusOr<Verdict>& verdict) {
        OnBooked(id, verdict, book_anew);
      });
}

void PodLifecycle::OnBooked(OperationId id,
                            const absl::StatusOr<Verdict>& verdict,
                            bool book_anew) {
  const auto operation = operations_.find(id);
  if (operation == operations_.end()) return;  // cancelled
  if (!verdict.ok()) {
    Finish(id, WithContext(verdict.status(), "prepare dynamic resources"));
    return;
  }
  if (verdict->kind != Verdict::Kind::kAdmit) {
    Note(operation->second.pod, *verdict);
    if (verdict->reason == claim::kDeviceHeldElsewhere ||
        verdict->reason == claim::kDeviceDoubleClaimed) {
      OnHeldElsewhere(operation->second.pod, *verdict);
    }
    // A pod that is to be rejected, that gives up what it holds, or whose
    // claims were made here and are gone, has to be admitted again; a wait ends
    // by itself.
    const bool lost = parts_.authority != nullptr &&
                      parts_.authority->Allocates() &&
                      verdict->reason == claim::kClaimNotFound;
    if (book_anew || lost) admitted_.erase(operation->second.pod);
    const bool again =
        book_anew || lost || verdict->kind == Verdict::Kind::kReject;
    Finish(id, MakeStatus(again ? absl::StatusCode::kAborted
                                : absl::StatusCode::kFailedPrecondition,
                          "prepare dynamic resources: " + verdict->message));
    return;
  }
  AskDrivers(id);
}

void PodLifecycle::OnHeldElsewhere(const PodUid& uid, const Verdict& verdict) {
  if (const PodRecord* pod = parts_.state.FindPod(uid)) {
    parts_.events.Add(true, verdict.reason, "Pod", pod->name, verdict.message);
  }
  // Others may be free.
  if (parts_.claims != nullptr) parts_.claims->GiveBack(uid);
}

void PodLifecycle::AskDrivers(OperationId id) {
  Operation& operation = operations_.at(id);
  const PodUid uid = operation.pod;
  if (!std::exchange(operation.recorded, true)) CountAsking(uid, 1);
  // What it waited for is there. A driver's error stays until it answers.
  const Verdict* note = known_.notes.Find(uid);
  if (note != nullptr && note->reason != kFailedPrepare) {
    known_.notes.erase(uid);
  }
  if (const PodRecord* pod = parts_.state.FindPod(uid)) {
    operation.claims = pod->claims;
    calls_.Drive(operation.claims);
    parts_.on_pod_changed(uid);
  }
  EndIfSettled(id);
}

void PodLifecycle::OnSettled(const std::set<ClaimUid>& claims) {
  std::vector<OperationId> concerned;
  for (const auto& [id, operation] : operations_) {
    if (std::any_of(operation.claims.begin(), operation.claims.end(),
                    [&](const auto& c) { return claims.contains(c); })) {
      concerned.push_back(id);
    }
  }
  for (const OperationId id : concerned) EndIfSettled(id);
}

void PodLifecycle::EndIfSettled(OperationId id) {
  const auto found = operations_.find(id);
  if (found == operations_.end()) return;
  const bool prepare = found->second.prepare;
  const PodUid uid = found->second.pod;
  const PodRecord* pod = parts_.state.FindPod(uid);
  if (pod == nullptr) {
    Finish(id, prepare
                   ? AbortedError("pod with UID '{}' was released", uid.value)
                   : absl::OkStatus());
    return;
  }
  const bool finished = prepare ? IsReady(uid) : pod->claims.empty();
  if (finished) {
    if (prepare) {
      known_.notes.erase(uid);
      admitted_.erase(uid);
    } else if (found->second.ends || found->second.evicts) {
      DecideLast(id, uid, found->second.evicts);
      return;
    }
    Finish(id, absl::OkStatus());
    return;
  }
  if (std::any_of(pod->claims.begin(), pod->claims.end(),
                  [&](const auto& c) { return calls_.IsUnderWay(c); })) {
    return;
  }
  if (prepare && pod->phase == PodPhase::kReleasing) {
    Finish(id, FailedPreconditionError("pod '{}' is being released",
                                       pod->name.ToString()));
    return;
  }
  if (prepare && pod->imported && calls_.Errors(pod->claims).empty()) {
    return FinishUnshown(id, *pod);
  }
  Finish(id, FailureOf(*pod, prepare));
}

absl::Status PodLifecycle::FailureOf(const PodRecord& pod, bool prepare) {
  Verdict note{Verdict::Kind::kWait,
               prepare ? kFailedPrepare : kFailedUnprepare,
               "",
               {}};
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  std::string text;
  for (const auto& [driver, error, is_of_ledger] : calls_.Errors(pod.claims)) {
    if (text.empty()) code = CodeOfDriverError(error);
    const std::string message = MessageOf(error);
    if (text.find(message) == std::string::npos) {
      text += (text.empty() ? "" : "; ") + message;
      if (!is_of_ledger && message.find(driver) == std::string::npos) {
        text += fmt::format(" (DRA driver {})", driver);
      }
    }
    if (is_of_ledger) continue;
    const WaitingFor what{WaitingFor::Kind::kDriver, driver};
    if (std::find(note.waiting_for.begin(), note.waiting_for.end(), what) ==
        note.waiting_for.end()) {
      note.waiting_for.push_back(what);
    }
  }
  if (text.empty()) text = "not every driver has been asked";
  note.message = fmt::format("{} dynamic resources: {}",
                             prepare ? "prepare" : "unprepare", text);
  parts_.events.Add(true, note.reason, "Pod", pod.name,
                    fmt::format("Failed to {}", note.message));
  const std::string message = note.message;
  Note(pod.uid, std::move(note));
  return MakeStatus(code, message);
}

void PodLifecycle::Cancel(OperationId id) {
  DEVMGR_ASSERT_ON(parts_.executor);
  simple_.erase(id);
  parts_.devices.Cancel(id);
  if (operations_.contains(id)) Finish(id, CancelledError("cancelled"));
}

void PodLifecycle::Stop() {
  DEVMGR_ASSERT_ON(parts_.executor);
  stopped_ = true;
  calls_.Stop();
  parts_.devices.Stop();
  simple_.clear();
  while (!operations_.empty()) {
    Finish(operations_.begin()->first, Stopped());
  }
}

PodLifecycle::Operation& PodLifecycle::Begin(OperationId id, const PodUid& pod,
                                             bool prepare,
                                             DeviceManager::Done done) {
  return operations_[id] = {.pod = pod,
                            .prepare = prepare,
                            .done = std::move(done),
                            .began = std::chrono::steady_clock::now()};
}

void PodLifecycle::Finish(OperationId id, const absl::Status& status) {
  const auto found = operations_.find(id);
  const Operation operation = std::move(found->second);
  operations_.erase(found);
  if (operation.recorded) CountAsking(operation.pod, -1);
  const auto took = std::chrono::steady_clock::now() - operation.began;
  if (operation.prepare) {
    parts_.metrics.OnClaimsPrepared(took, !status.ok());
  } else {
    parts_.metrics.OnClaimsUnprepared(took, !status.ok());
  }
  parts_.on_pod_changed(operation.pod);
  operation.done(status);
}

void PodLifecycle::Note(const PodUid& pod, Verdict verdict) {
  known_.notes.insert_or_assign(pod, std::move(verdict));
  parts_.on_pod_changed(pod);
}

const Verdict* PodLifecycle::NoteOf(const PodUid& pod) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return known_.notes.Find(pod);
}

void PodLifecycle::CountAsking(const PodUid& pod, int more) {
  const int* asking = known_.asking.Find(pod);
  const int now = (asking != nullptr ? *asking : 0) + more;
  if (now > 0) {
    known_.asking.insert_or_assign(pod, now);
  } else {
    known_.asking.erase(pod);
  }
}

/// Operations that a driver said it does not need.
void PodLifecycle::CountSkipped(const ledger::Changes& changes) {
  for (const auto& [before, now] : changes.claims) {
    if (now != nullptr) {
      for (const auto& [driver, part] : now->drivers) {
        if (part.skipped.prepare && IsPrepared(now, driver) &&
            !IsPrepared(before, driver)) {
          parts_.metrics.OnPrepareSkipped(driver);
        }
      }
    }
    if (before == nullptr) continue;
    for (const auto& [driver, part] : before->drivers) {
      if (part.skipped.unprepare &&
          (now == nullptr || !now->drivers.contains(driver))) {
        parts_.metrics.OnUnprepareSkipped(driver);
      }
    }
  }
}

void PodLifecycle::OnCommitted(const ledger::Changes& changes) {
  DEVMGR_ASSERT_ON(parts_.executor);
  for (const auto& pod : changes.pods) {
    if (ledger::BeginsRelease(pod)) CarryOutRelease(pod.now->uid);
    if (pod.now != nullptr) continue;
    known_.notes.erase(pod.before->uid);
    admitted_.erase(pod.before->uid);
  }
  CountSkipped(changes);
  if (changes.decision.kind != state::DecisionKind::kForgiven) return;
  for (const auto& [before, now] : changes.claims) {
    if (now != nullptr) continue;
    calls_.Forget(before->uid);
    OnSettled({before->uid});
  }
}

std::string PodLifecycle::LastError(const ClaimUid& claim,
                                    const std::string& driver) const {
  DEVMGR_ASSERT_ON(parts_.executor);
  return view::LastError(calls_.known(), claim, driver);
}

}  // namespace devmgr::pods
