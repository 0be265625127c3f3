// SPDX-License-Identifier: Apache-2.0
#include "support/builders.h"

#include <memory>
#include <utility>

namespace devmgr {

PodBuilder::PodBuilder(const std::string& name) {
  pod_.metadata.name = name;
  pod_.metadata.ns = kNamespace;
  pod_.metadata.uid = "u-" + name;
}

PodBuilder& PodBuilder::Uid(const std::string& uid) {
  pod_.metadata.uid = uid;
  return *this;
}

PodBuilder& PodBuilder::Deleted() {
  pod_.metadata.deletion_timestamp = "2026-01-02T03:04:05Z";
  return *this;
}

PodBuilder& PodBuilder::Claim(const std::string& pod_claim,
                              const std::string& claim) {
  pod_.spec.resource_claims.push_back({pod_claim, claim, std::nullopt});
  return *this;
}

PodBuilder& PodBuilder::Template(const std::string& pod_claim) {
  pod_.spec.resource_claims.push_back({pod_claim, std::nullopt, "template"});
  return *this;
}

PodBuilder& PodBuilder::EmptyClaim(const std::string& pod_claim) {
  pod_.spec.resource_claims.push_back({pod_claim, std::nullopt, std::nullopt});
  return *this;
}

PodBuilder& PodBuilder::Made(const std::string& pod_claim,
                             std::optional<std::string> claim) {
  pod_.status.resource_claim_statuses.push_back({pod_claim, std::move(claim)});
  return *this;
}

PodBuilder& PodBuilder::Container(const std::string& name) {
  pod_.spec.containers.push_back({.name = name});
  containers_ = &pod_.spec.containers;
  return *this;
}

PodBuilder& PodBuilder::InitContainer(const std::string& name) {
  pod_.spec.init_containers.push_back({.name = name});
  containers_ = &pod_.spec.init_containers;
  return *this;
}

PodBuilder& PodBuilder::Uses(const std::string& pod_claim,
                             const std::string& request) {
  containers_->back().resources.claims.push_back({pod_claim, request});
  return *this;
}

PodBuilder& PodBuilder::Requests(const std::string& resource, int quantity) {
  const Quantity amount{quantity, 0, std::to_string(quantity)};
  containers_->back().resources.requests[resource] = amount;
  containers_->back().resources.limits[resource] = amount;
  return *this;
}

PodBuilder& PodBuilder::SpecialClaim(const std::string& claim) {
  pod_.status.extended_resource_claim_status.emplace().resource_claim_name =
      claim;
  return *this;
}

PodBuilder& PodBuilder::Maps(const std::string& container,
                             const std::string& resource,
                             const std::string& request) {
  pod_.status.extended_resource_claim_status->request_mappings.push_back(
      {container, resource, request});
  return *this;
}

ClaimBuilder::ClaimBuilder(const std::string& name) {
  claim_.metadata.name = name;
  claim_.metadata.ns = kNamespace;
  claim_.metadata.uid = "u-" + name;
  claim_.status.allocation.emplace();
}

ClaimBuilder& ClaimBuilder::Uid(const std::string& uid) {
  claim_.metadata.uid = uid;
  return *this;
}

ClaimBuilder& ClaimBuilder::From(const std::string& driver,
                                 const std::string& device,
                                 const std::string& request) {
  claim_.status.allocation->results.push_back(
      {request, driver, "pool-1", device, false, ""});
  return *this;
}

ClaimBuilder& ClaimBuilder::NotAllocated() {
  claim_.status.allocation.reset();
  return *this;
}

ClaimBuilder& ClaimBuilder::AdminAccess() {
  for (auto& result : claim_.status.allocation->results) {
    result.admin_access = true;
  }
  return *this;
}

ClaimBuilder& ClaimBuilder::For(const std::string& pod_uid,
                                const std::string& pod) {
  claim_.status.reserved_for.push_back({"", "pods", pod, pod_uid});
  return *this;
}

ClaimBuilder& ClaimBuilder::OwnedBy(const OwnerReference& owner) {
  claim_.metadata.owner_references.push_back(owner);
  return *this;
}

ClaimBuilder ClaimForP(const std::string& name) {
  return ClaimBuilder(name).From(kDriver).For("u-P");
}

OwnerReference Owner(const std::string& uid, const std::string& name) {
  return {"v1", "Pod", name, uid, true};
}

ObjectSnapshot SnapshotOf(const std::vector<ResourceClaim>& claims,
                          const std::vector<Pod>& pods) {
  ObjectSnapshot snapshot;
  for (const ResourceClaim& claim : claims) {
    snapshot.claims.insert_or_assign(claim.metadata.FullName(),
                                     std::make_shared<ResourceClaim>(claim));
  }
  for (const Pod& pod : pods) {
    snapshot.pods.insert_or_assign(pod.metadata.FullName(),
                                   std::make_shared<Pod>(pod));
  }
  snapshot.complete = true;
  return snapshot;
}

state::PreparedDevice Prepared(const std::string& device,
                               std::vector<std::string> cdi_device_ids,
                               std::vector<std::string> requests) {
  return {std::move(requests), "pool-1", device, std::move(cdi_device_ids), ""};
}

}  // namespace devmgr
