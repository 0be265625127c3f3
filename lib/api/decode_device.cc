// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/device_parts.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxAttributesAndCapacities = 32;
constexpr std::size_t kMaxAttributeValues = 48;

/// Attributes and capacities, which count together.
void DecodeFigures(const Field& field, const Field& content, bool bare_capacity,
                   TextPool& texts, SliceDevice& device) {
  const auto attributes = content["attributes"].Members();
  const auto capacities = content["capacity"].Members();
  std::size_t values = 0;
  device.attributes.reserve(attributes.size());
  for (const auto& [name, attribute] : attributes) {
    attribute.Check(CheckDeviceKey(name));
    if (auto value = DecodeAttribute(attribute, texts)) {
      values += CountValues(*value);
      device.attributes.emplace(texts.Get(name), *std::move(value));
    }
  }
  device.capacity.reserve(capacities.size());
  for (const auto& [name, capacity] : capacities) {
    capacity.Check(CheckDeviceKey(name));
    std::optional<DeviceCapacity> value;
    if (!bare_capacity) {
      value =
          DecodeCapacity(capacity, device.allow_multiple_allocations, texts);
    } else if (auto amount = RequiredAmount(capacity)) {
      value = DeviceCapacity{*std::move(amount), nullptr};
    }
    if (value) device.capacity.emplace(texts.Get(name), *std::move(value));
  }
  const std::size_t count = attributes.size() + capacities.size();
  if (count > kMaxAttributesAndCapacities) {
    field.Error(
        fmt::format("has {} attributes and capacities, at most {} are allowed",
                    count, kMaxAttributesAndCapacities));
  }
  if (values > kMaxAttributeValues) {
    field.Error(
        fmt::format("has {} values of attributes, at most {} are allowed",
                    values, kMaxAttributeValues));
  }
}

/// Where the device is: one way of saying it if the slice leaves that to its
/// devices, and none otherwise.
void DecodeDevicePlace(const Field& field, const Field& content, bool has_place,
                       TextPool& texts, SliceDevice& device) {
  constexpr std::string_view kPlaces[] = {"nodeName", "nodeSelector",
                                          "allNodes"};
  const auto places = std::count_if(
      std::begin(kPlaces), std::end(kPlaces),
      [&](std::string_view place) { return content[place].IsPresent(); });
  if (has_place && places != 1) {
    field.Error(
        fmt::format("has {} of nodeName, nodeSelector and allNodes; exactly "
                    "one is required with perDeviceNodeSelection",
                    places));
  }
  if (!has_place && places != 0) {
    field.Error(
        "can have nodeName, nodeSelector or allNodes only if its slice has "
        "perDeviceNodeSelection: true");
  }
  const Field node_name = content["nodeName"];
  if (node_name.IsPresent()) {
    device.node_name = texts.Get(RequiredName(node_name, CheckSubdomain));
  }
  const Field selector = content["nodeSelector"];
  if (selector.IsMap())
    device.node_selector = DecodeNodeSelector(selector, true);
  const std::optional<bool> all_nodes = content["allNodes"].AsBool();
  device.all_nodes = all_nodes.value_or(false);
  if (all_nodes == false) content["allNodes"].Error("can only be true");
}

}  // namespace

SliceDevice DecodeDevice(const Field& field, const Field& content,
                         bool has_place, bool bare_capacity, TextPool& texts) {
  SliceDevice device;
  device.name = RequiredName(field["name"], CheckLabel);
  if (!content.IsMap()) return device;
  device.allow_multiple_allocations =
      content["allowMultipleAllocations"].BoolOr(false);
  DecodeFigures(field, content, bare_capacity, texts, device);
  DecodeDevicePlace(field, content, has_place, texts, device);
  device.taints = DecodeTaints(content["taints"]);
  device.consumes_counters =
      DecodeConsumption(content["consumesCounters"], texts);
  device.binds_to_node = content["bindsToNode"].BoolOr(false);
  BindingConditions binding = DecodeBindingConditions(content);
  device.binding_conditions = std::move(binding.conditions);
  device.binding_failure_conditions = std::move(binding.failure_conditions);
  device.node_allocatable_resources =
      DecodeNodeResources(content["nodeAllocatableResources"], device.capacity);
  return device;
}

}  // namespace devmgr::api
