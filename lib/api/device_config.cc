// SPDX-License-Identifier: Apache-2.0
//
// Configuration that classes and claims have for drivers.
#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/device_parts.h"
#include "api/json_text.h"
#include "api/names.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxConfigs = 32;
/// Those of classes and those of the claim.
constexpr std::size_t kMaxAllocatedConfigs = 64;
constexpr std::size_t kMaxOpaqueBytes = std::size_t{10} * 1024;

/// What is opaque is all there is so far.
OpaqueDeviceConfiguration DecodeOpaque(const Field& entry) {
  OpaqueDeviceConfiguration config;
  const Field field = entry["opaque"];
  if (!field.RequireMap()) return config;
  config.driver = RequiredName(field["driver"], CheckDriverName);
  config.parameters = DecodeObjectText(field["parameters"], kMaxOpaqueBytes);
  if (!field["parameters"].IsPresent()) {
    field["parameters"].Error("is required");
  }
  return config;
}

}  // namespace

std::string DecodeObjectText(const Field& field, std::size_t limit) {
  if (!field.IsMap()) return "";
  std::string text = JsonText(*field.value());
  if (text.size() > limit) {
    field.Error(fmt::format("has {} bytes as JSON, at most {} are allowed",
                            text.size(), limit));
  }
  return text;
}

std::vector<OpaqueDeviceConfiguration> DecodeClassConfig(const Field& list) {
  std::vector<OpaqueDeviceConfiguration> configs;
  CheckCount(list, kMaxConfigs);
  for (const Field& item : list.Items()) {
    if (item.RequireMap()) configs.push_back(DecodeOpaque(item));
  }
  return configs;
}

std::vector<DeviceClaimConfiguration> DecodeClaimConfig(
    const Field& list, const RequestNames& known) {
  std::vector<DeviceClaimConfiguration> configs;
  CheckCount(list, kMaxConfigs);
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    configs.push_back({DecodeRequestReferences(item["requests"], &known),
                       DecodeOpaque(item)});
  }
  return configs;
}

std::vector<DeviceAllocationConfiguration> DecodeAllocationConfig(
    const Field& list) {
  std::vector<DeviceAllocationConfiguration> configs;
  CheckCount(list, kMaxAllocatedConfigs);
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    configs.push_back({RequiredWord(item["source"], {"FromClass", "FromClaim"}),
                       DecodeRequestReferences(item["requests"], nullptr),
                       DecodeOpaque(item)});
  }
  return configs;
}

}  // namespace devmgr::api
