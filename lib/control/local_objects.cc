// SPDX-License-Identifier: Apache-2.0
#include "control/local_objects.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace devmgr::control {
namespace {

using state::ClaimOrigin;
using state::LocalClaimRecord;
using state::LocalClaimUid;

/// The pod for which the claim was made; nothing for one of the source.
std::optional<ObjectName> OwnerOf(const LocalClaimRecord& record) {
  if (record.origin == ClaimOrigin::kSource) return std::nullopt;
  const ObjectMeta& metadata = record.object->metadata;
  for (const OwnerReference& owner : metadata.owner_references) {
    if (owner.controller) return ObjectName{metadata.ns, owner.name};
  }
  return std::nullopt;
}

bool HasStatus(const PodStatus& status, const std::string& pod_claim) {
  const auto& all = status.resource_claim_statuses;
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& item) { return item.name == pod_claim; });
}

void AddStatus(const LocalClaimRecord& record, PodStatus* status) {
  const std::string& name = record.object->metadata.name;
  switch (record.origin) {
    case ClaimOrigin::kSource:
      break;
    case ClaimOrigin::kTemplate:
      if (HasStatus(*status, record.pod_claim)) break;
      status->resource_claim_statuses.push_back({record.pod_claim, name});
      break;
    case ClaimOrigin::kExtendedResources:
      if (status->extended_resource_claim_status.has_value()) break;
      status->extended_resource_claim_status = {name, record.mappings};
      break;
  }
}

template <typename Key>
void Take(const Key& key, const LocalClaimUid& uid,
          std::map<Key, std::set<LocalClaimUid>>* index) {
  const auto all = index->find(key);
  all->second.erase(uid);
  if (all->second.empty()) index->erase(all);
}

/// Places what belongs at `name`, or takes it away.
template <typename T>
void PutOrErase(const ObjectName& name, std::shared_ptr<const T> object,
                ObjectMap<T>* objects) {
  if (object == nullptr) {
    objects->erase(name);
  } else {
    objects->insert_or_assign(name, std::move(object));
  }
}

template <typename T>
void AddChanged(const ObjectMap<T>& before, const ObjectMap<T>& now,
                std::set<ObjectName>* names) {
  now.VisitChangesSince(before, [&](const auto* was, const auto* is) {
    names->insert((was != nullptr ? was : is)->first);
  });
}

template <typename T>
std::shared_ptr<const T> Find(const ObjectMap<T>& objects,
                              const ObjectName& name) {
  const auto* found = objects.Find(name);
  return found == nullptr ? nullptr : *found;
}

bool IsAllocated(const ResourceClaim& claim,
                 const AllocatedDeviceStatus& status) {
  if (!claim.status.allocation.has_value()) return false;
  const auto& results = claim.status.allocation->results;
  return std::any_of(results.begin(), results.end(), [&](const auto& result) {
    return result.driver == status.driver && result.pool == status.pool &&
           result.device == status.device && result.share_id == status.share_id;
  });
}

/// The claim with what drivers say of the devices that it has.
std::shared_ptr<const ResourceClaim> WithDeviceStatus(
    std::shared_ptr<const ResourceClaim> claim,
    const ClaimDeviceStatus& status) {
  // One of that name that came later: nothing was said of its devices.
  if (claim->metadata.uid != status.uid) return claim;
  std::vector<AllocatedDeviceStatus> devices;
  std::copy_if(status.devices.begin(), status.devices.end(),
               std::back_inserter(devices),
               [&](const auto& each) { return IsAllocated(*claim, each); });
  if (devices == claim->status.devices) return claim;
  auto shown = std::make_shared<ResourceClaim>(*claim);
  shown->status.devices = std::move(devices);
  return shown;
}

}  // namespace

