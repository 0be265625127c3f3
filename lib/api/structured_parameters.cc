// SPDX-License-Identifier: Apache-2.0
#include "api/structured_parameters.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "api/device_parts.h"
#include "api/json_text.h"
#include "api/meta.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"
#include "api/semver.h"

namespace devmgr::api {
namespace {

/// Bounds what the ledger keeps of a claim, as with handles.
constexpr std::size_t kMaxParameterBytes = std::size_t{16} * 1024;
/// The API had no limit.
constexpr std::size_t kMaxRequests = 256;
constexpr std::size_t kMaxDrivers = 32;

std::optional<ParametersReference> DecodeReference(const Field& field) {
  if (!field.IsMap()) return std::nullopt;
  return ParametersReference{
      field["apiGroup"].StringOr(""), RequiredName(field["kind"], nullptr),
      field["namespace"].StringOr(""), RequiredName(field["name"], nullptr)};
}

std::string DecodeVendorParameters(const Field& field) {
  if (!field.IsPresent()) return "";
  std::string text = JsonText(*field.value());
  if (text.size() > kMaxParameterBytes) {
    field.Error(fmt::format("has {} bytes, at most {} are allowed", text.size(),
                            kMaxParameterBytes));
  }
  return text;
}

/// Of a filter or a request, which have one model of resources: this one.
std::string DecodeNamedSelector(const Field& item) {
  const Field named = item["namedResources"];
  if (!named.IsPresent()) {
    item.Error("has no namedResources, the only model that is known");
    return "";
  }
  return named.IsMap()
             ? DecodeExpression(named["selector"], ExpressionKind::kOldSelector)
             : "";
}

ResourceClaimParameters::DriverRequests DecodeDriverRequests(
    const Field& item) {
  ResourceClaimParameters::DriverRequests driver;
  driver.driver = RequiredName(item["driverName"], CheckDriverName);
  driver.vendor_parameters = DecodeVendorParameters(item["vendorParameters"]);
  for (const Field& request : item["requests"].Items()) {
    if (!request.RequireMap()) continue;
    driver.requests.push_back(
        {DecodeVendorParameters(request["vendorParameters"]),
         DecodeNamedSelector(request)});
  }
  return driver;
}

/// The name of the only kind of value that is there; empty, after a report,
/// when there is none or more than one.
std::string_view KindOf(const Field& attribute) {
  constexpr std::string_view kKinds[] = {"quantity", "bool",   "int",
                                         "intSlice", "string", "stringSlice",
                                         "version"};
  const auto is_present = [&](std::string_view kind) {
    return attribute[kind].IsPresent();
  };
  const auto count =
      std::count_if(std::begin(kKinds), std::end(kKinds), is_present);
  if (count == 1) {
    return *std::find_if(std::begin(kKinds), std::end(kKinds), is_present);
  }
  attribute.Error(
      fmt::format("has {} values; exactly one of quantity, bool, int, "
                  "intSlice, string, stringSlice, version is required",
                  count));
  return "";
}

template <typename T, typename Decode>
DeviceAttribute ListOf(const Field& list, const Decode& decode) {
  std::vector<T> values;
  for (const Field& item : list.Items()) {
    if (!item.IsPresent()) item.Error("is null, a value is required");
    if (auto value = decode(item)) values.emplace_back(*std::move(value));
  }
  return RareVector<T>(std::move(values));
}

DeviceVersion DecodeVersion(const Field& field, TextPool& texts) {
  const std::string text = field.StringOr("");
  if (!IsSemanticVersion(text)) {
    field.Error(
        fmt::format("{} is not a semantic version 2.0.0", Quoted(text)));
  }
  return {texts.Get(text)};
}

void DecodeValue(const Field& item, const std::string& name, TextPool& texts,
                 SliceDevice& device) {
  const std::string_view kind = KindOf(item);
  const Field value = item[kind];
  const SharedText key = texts.Get(name);
  if (kind == "quantity") {
    if (auto quantity = value.AsQuantity()) {
      device.capacity[key].value = *std::move(quantity);
    }
  } else if (kind == "bool") {
    device.attributes.emplace(key, value.BoolOr(false));
  } else if (kind == "int") {
    device.attributes.emplace(key, value.AsInteger().value_or(0));
  } else if (kind == "string") {
    device.attributes.emplace(key, texts.Get(value.StringOr("")));
  } else if (kind == "version") {
    device.attributes.emplace(key, DecodeVersion(value, texts));
  } else if (kind == "intSlice" && value.RequireMap()) {
    device.attributes.emplace(
        key, ListOf<std::int64_t>(value["ints"], [](const Field& field) {
          return field.AsInteger();
        }));
  } else if (kind == "stringSlice" && value.RequireMap()) {
    device.attributes.emplace(
        key, ListOf<SharedText>(value["strings"], [](const Field& field) {
          return field.AsString();
        }));
  }
}

SliceDevice DecodeInstance(const Field& item, TextPool& texts) {
  SliceDevice device;
  device.name = RequiredName(item["name"], CheckSubdomain);
  std::set<std::string> names;
  for (const Field& attribute : item["attributes"].Items()) {
    if (!attribute.RequireMap()) continue;
    const std::string name = RequiredName(attribute["name"], CheckSubdomain);
    if (!name.empty() && !names.insert(name).second) {
      attribute["name"].Error(
          fmt::format("{} is the name of another attribute", Quoted(name)));
      continue;
    }
    DecodeValue(attribute, name, texts, device);
  }
  return device;
}

}  // namespace

ResourceClass DecodeResourceClass(const Field& root) {
  ResourceClass resource_class;
  resource_class.metadata = DecodeMeta(root, Scope::kCluster);
  CheckMeta(root, resource_class.metadata);
  resource_class.driver = RequiredName(root["driverName"], CheckDriverName);
  resource_class.parameters = DecodeReference(root["parametersRef"]);
  resource_class.default_claim_parameters =
      DecodeReference(root["defaultClaimParametersRef"]);
  resource_class.has_structured_parameters =
      root["structuredParameters"].BoolOr(false);
  return resource_class;
}

ResourceClassParameters DecodeClassParameters(const Field& root) {
  ResourceClassParameters parameters;
  parameters.metadata = DecodeMeta(root, Scope::kNamespace);
  CheckMeta(root, parameters.metadata);
  parameters.generated_from = DecodeReference(root["generatedFrom"]);
  for (const Field& item : root["vendorParameters"].Items()) {
    if (!item.RequireMap()) continue;
    const Field driver = item["driverName"];
    const std::string name = RequiredName(driver, CheckDriverName);
    if (!parameters.vendor_parameters
             .emplace(name, DecodeVendorParameters(item["parameters"]))
             .second) {
      driver.Error(
          fmt::format("{} is the driver of another entry", Quoted(name)));
    }
  }
  for (const Field& item : root["filters"].Items()) {
    if (!item.RequireMap()) continue;
    parameters.filters.push_back(
        {RequiredName(item["driverName"], CheckDriverName),
         DecodeNamedSelector(item)});
  }
  return parameters;
}

ResourceClaimParameters DecodeClaimParameters(const Field& root) {
  ResourceClaimParameters parameters;
  parameters.metadata = DecodeMeta(root, Scope::kNamespace);
  CheckMeta(root, parameters.metadata);
  parameters.generated_from = DecodeReference(root["generatedFrom"]);
  parameters.is_shareable = root["shareable"].BoolOr(false);
  const Field list = root["driverRequests"];
  CheckCount(list, kMaxDrivers);
  std::size_t count = 0;
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    parameters.driver_requests.push_back(DecodeDriverRequests(item));
    count += parameters.driver_requests.back().requests.size();
  }
  if (count > kMaxRequests) {
    list.Error(fmt::format("has {} requests in all, at most {} are allowed",
                           count, kMaxRequests));
  }
  return parameters;
}

