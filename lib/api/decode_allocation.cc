// SPDX-License-Identifier: Apache-2.0
//
// `status` of claims: what was allocated, and what drivers say of it.
#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/device_claim.h"
#include "api/device_parts.h"
#include "api/meta.h"
#include "api/names.h"
#include "api/old_handles.h"
#include "api/quote.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxResults = 32;
constexpr std::size_t kMaxDeviceConditions = 8;
constexpr std::size_t kMaxDataBytes = std::size_t{10} * 1024;
constexpr std::size_t kMaxInterfaceBytes = 256;
constexpr std::size_t kMaxHardwareAddressBytes = 128;
constexpr std::size_t kMaxAddresses = 16;

void CheckShareId(const Field& field, std::string_view id) {
  if (!id.empty()) field.Check(CheckUuid(id));
}

SortedMap<Quantity> DecodeConsumedCapacity(const Field& map) {
  SortedMap<Quantity> consumed;
  for (const auto& [name, amount] : map.Members()) {
    amount.Check(CheckDeviceKey(name));
    if (auto quantity = RequiredAmount(amount)) {
      consumed.emplace(name, *std::move(quantity));
    }
  }
  return consumed;
}

DeviceRequestAllocationResult DecodeResult(const Field& item) {
  DeviceRequestAllocationResult result;
  result.request = RequiredName(item["request"], CheckRequestReference);
  result.driver = RequiredName(item["driver"], CheckDriverName);
  result.pool = RequiredName(item["pool"], CheckPoolName);
  result.device = RequiredName(item["device"], CheckLabel);
  result.admin_access = item["adminAccess"].BoolOr(false);
  result.share_id = item["shareID"].StringOr("");
  for (const Field& operation : item["skipNodeOperations"].Items()) {
    result.skip_node_operations.push_back(operation.StringOr(""));
  }
  const Field extra = item.AsRemarks();
  CheckShareId(extra["shareID"], result.share_id);
  result.tolerations = DecodeTolerations(extra["tolerations"]);
  BindingConditions binding = DecodeBindingConditions(extra);
  result.binding_conditions = std::move(binding.conditions);
  result.binding_failure_conditions = std::move(binding.failure_conditions);
  result.consumed_capacity = DecodeConsumedCapacity(extra["consumedCapacity"]);
  return result;
}

/// Whether it is an address with the length of a prefix, of IPv4 or IPv6.
bool IsInterfaceAddress(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string address(text.substr(0, slash));
  const std::string_view prefix = text.substr(slash + 1);
  const bool is_v6 = address.find(':') != std::string::npos;
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(is_v6 ? AF_INET6 : AF_INET, address.c_str(), bytes.data()) !=
      1) {
    return false;
  }
  unsigned length = 0;
  const char* end = prefix.data() + prefix.size();
  const auto [last, error] = std::from_chars(prefix.data(), end, length);
  return error == std::errc() && last == end && length <= (is_v6 ? 128u : 32u);
}

std::string CheckInterfaceAddress(std::string_view text) {
  if (IsInterfaceAddress(text)) return "";
  return fmt::format("{} is not an address such as 192.0.2.5/24", Quoted(text));
}

std::string BoundedText(const Field& field, std::size_t limit) {
  std::string text = field.StringOr("");
  if (text.size() > limit) {
    field.Error(fmt::format("has {} bytes, at most {} are allowed", text.size(),
                            limit));
  }
  return text;
}

NetworkDeviceData DecodeNetworkData(const Field& field) {
  return {BoundedText(field["interfaceName"], kMaxInterfaceBytes),
          DecodeNames(field["ips"], kMaxAddresses, CheckInterfaceAddress),
          BoundedText(field["hardwareAddress"], kMaxHardwareAddressBytes)};
}

AllocatedDeviceStatus DecodeStatus(const Field& item) {
  AllocatedDeviceStatus status;
  status.driver = RequiredName(item["driver"], CheckDriverName);
  status.pool = RequiredName(item["pool"], CheckPoolName);
  status.device = RequiredName(item["device"], CheckLabel);
  status.share_id = item["shareID"].StringOr("");
  CheckShareId(item["shareID"], status.share_id);
  status.conditions =
      DecodeConditions(item["conditions"], kMaxDeviceConditions);
  status.data = DecodeObjectText(item["data"], kMaxDataBytes);
  const Field network = item["networkData"];
  if (network.IsMap()) status.network_data = DecodeNetworkData(network);
  return status;
}

auto DeviceKey(const AllocatedDeviceStatus& status) {
  return std::tie(status.driver, status.pool, status.device, status.share_id);
}

bool IsAllocated(const std::optional<AllocationResult>& allocation,
                 const AllocatedDeviceStatus& status) {
  return allocation.has_value() &&
         std::any_of(allocation->results.begin(), allocation->results.end(),
                     [&](const DeviceRequestAllocationResult& result) {
                       return std::tie(result.driver, result.pool,
                                       result.device,
                                       result.share_id) == DeviceKey(status);
                     });
}

}  // namespace

AllocationResult DecodeAllocation(const Field& field) {
  AllocationResult allocation;
  const Field extra = field.AsRemarks();
  std::string node;
  if (const Field selector = field["nodeSelector"]; selector.IsMap()) {
    node = OnlyNodeOf(selector);
    allocation.many_nodes = node.empty();
    allocation.node_selector = DecodeNodeSelector(extra["nodeSelector"], false);
  }
  allocation.allocation_timestamp =
      DecodeTimestamp(extra["allocationTimestamp"]);
  allocation.controller = extra["controller"].StringOr("");
  const Field devices = field["devices"];
  if (!devices.IsMap()) return allocation;
  const Field results = devices["results"];
  CheckCount(results, kMaxResults);
  for (const Field& item : results.Items()) {
    if (item.RequireMap()) allocation.results.push_back(DecodeResult(item));
  }
  allocation.config = DecodeAllocationConfig(extra["devices"]["config"]);
  AddOldHandles(field, node, &allocation);
  return allocation;
}

void CheckDeviceStatus(const Field& entry) {
  if (entry.RequireMap()) DecodeStatus(entry);
}

std::vector<AllocatedDeviceStatus> DecodeDeviceStatus(
    const Field& list, const std::optional<AllocationResult>& allocation) {
  std::vector<AllocatedDeviceStatus> statuses;
  for (const Field& item : list.AsRemarks().Items()) {
    if (!item.RequireMap()) continue;
    AllocatedDeviceStatus status = DecodeStatus(item);
    if (!IsAllocated(allocation, status)) {
      item.Error(fmt::format("device {} of pool {} is not allocated",
                             Quoted(status.device), Quoted(status.pool)));
    }
    if (std::any_of(statuses.begin(), statuses.end(), [&](const auto& other) {
          return DeviceKey(other) == DeviceKey(status);
        })) {
      item.Error("is about the device of another entry");
    }
    statuses.push_back(std::move(status));
  }
  return statuses;
}

}  // namespace devmgr::api
