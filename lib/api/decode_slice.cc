// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "api/device_parts.h"
#include "api/meta.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxDevices = 128;
/// With taints, counters or list attributes.
constexpr std::size_t kMaxCostlyDevices = 64;

constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

/// A slice without a pool, as the text of KEP-5004 has it, is the only slice
/// of a pool that is named like the node.
void DefaultPool(const Field& pool, std::string_view node_name,
                 ResourceSlice& slice) {
  slice.pool =
      slice.node_name.empty() ? std::string(node_name) : slice.node_name;
  slice.pool_generation = 1;
  slice.pool_slice_count = 1;
  if (slice.pool.empty()) {
    pool.Error("is required (there is no node name to stand in for it)");
    return;
  }
  pool.Warn(
      fmt::format("is missing; taken as pool {}, generation 1, of 1 slice",
                  Quoted(slice.pool)));
  pool.Check(CheckPoolName(slice.pool));
}

void DecodePool(const Field& pool, ResourceSlice& slice) {
  if (!pool.IsMap()) return;
  slice.pool = RequiredName(pool["name"], CheckPoolName);
  slice.pool_generation =
      pool["generation"].AsInteger(0, kMaxInteger).value_or(0);
  const Field count = pool["resourceSliceCount"];
  if (!count.IsPresent()) count.Error("is required");
  slice.pool_slice_count = count.AsInteger(1, kMaxInteger).value_or(1);
}

/// Whether anything stands there but what v1beta1 writes for nothing: there,
/// an empty name and false are the same as absence.
bool SaysPlace(const Field& field, bool is_flat) {
  if (!field.IsPresent()) return false;
  const Value& value = *field.value();
  const bool is_nothing =
      (value.kind == Value::Kind::kString && value.text.empty()) ||
      (value.kind == Value::Kind::kBool && !value.flag);
  return !is_flat || !is_nothing;
}

/// Where the devices can be reached: exactly one way of saying it.
void DecodePlace(const Field& spec, bool is_flat, ResourceSlice& slice) {
  constexpr std::string_view kPlaces[] = {"nodeName", "nodeSelector",
                                          "allNodes", "perDeviceNodeSelection"};
  const auto places = std::count_if(
      std::begin(kPlaces), std::end(kPlaces),
      [&](std::string_view place) { return SaysPlace(spec[place], is_flat); });
  if (places != 1) {
    spec.Error(
        fmt::format("has {} of nodeName, nodeSelector, allNodes and "
                    "perDeviceNodeSelection; exactly one is required",
                    places));
  }
  const Field node_name = spec["nodeName"];
  if (SaysPlace(node_name, is_flat)) {
    slice.node_name = RequiredName(node_name, CheckSubdomain);
  }
  const Field selector = spec["nodeSelector"];
  if (selector.IsMap())
    slice.node_selector = DecodeNodeSelector(selector, true);
  const auto only_true = [&](std::string_view key) {
    const bool flag = spec[key].AsBool().value_or(false);
    if (!flag && SaysPlace(spec[key], is_flat) &&
        spec[key].value()->kind == Value::Kind::kBool) {
      spec[key].Error("can only be true");
    }
    return flag;
  };
  slice.all_nodes = only_true("allNodes");
  slice.per_device_node_selection = only_true("perDeviceNodeSelection");
}

/// What makes a device cost more than its place in the list.
bool IsCostly(const SliceDevice& device) {
  return !device.taints.empty() || !device.consumes_counters.empty() ||
         std::any_of(device.attributes.begin(), device.attributes.end(),
                     [](const auto& entry) { return IsList(entry.second); });
}

void DecodeDevices(const Field& list, ResourceVersion version,
                   ResourceSlice& slice) {
  CheckCount(list, kMaxDevices);
  const bool is_flat = HasFlatRequests(version);
  const bool bare_capacity = version == ResourceVersion::kV1Alpha3;
  TextPool texts;
  std::set<std::string> names;
  const auto items = list.Items();
  slice.devices.reserve(items.size());
  for (const Field& item : items) {
    if (!item.RequireMap()) continue;
    SliceDevice device =
        DecodeDevice(item, is_flat ? item["basic"] : item,
                     slice.per_device_node_selection, bare_capacity, texts);
    if (!device.name.empty() && !names.insert(device.name).second) {
      item["name"].Error(
          fmt::format("{} is the name of another device", Quoted(device.name)));
    }
    slice.devices.push_back(std::move(device));
  }
  const std::size_t count = slice.devices.size();
  if (count > kMaxCostlyDevices && count <= kMaxDevices &&
      std::any_of(slice.devices.begin(), slice.devices.end(), IsCostly)) {
    list.Error(fmt::format(
        "has {} entries, at most {} are allowed when one has taints, "
        "consumesCounters or a list as an attribute",
        count, kMaxCostlyDevices));
  }
}

/// The attribute that says what kind of partition each device is that consumes
/// counters.
void DecodePartitionType(const Field& spec, ResourceSlice& slice) {
  const Field field = spec["partitionTypeAttribute"];
  if (!field.IsPresent()) return;
  slice.partition_type_attribute = RequiredName(field, CheckFullDeviceKey);
  const std::string_view name = slice.partition_type_attribute;
  if (!CheckFullDeviceKey(name).empty()) return;
  const bool is_own = name.substr(0, name.find('/')) == slice.driver;
  bool is_used = false;
  for (const SliceDevice& device : slice.devices) {
    if (device.consumes_counters.empty()) continue;
    is_used = true;
    const DeviceAttribute* value = device.attributes.Find(name);
    if (value == nullptr && is_own) {
      value = device.attributes.Find(name.substr(name.find('/') + 1));
    }
    if (value == nullptr || !std::holds_alternative<SharedText>(*value)) {
      field.Error(fmt::format(
          "device {} consumes counters and has no attribute {} of kind string",
          Quoted(device.name), Quoted(name)));
    }
  }
  if (!is_used) field.Error("needs a device that consumes counters");
}

}  // namespace

ResourceSlice DecodeResourceSlice(const Field& root, ResourceVersion version,
                                  std::string_view node_name) {
  ResourceSlice slice;
  slice.metadata = DecodeMeta(root, Scope::kCluster);
  CheckMeta(root, slice.metadata);
  const Field spec = root["spec"];
  if (!spec.RequireMap()) return slice;
  slice.driver = RequiredName(spec["driver"], CheckDriverName);
  DecodePlace(spec, HasFlatRequests(version), slice);
  if (const Field pool = spec["pool"]; pool.IsPresent()) {
    DecodePool(pool, slice);
  } else {
    DefaultPool(pool, node_name, slice);
  }
  DecodeDevices(spec["devices"], version, slice);
  const Field counters = spec["sharedCounters"];
  slice.shared_counters = DecodeCounterSets(counters);
  if (!slice.devices.empty() && !slice.shared_counters.empty()) {
    counters.Warn(
        "stands beside devices; since Kubernetes 1.35 a slice has one of the "
        "two");
  }
  slice.skip_node_operations =
      DecodeSkippedOperations(spec["skipNodeOperations"]);
  DecodePartitionType(spec, slice);
  return slice;
}

}  // namespace devmgr::api
