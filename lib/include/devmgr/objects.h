// SPDX-License-Identifier: Apache-2.0
//
// The Kubernetes objects that the node half of device management reads, as
// plain structs in the shape of core/v1 and resource.k8s.io/v1. Older API
// versions are converted to this shape when they are decoded
// (devmgr/manifests.h). Fields the node does not need are not kept.
#pragma once

#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace devmgr {

/// A Kubernetes quantity. `whole` and `nanos` have the same sign; numbers
/// beyond 64 bits are clamped, as upstream does. `text` is as it was written.
struct Quantity {
  std::int64_t whole = 0;
  std::int32_t nanos = 0;
  std::string text;

  bool IsZero() const { return whole == 0 && nanos == 0; }
  bool IsInteger() const { return nanos == 0; }
  /// Compares amounts, not spellings: `1000m` equals `1`.
  friend bool operator==(const Quantity& a, const Quantity& b) {
    return a.whole == b.whole && a.nanos == b.nanos;
  }
};

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
};

struct ObjectMeta {
  std::string name;
  std::string ns;  ///< Empty for objects of the whole cluster.
  /// Empty when the file gives none; the manager then derives one and keeps it.
  std::string uid;
  /// RFC 3339 as written; empty when absent.
  std::string creation_timestamp;
  std::string deletion_timestamp;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<OwnerReference> owner_references;

  ObjectName FullName() const { return {ns, name}; }
};

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
};

struct Pod {
  ObjectMeta metadata;
  PodSpec spec;
  PodStatus status;
};

/// What one request (or one alternative of it) asks for.
struct DeviceSubRequest {
  std::string name;
  std::string device_class_name;
  std::vector<std::string> selectors;  ///< CEL expressions; all must hold.
  std::string allocation_mode;         ///< `ExactCount` or `All`.
  std::int64_t count = 0;              ///< 0 with `All`.
};

/// A request of a claim: either `exactly` or alternatives, in order.
struct DeviceRequest {
  std::string name;
  std::optional<DeviceSubRequest> exactly;  ///< Its name is the request's.
  bool admin_access = false;
  std::vector<DeviceSubRequest> first_available;
};

/// One allocated device.
struct DeviceRequestAllocationResult {
  std::string request;  ///< `req` or `req/sub`.
  std::string driver;
  std::string pool;
  std::string device;
  bool admin_access = false;
  std::string share_id;  ///< Empty when absent.
  /// Calls that the device does without: `NodePrepareResources`,
  /// `NodeUnprepareResources`, `*`.
  std::vector<std::string> skip_node_operations;
};

/// What was allocated of one driver by structured parameters, in Kubernetes
/// 1.30. Parameters are JSON as it came; empty when absent.
struct StructuredResourceHandle {
  struct Result {
    std::string vendor_request_parameters;
    std::string named_resource;
    friend bool operator==(const Result&, const Result&) = default;
  };
  std::string vendor_class_parameters;
  std::string vendor_claim_parameters;
  std::string node_name;
  std::vector<Result> results;
  friend bool operator==(const StructuredResourceHandle&,
                         const StructuredResourceHandle&) = default;
};

/// What a control plane of Kubernetes 1.26 to 1.30 has for one driver, which
/// gets it with each call.
struct ResourceHandle {
  std::string data;
  std::optional<StructuredResourceHandle> structured;
  friend bool operator==(const ResourceHandle&,
                         const ResourceHandle&) = default;
};

struct AllocationResult {
  std::vector<DeviceRequestAllocationResult> results;
  /// It has a node selector, and that is not for one node by its name.
  bool many_nodes = false;
  /// By driver. Only of claims up to v1alpha2, which have no `results`.
  std::map<std::string, ResourceHandle> resource_handles;
};

/// An entry of `status.reservedFor`.
struct ResourceClaimConsumer {
  std::string api_group;
  std::string resource;
  std::string name;
  std::string uid;
};

struct ResourceClaimSpec {
  std::vector<DeviceRequest> requests;
};

struct ResourceClaimStatus {
  std::optional<AllocationResult> allocation;
  std::vector<ResourceClaimConsumer> reserved_for;
};

struct ResourceClaim {
  ObjectMeta metadata;
  ResourceClaimSpec spec;
  ResourceClaimStatus status;
};

struct ResourceClaimTemplate {
  ObjectMeta metadata;
  ResourceClaimSpec spec;
};

struct DeviceClass {
  ObjectMeta metadata;
  std::vector<std::string> selectors;  ///< CEL expressions.
  std::string extended_resource_name;  ///< Empty when none is set.
};

/// A version attribute; a type of its own so that it is not mixed up with text.
struct DeviceVersion {
  std::string value;
  friend bool operator==(const DeviceVersion&, const DeviceVersion&) = default;
};

using DeviceAttribute =
    std::variant<std::int64_t, bool, std::string, DeviceVersion>;

struct SliceDevice {
  std::string name;
  std::map<std::string, DeviceAttribute> attributes;
  std::map<std::string, Quantity> capacity;
};

struct ResourceSlice {
  ObjectMeta metadata;
  std::string driver;
  std::string pool;
  std::int64_t pool_generation = 0;
  std::int64_t pool_slice_count = 0;
  std::string node_name;
  bool all_nodes = false;
  std::vector<SliceDevice> devices;
};

struct Node {
  ObjectMeta metadata;
  std::map<std::string, Quantity> capacity;
  std::map<std::string, Quantity> allocatable;
};

}  // namespace devmgr
