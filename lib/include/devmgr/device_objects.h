// SPDX-License-Identifier: Apache-2.0
//
// What drivers and administrators publish of devices, in the shape of
// resource.k8s.io/v1: slices, classes, taint rules.
#pragma once

#include <devmgr/compact.h>
#include <devmgr/object_meta.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace devmgr {

/// What a node's labels or fields have to be like.
struct NodeSelectorRequirement {
  std::string key;
  std::string op;  ///< `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`.
  std::vector<std::string> values;
  friend bool operator==(const NodeSelectorRequirement&,
                         const NodeSelectorRequirement&) = default;
};

/// Holds when all of its requirements do, and one at least is there.
struct NodeSelectorTerm {
  std::vector<NodeSelectorRequirement> match_expressions;  ///< Of labels.
  /// Of fields: `metadata.name` alone.
  std::vector<NodeSelectorRequirement> match_fields;
  friend bool operator==(const NodeSelectorTerm&,
                         const NodeSelectorTerm&) = default;
};

/// Holds when one of its terms does.
struct NodeSelector {
  RareVector<NodeSelectorTerm> terms;
  friend bool operator==(const NodeSelector&, const NodeSelector&) = default;
};

/// A version attribute; a type of its own so that it is not mixed up with text.
struct DeviceVersion {
  SharedText value;
  friend bool operator==(const DeviceVersion&, const DeviceVersion&) = default;
};

/// A value, or a list of values of one kind, which has one at least.
using DeviceAttribute =
    std::variant<std::int64_t, bool, SharedText, DeviceVersion,
                 RareVector<std::int64_t>, RareVector<bool>,
                 RareVector<SharedText>, RareVector<DeviceVersion>>;

/// Amounts that a request for a shared capacity may get: from `min` in steps up
/// to `max`, or up to the device's own value where there is no `max`.
struct CapacityRange {
  Quantity min;
  std::optional<Quantity> max;
  std::optional<Quantity> step;
  friend bool operator==(const CapacityRange&, const CapacityRange&) = default;
};

/// How requests for a capacity of a shared device are rounded. Has
/// `valid_values` or `valid_range` or neither.
struct CapacityRequestPolicy {
  std::optional<Quantity> default_value;  ///< Of requests that name no amount.
  std::vector<Quantity> valid_values;     ///< Ascending.
  std::optional<CapacityRange> valid_range;
  friend bool operator==(const CapacityRequestPolicy&,
                         const CapacityRequestPolicy&) = default;
};

struct DeviceCapacity {
  Quantity value;
  std::shared_ptr<const CapacityRequestPolicy> request_policy;  ///< Or null.
  friend bool operator==(const DeviceCapacity& a, const DeviceCapacity& b) {
    if ((a.request_policy == nullptr) != (b.request_policy == nullptr)) {
      return false;
    }
    return a.value == b.value && (a.request_policy == nullptr ||
                                  *a.request_policy == *b.request_policy);
  }
};

struct DeviceTaint {
  std::string key;
  std::string value;
  /// `None`, `NoSchedule`, `NoExecute`, or one of a newer API server.
  std::string effect;
  std::string time_added;  ///< RFC 3339 as written; empty when absent.
  friend bool operator==(const DeviceTaint&, const DeviceTaint&) = default;
};

/// What a device takes of a set of counters while it is allocated.
struct DeviceCounterConsumption {
  SharedText counter_set;
  SortedMap<Quantity> counters;
  /// Devices of different groups do not draw on one set (KEP-5963).
  RareVector<SharedText> compatibility_groups;
  friend bool operator==(const DeviceCounterConsumption&,
                         const DeviceCounterConsumption&) = default;
};