Pod WithLocalStatus(const Pod& pod, const state::State& state) {
  Pod shown = pod;
  for (const auto& [uid, record] : state.local_claims) {
    if (record->pod.value == pod.metadata.uid) {
      AddStatus(*record, &shown.status);
    }
  }
  return shown;
}

void LocalObjects::FollowRecords(const Records& records,
                                 std::set<ObjectName>* claims,
                                 std::set<ObjectName>* pods) {
  const auto note = [&](const LocalClaimRecord& record) {
    claims->insert(record.object->metadata.FullName());
    if (auto owner = OwnerOf(record); owner.has_value()) {
      pods->insert(*std::move(owner));
    }
  };
  records.VisitChangesSince(records_, [&](const auto* was, const auto* is) {
    if (was != nullptr) {
      note(*was->second);
      Take(was->second->object->metadata.FullName(), was->first, &by_claim_);
      Take(was->second->pod, was->first, &by_pod_);
    }
    if (is != nullptr) {
      note(*is->second);
      by_claim_[is->second->object->metadata.FullName()].insert(is->first);
      by_pod_[is->second->pod].insert(is->first);
    }
  });
  records_ = records;
}

std::shared_ptr<const ResourceClaim> LocalObjects::ClaimNow(
    const ObjectName& name) const {
  auto claim = DecidedClaim(name);
  const auto status = Find(statuses_, name);
  if (claim == nullptr || status == nullptr) return claim;
  return WithDeviceStatus(std::move(claim), *status);
}

std::shared_ptr<const ResourceClaim> LocalObjects::DecidedClaim(
    const ObjectName& name) const {
  const auto of_source = Find(source_claims_, name);
  const auto all = by_claim_.find(name);
  if (all == by_claim_.end()) return of_source;
  for (const LocalClaimUid& uid : all->second) {
    const LocalClaimRecord& record = **records_.Find(uid);
    // One of the source that is gone, too: it is in use, and protected.
    if (of_source == nullptr) return record.object;
    if (of_source->metadata.uid != uid.value) continue;
    auto shown = std::make_shared<ResourceClaim>(*of_source);
    shown->status.allocation = record.object->status.allocation;
    shown->status.reserved_for = record.object->status.reserved_for;
    shown->metadata.finalizers = record.object->metadata.finalizers;
    return shown;
  }
  return of_source;
}

std::shared_ptr<const Pod> LocalObjects::PodNow(const ObjectName& name) const {
  const auto of_source = Find(source_pods_, name);
  if (of_source == nullptr) return nullptr;
  const auto all = by_pod_.find(PodUid{of_source->metadata.uid});
  if (all == by_pod_.end()) return of_source;
  auto shown = std::make_shared<Pod>(*of_source);
  for (const LocalClaimUid& uid : all->second) {
    AddStatus(**records_.Find(uid), &shown->status);
  }
  return shown;
}

void LocalObjects::Show(const state::State& state, ObjectSnapshot* objects) {
  std::set<ObjectName> claims;
  std::set<ObjectName> pods;
  const bool none = state.local_claims.empty() && records_.empty() &&
                    objects->device_statuses.empty() && statuses_.empty();
  if (none) {
    source_claims_ = shown_claims_ = objects->claims;
    source_pods_ = shown_pods_ = objects->pods;
    return;
  }
  FollowRecords(state.local_claims, &claims, &pods);
  AddChanged(source_claims_, objects->claims, &claims);
  AddChanged(source_pods_, objects->pods, &pods);
  AddChanged(statuses_, objects->device_statuses, &claims);
  statuses_ = objects->device_statuses;
  source_claims_ = objects->claims;
  source_pods_ = objects->pods;
  for (const ObjectName& name : claims) {
    PutOrErase(name, ClaimNow(name), &shown_claims_);
  }
  for (const ObjectName& name : pods) {
    PutOrErase(name, PodNow(name), &shown_pods_);
  }
  objects->claims = shown_claims_;
  objects->pods = shown_pods_;
}

}  // namespace devmgr::control
