// SPDX-License-Identifier: Apache-2.0
//
// The Kubernetes objects that the node half of device management reads, as
// plain structs in the shape of core/v1 and resource.k8s.io/v1. Older API
// versions are converted to this shape when they are decoded
// (devmgr/manifests.h). Fields the node does not need are not kept.
#pragma once

#include <devmgr/claim_objects.h>
#include <devmgr/compact.h>
#include <devmgr/device_objects.h>
#include <devmgr/object_meta.h>
#include <devmgr/structured_parameters.h>
#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace devmgr {

/// An entry of `resources.claims`. `request` is empty for the whole claim.
struct ContainerClaimReference {
  std::string name;
  std::string request;
};

struct ResourceRequirements {
  std::map<std::string, Quantity> limits;
  std::map<std::string, Quantity> requests;  ///< After defaulting from limits.
  std::vector<ContainerClaimReference> claims;
};

struct Container {
  std::string name;
  ResourceRequirements resources;
  /// `Always` on an init container makes it a sidecar; empty otherwise.
  std::string restart_policy;
  SharedText image;
};

/// An entry of `spec.resourceClaims`. Exactly one source is set in valid pods.
struct PodResourceClaim {
  std::string name;
  std::optional<std::string> resource_claim_name;
  std::optional<std::string> resource_claim_template_name;
};

struct PodSpec {
  std::string node_name;
  std::int32_t priority = 0;
  /// `schedulingGroup.podGroupName`; empty: the pod is in no group.
  std::string pod_group;
  std::vector<Container> init_containers;
  std::vector<Container> containers;
  std::vector<PodResourceClaim> resource_claims;
  /// `Always`, `OnFailure` or `Never`.
  std::string restart_policy = "Always";
  std::vector<std::string> readiness_gates;  ///< Types of conditions.
};

/// An entry of `status.resourceClaimStatuses`. No claim name: none is needed.
struct PodResourceClaimStatus {
  std::string name;
  std::optional<std::string> resource_claim_name;
};

/// KEP-5004: the request of the special claim that serves one resource of one
/// container.
struct ContainerExtendedResourceRequest {
  std::string container_name;
  std::string resource_name;
  std::string request_name;
  friend bool operator==(const ContainerExtendedResourceRequest&,
                         const ContainerExtendedResourceRequest&) = default;
};

/// KEP-5004: the claim made for the pod's extended resources.
struct PodExtendedResourceClaimStatus {
  std::string resource_claim_name;
  std::vector<ContainerExtendedResourceRequest> request_mappings;
};

struct PodStatus {
  std::string phase;
  std::vector<PodResourceClaimStatus> resource_claim_statuses;
  std::optional<PodExtendedResourceClaimStatus> extended_resource_claim_status;
  /// The status of the conditions that readiness gates name, by type.
  std::map<std::string, std::string> gate_conditions;
};

struct Pod {
  ObjectMeta metadata;
  PodSpec spec;
  PodStatus status;
  /// `metadata.generation`; 0: the server keeps none of pods.
  std::int64_t generation = 0;
};

/// A node: its metadata, whose labels node selectors look at, and its status.
struct Node {
  ObjectMeta metadata;
  std::map<std::string, Quantity> capacity;
  std::map<std::string, Quantity> allocatable;
  /// `status.declaredFeatures`, sorted.
  std::vector<std::string> declared_features;
};

}  // namespace devmgr
