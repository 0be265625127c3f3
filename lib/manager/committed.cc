// SPDX-License-Identifier: Apache-2.0
//
// What follows when a batch is on disk: the projection moves, then the rooms
// that follow it hear of it, in the order in which they stand here.
#include <utility>

#include "common/status.h"
#include "manager/manager.h"
#include "pods/local_claims.h"

namespace devmgr::manager {
namespace {

bool IsReady(const std::shared_ptr<const state::PodRecord>& pod,
             const std::string& boot_id) {
  return pod != nullptr && pod->phase == state::PodPhase::kReady &&
         pod->boot_id == boot_id;
}

/// The pod held something, and holds nothing: it had to leave its devices, and
/// is known still.
bool HasLeft(const std::shared_ptr<const state::PodRecord>& before,
             const state::PodRecord& now) {
  return before != nullptr && before->phase != state::PodPhase::kWaiting &&
         before->phase != state::PodPhase::kRejected &&
         now.phase == state::PodPhase::kRejected;
}

std::string PreparedText(const state::PodRecord& pod) {
  if (!pod.claims.empty()) return "all claims are prepared";
  return pod.holds.empty() ? "the pod needs no devices"
                           : "all devices are allocated";
}

}  // namespace

void Manager::RegisterListeners() {
  const auto listen = [this](auto& room) {
    on_committed_.push_back(
        [&room](const ledger::Changes& changes) { room.OnCommitted(changes); });
  };
  // Pods that are gone are shown once more, as the rooms know them still.
  on_committed_.push_back(
      [this](const ledger::Changes& changes) { KeepGone(changes); });
  // Whether held devices work, and which are free: what pods are shown with
  // below, and what is decided with after that, follows from these.
  listen(*dra_health_);
  listen(*devices_);
  listen(*foreign_);
  on_committed_.push_back(
      [this](const ledger::Changes& changes) { ShowPods(changes); });
  listen(*use_);
  listen(*objects_);
  // Who owns a resource, before pods that wait for it have their turn.
  listen(*ownership_);
  listen(*authority_);
  listen(*device_admission_);
  on_committed_.push_back([this](const ledger::Changes& changes) {
    if (!changes.resources.empty()) node_status_->OnResources();
  });
  // What is owed is known before drivers are asked for it.
  listen(*debts_);
  listen(*specs_);
  listen(*lifecycle_);
  if (evictions_ != nullptr) listen(*evictions_);
  if (local_claims_ != nullptr) listen(*local_claims_);
  on_committed_.push_back([this](const ledger::Changes& changes) {
    ReportDecision(changes.decision);
  });
  // Pods are woken last: then all rooms have what they are judged by.
  on_committed_.push_back(
      [this](const ledger::Changes& changes) { WakePods(changes); });
}

void Manager::ApplyBatch(const state::Batch& batch) {
  const ledger::Changes changes = ledger::ChangesOf(state_, batch);
  dra_health_->OnCommitting(changes);
  const state::State before = state_;
  if (absl::Status status = state::Apply(state_, batch); !status.ok()) {
    // Cannot happen: the ledger thread applied the same batch.
    if (host_.log) host_.log(LogLevel::kError, MessageOf(status));
    return;
  }
  // Before what rooms make of it: a device that they find broken is in the
  // hands of its new pod.
  changes_->OnBatch(before, batch);
  for (const auto& on_committed : on_committed_) on_committed(changes);
  ExpectRuns();
}

void Manager::KeepGone(const ledger::Changes& changes) {
  for (const auto& [before, now] : changes.pods) {
    if (now == nullptr) gone_.push_back(InfoOf(*before));
  }
}

void Manager::ShowPods(const ledger::Changes& changes) {
  for (const auto& [before, now] : changes.pods) {
    if (now == nullptr) continue;
    OnPodChanged(now->uid);
    if (IsReady(now, boot_id_) && !IsReady(before, boot_id_)) {
      events_.Add(false, "Prepared", "Pod", now->name, PreparedText(*now));
    }
  }
  for (const PodInfo& pod : std::exchange(gone_, {})) ShowGone(pod);
}

void Manager::ShowGone(const PodInfo& pod) {
  const auto names = state_.PodsNamed(pod.name);
  names_.Put(pod.name, names);
  events_.Add(false, "Released", "Pod", pod.name, "pod is released");
  // Of that name there may be another one already.
  if (names.empty()) events_.OnObjectGone("Pod", pod.name);
  observers_->Tell([pod](DeviceManagerObserver& o) { o.OnPod(pod, true); });
  pod_status_->OnPods({pod.uid});
}

void Manager::ReportDecision(const state::Decision& decision) {
  const bool repair = decision.kind == state::DecisionKind::kRepair;
  if (!repair && decision.kind != state::DecisionKind::kForgiven) return;
  for (const ObjectName& claim : decision.claims) {
    events_.Add(true, repair ? "Repaired" : "DebtForgiven", "ResourceClaim",
                claim, decision.message);
  }
}

void Manager::WakePods(const ledger::Changes& changes) {
  std::vector<WaitingFor> freed;
  for (const auto& [before, now] : changes.pods) {
    if (now == nullptr || HasLeft(before, *now)) {
      freed.push_back({WaitingFor::Kind::kPod, before->name.ToString()});
    } else if (changes.decision.kind == state::DecisionKind::kForgiven &&
               now->phase == state::PodPhase::kReleasing) {
      // No driver is what this waits for any longer.
      JudgeAgain(now->uid);
    }
  }
  for (const auto& [before, now] : changes.claims) {
    if (now != nullptr) continue;
    freed.push_back({WaitingFor::Kind::kClaim, before->name.ToString()});
  }
  if (local_claims_ != nullptr) {
    const std::vector<WaitingFor> more = local_claims_->Freed(changes);
    freed.insert(freed.end(), more.begin(), more.end());
  }
  for (const auto& [before, now] : changes.holders) {
    const bool held = before != nullptr && !before->hardware.empty();
    if (!held ||
        (now != nullptr && now->hardware == before->hardware && now->Holds())) {
      continue;
    }
    freed.push_back({WaitingFor::Kind::kRuntime, before->endpoint});
  }
  for (const auto& [name, passage] : changes.resources) {
    freed.push_back({WaitingFor::Kind::kResource, name});
  }
  if (!freed.empty()) Wake(freed);
}

}  // namespace devmgr::manager
