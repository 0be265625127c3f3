// SPDX-License-Identifier: Apache-2.0
//
// Claims: what pods ask for, and what they were allocated, in the shape of
// resource.k8s.io/v1.
#pragma once

#include <devmgr/compact.h>
#include <devmgr/device_objects.h>
#include <devmgr/object_meta.h>
#include <devmgr/structured_parameters.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace devmgr {

/// A taint that a request puts up with.
struct DeviceToleration {
  std::string key;  ///< Empty, with `Exists`: any key.
  std::string op;   ///< `Equal`, which is the default, or `Exists`.
  std::string value;
  std::string effect;  ///< Empty: any.
  /// For how long after a taint with NoExecute came up; absent: for ever.
  std::optional<std::int64_t> toleration_seconds;
  friend bool operator==(const DeviceToleration&,
                         const DeviceToleration&) = default;
};

/// An attribute that is computed for constraints alone (KEP-6080).
struct DerivedAttribute {
  std::string name;
  std::string expression;  ///< CEL.
  friend bool operator==(const DerivedAttribute&,
                         const DerivedAttribute&) = default;
};

/// What one request (or one alternative of it) asks for.
struct DeviceSubRequest {
  std::string name;
  std::string device_class_name;
  std::vector<std::string> selectors;  ///< CEL expressions; all must hold.
  std::string allocation_mode;         ///< `ExactCount` or `All`.
  std::int64_t count = 0;              ///< 0 with `All`.
  std::vector<DeviceToleration> tolerations;
  SortedMap<Quantity> capacity_requests;
  std::vector<DerivedAttribute> derived_attributes;
  /// Of structured parameters of Kubernetes 1.30 alone: the device has to be of
  /// this driver, and selectors have that version's variables. Not in JSON.
  std::string named_driver;
  friend bool operator==(const DeviceSubRequest&,
                         const DeviceSubRequest&) = default;
};

/// A request of a claim: either `exactly` or alternatives, in order.
struct DeviceRequest {
  std::string name;
  std::optional<DeviceSubRequest> exactly;  ///< Its name is the request's.
  bool admin_access = false;
  /// It says that it has admin access or that it has none.
  bool says_admin_access = false;
  std::vector<DeviceSubRequest> first_available;
  friend bool operator==(const DeviceRequest&, const DeviceRequest&) = default;
};

/// What devices of several requests have in common. Has one of the two
/// attributes, with its domain.
struct DeviceConstraint {
  std::vector<std::string> requests;  ///< `req` or `req/sub`; empty: all.
  std::string match_attribute;        ///< All have the same value.
  std::string distinct_attribute;     ///< All have different values.
  friend bool operator==(const DeviceConstraint&,
                         const DeviceConstraint&) = default;
};

/// Configuration that a claim has for its requests.
struct DeviceClaimConfiguration {
  std::vector<std::string> requests;  ///< `req` or `req/sub`; empty: all.
  OpaqueDeviceConfiguration opaque;
  friend bool operator==(const DeviceClaimConfiguration&,
                         const DeviceClaimConfiguration&) = default;
};

/// Configuration that goes with allocated devices.
struct DeviceAllocationConfiguration {
  std::string source;                 ///< `FromClass` or `FromClaim`.
  std::vector<std::string> requests;  ///< `req` or `req/sub`; empty: all.
  OpaqueDeviceConfiguration opaque;
  friend bool operator==(const DeviceAllocationConfiguration&,
                         const DeviceAllocationConfiguration&) = default;
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
  std::vector<DeviceToleration> tolerations;  ///< All those of the request.
  std::vector<std::string> binding_conditions;
  std::vector<std::string> binding_failure_conditions;
  /// Of a shared device: what this share takes of each of its capacities.
  SortedMap<Quantity> consumed_capacity;
  friend bool operator==(const DeviceRequestAllocationResult&,
                         const DeviceRequestAllocationResult&) = default;
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
  std::vector<DeviceAllocationConfiguration> config;
  /// Nodes that reach the devices; absent: all.
  std::optional<NodeSelector> node_selector;
  /// It has a node selector, and that is not for one node by its name.
  bool many_nodes = false;
  std::string allocation_timestamp;  ///< RFC 3339; empty when absent.
  /// What drivers of Kubernetes 1.30 and before are called with, by driver.
  /// Claims up to v1alpha2 that are read have nothing else.
  std::map<std::string, ResourceHandle> resource_handles;
  /// Of claims up to v1alpha2: several pods may use it at once.
  bool shareable = false;
  /// The driver's own controller allocated it (until Kubernetes 1.31).
  std::string controller;
  friend bool operator==(const AllocationResult&,
                         const AllocationResult&) = default;
};

/// An entry of `status.reservedFor`.
struct ResourceClaimConsumer {
  std::string api_group;
  std::string resource;
  std::string name;
  std::string uid;
  friend bool operator==(const ResourceClaimConsumer&,
                         const ResourceClaimConsumer&) = default;
};

/// What a driver says of the network interface that a device is.
struct NetworkDeviceData {
  std::string interface_name;
  std::vector<std::string> ips;  ///< Addresses with prefix lengths.
  std::string hardware_address;
  friend bool operator==(const NetworkDeviceData&,
                         const NetworkDeviceData&) = default;
};

/// What a driver says of a device that it allocated.
struct AllocatedDeviceStatus {
  std::string driver;
  std::string pool;
  std::string device;
  std::string share_id;  ///< Empty when absent.
  std::vector<Condition> conditions;
  std::string data;  ///< A JSON object; empty when absent.
  std::optional<NetworkDeviceData> network_data;
  friend bool operator==(const AllocatedDeviceStatus&,
                         const AllocatedDeviceStatus&) = default;
};

struct ResourceClaimSpec {
  std::vector<DeviceRequest> requests;
  std::vector<DeviceConstraint> constraints;
  std::vector<DeviceClaimConfiguration> config;
  /// A driver's own controller allocates it, and nothing else may (until
  /// Kubernetes 1.31). Empty: a scheduler does.
  std::string controller;
  /// Of claims up to v1alpha2, in place of all of the above.
  std::optional<OldClaimSpec> old;
  friend bool operator==(const ResourceClaimSpec&,
                         const ResourceClaimSpec&) = default;
};

struct ResourceClaimStatus {
  std::optional<AllocationResult> allocation;
  std::vector<ResourceClaimConsumer> reserved_for;
  std::vector<AllocatedDeviceStatus> devices;
  /// Of claims up to v1alpha2: that of the class when it was allocated.
  std::string driver;
  friend bool operator==(const ResourceClaimStatus&,
                         const ResourceClaimStatus&) = default;
};

struct ResourceClaim {
  ObjectMeta metadata;
  ResourceClaimSpec spec;
  ResourceClaimStatus status;
  friend bool operator==(const ResourceClaim&, const ResourceClaim&) = default;
};

struct ResourceClaimTemplate {
  ObjectMeta metadata;
  /// Of the claims that are made from it.
  std::map<std::string, std::string> claim_labels;
  std::map<std::string, std::string> claim_annotations;
  ResourceClaimSpec spec;
  friend bool operator==(const ResourceClaimTemplate&,
                         const ResourceClaimTemplate&) = default;
};

}  // namespace devmgr