/// What a pod takes of a resource of its node for a device that it was given
/// (KEP-5517).
struct NodeAllocatableResource {
  std::string resource;  ///< `cpu`, `memory`, `hugepages-2Mi` and the like.
  /// Consumed capacity of this name times `capacity_multiplier`; or, when it
  /// is empty, `device_multiplier`.
  std::string capacity_key;
  std::optional<Quantity> capacity_multiplier;
  std::optional<Quantity> device_multiplier;
  std::optional<Quantity> overhead_per_pod;
  std::optional<Quantity> overhead_per_container;
  bool HasMapping() const {
    return capacity_multiplier.has_value() || device_multiplier.has_value();
  }
  friend bool operator==(const NodeAllocatableResource&,
                         const NodeAllocatableResource&) = default;
};

/// A device of a slice. Of devices there are many: what most have none of takes
/// 8 bytes, and texts are shared.
struct SliceDevice {
  std::string name;
  /// By name, which may have a domain; without one it is the driver's.
  SortedMap<DeviceAttribute> attributes;
  SortedMap<DeviceCapacity> capacity;
  RareVector<DeviceTaint> taints;
  RareVector<DeviceCounterConsumption> consumes_counters;
  RareVector<std::string> binding_conditions;
  RareVector<std::string> binding_failure_conditions;
  RareVector<NodeAllocatableResource> node_allocatable_resources;
  /// Where the device is, if its slice leaves that to devices: one of the
  /// three.
  SharedText node_name;
  std::optional<NodeSelector> node_selector;
  bool all_nodes = false;
  bool binds_to_node = false;
  bool allow_multiple_allocations = false;
  friend bool operator==(const SliceDevice&, const SliceDevice&) = default;
};

/// Counters that devices of a pool share.
struct CounterSet {
  std::string name;
  SortedMap<Quantity> counters;
  friend bool operator==(const CounterSet&, const CounterSet&) = default;
};

struct ResourceSlice {
  ObjectMeta metadata;
  std::string driver;
  std::string pool;
  std::int64_t pool_generation = 0;
  /// 0: as many as there are, as with slices of v1alpha2, which do not say.
  std::int64_t pool_slice_count = 0;
  /// Where its devices are: one of the four.
  std::string node_name;
  std::optional<NodeSelector> node_selector;
  bool all_nodes = false;
  bool per_device_node_selection = false;
  std::vector<SliceDevice> devices;
  std::vector<CounterSet> shared_counters;
  /// `NodePrepareResources`, `NodeUnprepareResources`, `*`.
  std::vector<std::string> skip_node_operations;
  /// Name of the attribute that says what kind of partition a device is;
  /// empty when absent.
  std::string partition_type_attribute;
  friend bool operator==(const ResourceSlice&, const ResourceSlice&) = default;
};

/// Configuration for a driver, which alone understands it.
struct OpaqueDeviceConfiguration {
  std::string driver;
  std::string parameters;  ///< A JSON object.
  friend bool operator==(const OpaqueDeviceConfiguration&,
                         const OpaqueDeviceConfiguration&) = default;
};

struct DeviceClass {
  ObjectMeta metadata;
  std::vector<std::string> selectors;  ///< CEL expressions; all must hold.
  std::vector<OpaqueDeviceConfiguration> config;
  std::string extended_resource_name;  ///< Empty when none is set.
  friend bool operator==(const DeviceClass&, const DeviceClass&) = default;
};

/// Selects devices that have all of what is set.
struct DeviceTaintSelector {
  std::optional<std::string> driver;
  std::optional<std::string> pool;
  std::optional<std::string> device;
  friend bool operator==(const DeviceTaintSelector&,
                         const DeviceTaintSelector&) = default;
};

/// A taint that an administrator lays on devices.
struct DeviceTaintRule {
  ObjectMeta metadata;
  /// Absent: no device. Present and empty: all devices.
  std::optional<DeviceTaintSelector> device_selector;
  DeviceTaint taint;
  std::vector<Condition> conditions;
  friend bool operator==(const DeviceTaintRule&,
                         const DeviceTaintRule&) = default;
};

}  // namespace devmgr