OldClaimSpec DecodeOldClaimSpec(const Field& spec) {
  OldClaimSpec decoded;
  if (!spec.RequireMap()) return decoded;
  decoded.class_name = RequiredName(spec["resourceClassName"], CheckSubdomain);
  decoded.parameters = DecodeReference(spec["parametersRef"]);
  const Field mode = spec["allocationMode"];
  if (mode.IsPresent()) {
    decoded.is_immediate = RequiredWord(mode, {"WaitForFirstConsumer",
                                               "Immediate"}) == "Immediate";
  }
  return decoded;
}

ResourceSlice DecodeNamedResources(const Field& root) {
  ResourceSlice slice;
  slice.metadata = DecodeMeta(root, Scope::kCluster);
  CheckMeta(root, slice.metadata);
  slice.driver = RequiredName(root["driverName"], CheckDriverName);
  slice.node_name = RequiredName(root["nodeName"], CheckSubdomain);
  slice.pool = slice.node_name;
  slice.pool_generation = 1;
  const Field named = root["namedResources"];
  if (!named.IsPresent()) {
    root.Error("has no namedResources, the only model that is known");
    return slice;
  }
  TextPool texts;
  std::set<std::string> names;
  for (const Field& item : named["instances"].Items()) {
    if (!item.RequireMap()) continue;
    SliceDevice device = DecodeInstance(item, texts);
    if (!device.name.empty() && !names.insert(device.name).second) {
      item["name"].Error(fmt::format("{} is the name of another instance",
                                     Quoted(device.name)));
    }
    slice.devices.push_back(std::move(device));
  }
  return slice;
}

}  // namespace devmgr::api
