// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "api/meta.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"
#include "api/semver.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxDevices = 128;
constexpr std::size_t kMaxAttributesAndCapacities = 32;
constexpr std::size_t kMaxDomainBytes = 63;
constexpr std::size_t kMaxIdentifierBytes = 32;
constexpr std::size_t kMaxAttributeTextBytes = 64;

constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

bool IsIdentifier(std::string_view text) {
  auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && text.size() <= kMaxIdentifierBytes &&
         is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9');
         });
}

/// The name of an attribute or capacity: an optional domain, then a C
/// identifier.
std::string CheckDeviceKey(std::string_view name) {
  const std::size_t slash = name.find('/');
  const bool has_domain = slash != std::string_view::npos;
  const std::string_view domain = has_domain ? name.substr(0, slash) : "";
  if (has_domain &&
      (domain.size() > kMaxDomainBytes || !CheckSubdomain(domain).empty())) {
    return fmt::format(
        "the domain of {} is not a DNS subdomain of at most {} "
        "characters",
        Quoted(name), kMaxDomainBytes);
  }
  if (IsIdentifier(has_domain ? name.substr(slash + 1) : name)) return "";
  return fmt::format(
      "{} is not an attribute name: an optional domain and '/', then up to {} "
      "letters, digits and '_', not beginning with a digit",
      Quoted(name), kMaxIdentifierBytes);
}

void CheckAttributeText(const Field& field, std::string_view text) {
  if (text.size() <= kMaxAttributeTextBytes) return;
  field.Error(fmt::format("has {} bytes, at most {} are allowed", text.size(),
                          kMaxAttributeTextBytes));
}

/// Nothing for the list kinds, which are not kept.
std::optional<DeviceAttribute> DecodeAttribute(const Field& field) {
  constexpr std::string_view kKinds[] = {"int",     "bool",    "string",
                                         "version", "ints",    "bools",
                                         "strings", "versions"};
  if (!field.RequireMap()) return std::nullopt;
  const auto kinds = std::count_if(
      std::begin(kKinds), std::end(kKinds),
      [&](std::string_view kind) { return field[kind].IsPresent(); });
  if (kinds != 1) {
    field.Error(fmt::format(
        "has {} values; exactly one of int, bool, string, version is required",
        kinds));
    return std::nullopt;
  }
  if (const auto number = field["int"].AsInteger()) return *number;
  if (const auto flag = field["bool"].AsBool()) return *flag;
  if (auto text = field["string"].AsString()) {
    CheckAttributeText(field["string"], *text);
    return SharedText(*text);
  }
  if (auto version = field["version"].AsString()) {
    CheckAttributeText(field["version"], *version);
    if (!IsSemanticVersion(*version)) {
      field["version"].Error(
          fmt::format("{} is not a semantic version 2.0.0", Quoted(*version)));
    }
    return DeviceVersion{*version};
  }
  return std::nullopt;
}

SliceDevice DecodeDevice(const Field& field, ResourceVersion version) {
  SliceDevice device;
  device.name = RequiredName(field["name"], CheckLabel);
  const Field content = HasFlatRequests(version) ? field["basic"] : field;
  if (!content.IsMap()) return device;
  std::size_t count = 0;
  for (const auto& [name, attribute] : content["attributes"].Members()) {
    ++count;
    attribute.Check(CheckDeviceKey(name));
    if (auto value = DecodeAttribute(attribute)) {
      device.attributes.emplace(name, *std::move(value));
    }
  }
  for (const auto& [name, capacity] : content["capacity"].Members()) {
    ++count;
    capacity.Check(CheckDeviceKey(name));
    const bool is_plain = version == ResourceVersion::kV1Alpha3;
    if (!is_plain && !capacity.RequireMap()) continue;
    const Field amount = is_plain ? capacity : capacity["value"];
    if (!amount.IsPresent()) amount.Error("is required");
    if (auto quantity = amount.AsQuantity()) {
      device.capacity.emplace(name, {*std::move(quantity), nullptr});
    }
  }
  if (count > kMaxAttributesAndCapacities) {
    field.Error(
        fmt::format("has {} attributes and capacities, at most {} are allowed",
                    count, kMaxAttributesAndCapacities));
  }
  return device;
}

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

/// Where the devices can be reached: exactly one way of saying it.
void DecodePlace(const Field& spec, ResourceSlice& slice) {
  constexpr std::string_view kPlaces[] = {"nodeName", "nodeSelector",
                                          "allNodes", "perDeviceNodeSelection"};
  const auto places = std::count_if(
      std::begin(kPlaces), std::end(kPlaces),
      [&](std::string_view place) { return spec[place].IsPresent(); });
  if (places != 1) {
    spec.Error(
        fmt::format("has {} of nodeName, nodeSelector, allNodes and "
                    "perDeviceNodeSelection; exactly one is required",
                    places));
  }
  const Field node_name = spec["nodeName"];
  if (node_name.IsPresent()) {
    slice.node_name = RequiredName(node_name, CheckSubdomain);
  }
  spec["nodeSelector"].IsMap();
  const std::optional<bool> all_nodes = spec["allNodes"].AsBool();
  const std::optional<bool> per_device =
      spec["perDeviceNodeSelection"].AsBool();
  slice.all_nodes = all_nodes.value_or(false);
  if (all_nodes == false) spec["allNodes"].Error("can only be true");
  if (per_device == false) {
    spec["perDeviceNodeSelection"].Error("can only be true");
  }
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
  DecodePlace(spec, slice);
  if (const Field pool = spec["pool"]; pool.IsPresent()) {
    DecodePool(pool, slice);
  } else {
    DefaultPool(pool, node_name, slice);
  }
  const Field devices = spec["devices"];
  CheckCount(devices, kMaxDevices);
  std::set<std::string> names;
  for (const Field& item : devices.Items()) {
    if (!item.RequireMap()) continue;
    SliceDevice device = DecodeDevice(item, version);
    if (!device.name.empty() && !names.insert(device.name).second) {
      item["name"].Error(
          fmt::format("{} is the name of another device", Quoted(device.name)));
    }
    slice.devices.push_back(std::move(device));
  }
  return slice;
}

}  // namespace devmgr::api
