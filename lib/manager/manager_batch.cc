// SPDX-License-Identifier: Apache-2.0
//
// What follows when a batch is on disk: the projection moves, and whom it
// concerns is told.
#include <algorithm>
#include <utility>
#include <variant>

#include "common/status.h"
#include "manager/manager.h"

namespace devmgr::manager {
namespace {

template <typename Map>
typename Map::mapped_type FindOrNull(const Map& map,
                                     const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found != map.end() ? found->second : nullptr;
}

std::set<std::string> NamesOf(
    const std::shared_ptr<const state::PodRecord>& pod) {
  return pod != nullptr ? state::ResourcesByClaims(*pod)
                        : std::set<std::string>();
}

bool IsReady(const std::shared_ptr<const state::PodRecord>& pod,
             const std::string& boot_id) {
  return pod != nullptr && pod->phase == state::PodPhase::kReady &&
         pod->boot_id == boot_id;
}

bool IsReleasing(const std::shared_ptr<const state::PodRecord>& pod) {
  return pod != nullptr && pod->phase == state::PodPhase::kReleasing;
}

std::string PreparedText(const state::PodRecord& pod) {
  if (!pod.claims.empty()) return "all claims are prepared";
  return pod.holds.empty() ? "the pod needs no devices"
                           : "all devices are allocated";
}

}  // namespace

Manager::Passages Manager::PassagesOf(const state::Batch& batch) const {
  Passages all;
  for (const state::Change& change : batch.decision.changes) {
    if (const auto* put = std::get_if<state::PutPod>(&change)) {
      all.pods.push_back({FindOrNull(state_.pods, put->pod->uid), put->pod});
    } else if (const auto* erase = std::get_if<state::ErasePod>(&change)) {
      all.pods.push_back({FindOrNull(state_.pods, erase->uid), nullptr});
    } else if (const auto* claim = std::get_if<state::PutClaim>(&change)) {
      all.claims.push_back(
          {FindOrNull(state_.claims, claim->claim->uid), claim->claim});
    } else if (const auto* freed = std::get_if<state::EraseClaim>(&change)) {
      all.claims.push_back({FindOrNull(state_.claims, freed->uid), nullptr});
    } else if (const auto* name = std::get_if<state::PutResource>(&change)) {
      all.resources[name->resource->name] = {
          FindOrNull(state_.resources, name->resource->name), name->resource};
    } else if (const auto* drop = std::get_if<state::EraseResource>(&change)) {
      all.resources[drop->name] = {FindOrNull(state_.resources, drop->name),
                                   nullptr};
    } else if (const auto* held = std::get_if<state::PutHolder>(&change)) {
      all.holders.push_back(
          {FindOrNull(state_.foreign_holders, held->holder->id), held->holder});
    } else if (const auto* left = std::get_if<state::EraseHolder>(&change)) {
      all.holders.push_back(
          {FindOrNull(state_.foreign_holders, left->id), nullptr});
    }
  }
  return all;
}

void Manager::ApplyBatch(const state::Batch& batch) {
  const Passages passages = PassagesOf(batch);
  for (const auto& [before, now] : passages.pods) {
    if (IsReleasing(now) && !IsReleasing(before)) {
      dra_health_->OnReleasing(*now);
    }
  }
  if (absl::Status status = state::Apply(state_, batch); !status.ok()) {
    // Cannot happen: the ledger thread applied the same batch.
    if (host_.log) host_.log(LogLevel::kError, MessageOf(status));
    return;
  }
  for (const auto& [before, now] : passages.claims) {
    dra_health_->OnClaim(before.get(), now.get());
  }
  if (!passages.claims.empty()) dra_health_->OnClaimsEnd();
  for (const auto& [before, now] : passages.pods) {
    if (now != nullptr) OnPodPut(before, now);
  }
  for (const auto& [before, now] : passages.pods) {
    if (now == nullptr) OnPodGone(*before);
  }
  for (const auto& [before, now] : passages.holders) {
    foreign_->OnRecorded(before.get(), now.get());
  }
  if (!passages.holders.empty()) devices_->OnForeignHolders();
  for (const auto& [before, now] : passages.pods) {
    OnNames(now != nullptr ? now->name : before->name, NamesOf(before),
            NamesOf(now));
  }
  for (const auto& [before, now] : passages.claims) {
    OnClaim(before.get(), now.get(), batch.decision.kind);
  }
  for (const auto& [before, now] : passages.pods) {
    if (IsReleasing(now) && !IsReleasing(before)) {
      lifecycle_->CarryOutRelease(now->uid);
    }
  }
  OnLastWord(batch.decision);
  if (batch.decision.kind == state::DecisionKind::kIdentity ||
      batch.decision.kind == state::DecisionKind::kReject) {
    objects_->OnIdentities();
  }
  if (batch.decision.kind == state::DecisionKind::kForgiven) {
    OnForgiven(passages);
  }
  std::vector<WaitingFor> freed;
  for (const auto& [before, now] : passages.pods) {
    if (now != nullptr) continue;
    freed.push_back({WaitingFor::Kind::kPod, before->name.ToString()});
  }
  for (const auto& [before, now] : passages.claims) {
    if (now != nullptr) continue;
    freed.push_back({WaitingFor::Kind::kClaim, before->name.ToString()});
  }
  for (const auto& [name, passage] : passages.resources) {
    ownership_->OnRecorded(name, passage.before.get(), passage.now.get());
    device_admission_->OnResource(name);
    freed.push_back({WaitingFor::Kind::kResource, name});
  }
  if (!freed.empty()) Wake(freed);
}

void Manager::OnForgiven(const Passages& passages) {
  for (const auto& [before, now] : passages.claims) {
    if (now == nullptr) lifecycle_->OnClaimDropped(before->uid);
  }
  // No driver is what these wait for any longer.
  for (const auto& [before, now] : passages.pods) {
    if (!IsReleasing(now)) continue;
    Tell([&, &uid = now->uid](DeviceManagerObserver& o) {
      o.OnJudgeAgain(uid);
    });
  }
}

void Manager::OnClaim(const state::ClaimRecord* before,
                      const state::ClaimRecord* now,
                      state::DecisionKind decision) {
  debts_->OnClaim(before, now, decision);
  if (now == nullptr) specs_->Forget(before->uid);
  const auto is_prepared = [](const state::ClaimRecord* claim,
                              const std::string& driver) {
    const auto part = claim->drivers.find(driver);
    return part != claim->drivers.end() &&
           part->second.phase == state::DriverPhase::kPrepared;
  };
  if (now != nullptr) {
    for (const auto& [driver, part] : now->drivers) {
      if (part.skipped.prepare && is_prepared(now, driver) &&
          (before == nullptr || !is_prepared(before, driver))) {
        metrics_.OnPrepareSkipped(driver);
      }
    }
  }
  if (before == nullptr) return;
  for (const auto& [driver, part] : before->drivers) {
    if (part.skipped.unprepare &&
        (now == nullptr || !now->drivers.contains(driver))) {
      metrics_.OnUnprepareSkipped(driver);
    }
  }
}

void Manager::OnLastWord(const state::Decision& decision) {
  const bool repair = decision.kind == state::DecisionKind::kRepair;
  if (!repair && decision.kind != state::DecisionKind::kForgiven) return;
  for (const ObjectName& claim : decision.claims) {
    events_.Add(true, repair ? "Repaired" : "DebtForgiven", "ResourceClaim",
                claim, decision.message);
  }
}

void Manager::OnPodPut(const std::shared_ptr<const state::PodRecord>& before,
                       const std::shared_ptr<const state::PodRecord>& now) {
  devices_->OnPod(now->uid, now->name, now.get());
  foreign_->OnPod(now->uid);
  OnPodChanged(now->uid);
  if (IsReady(now, boot_id_) && !IsReady(before, boot_id_)) {
    events_.Add(false, "Prepared", "Pod", now->name, PreparedText(*now));
  }
}

void Manager::OnPodGone(const state::PodRecord& pod) {
  const PodInfo info = InfoOf(pod);
  devices_->OnPod(pod.uid, pod.name, nullptr);
  dra_health_->Forget(pod.uid);
  use_->Forget(pod.uid);
  lifecycle_->Forget(pod.uid);
  device_admission_->Forget(pod.uid);
  objects_->OnPodGone();
  {
    MutexLock lock(names_mutex_);
    const auto names = state_.PodsNamed(pod.name);
    if (names.empty()) {
      names_.erase(pod.name);
    } else {
      names_[pod.name] = names;
    }
  }
  events_.Add(false, "Released", "Pod", pod.name, "pod is released");
  // Of that name there may be another one already.
  if (state_.PodsNamed(pod.name).empty()) {
    events_.OnObjectGone("Pod", pod.name);
  }
  Tell([&](DeviceManagerObserver& o) { o.OnPod(info, true); });
}

void Manager::OnNames(const ObjectName& pod,
                      const std::set<std::string>& before,
                      const std::set<std::string>& now) {
  for (const std::string& resource : now) {
    if (!before.contains(resource)) ownership_->OnClaimed(resource, pod);
  }
  for (const std::string& resource : before) {
    if (now.contains(resource)) continue;
    ownership_->Consider(resource);
    device_admission_->OnResource(resource);
  }
}

}  // namespace devmgr::manager
