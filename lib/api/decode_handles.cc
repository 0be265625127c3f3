// SPDX-License-Identifier: Apache-2.0
//
// Allocations of resource.k8s.io/v1alpha2 and v1alpha1: handles for drivers,
// which a controller or, in Kubernetes 1.30, the scheduler wrote.
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "api/device_parts.h"
#include "api/json_text.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxHandles = 32;
constexpr std::size_t kMaxHandleBytes = 16 * 1024;
// The API had no limit.
constexpr std::size_t kMaxStructuredResults = 256;

/// Bounds what a driver is handed, and what the ledger keeps of it.
std::string Bounded(const Field& field, std::string text) {
  if (text.size() > kMaxHandleBytes) {
    field.Error(fmt::format("has {} bytes, at most {} are allowed", text.size(),
                            kMaxHandleBytes));
    text.clear();
  }
  return text;
}

std::string DecodeParameters(const Field& field) {
  return field.IsPresent() ? Bounded(field, JsonText(*field.value())) : "";
}

StructuredResourceHandle DecodeStructured(const Field& field) {
  StructuredResourceHandle handle;
  handle.vendor_class_parameters =
      DecodeParameters(field["vendorClassParameters"]);
  handle.vendor_claim_parameters =
      DecodeParameters(field["vendorClaimParameters"]);
  handle.node_name = field["nodeName"].StringOr("");
  const Field results = field["results"];
  CheckCount(results, kMaxStructuredResults);
  for (const Field& item : results.Items()) {
    if (!item.RequireMap()) continue;
    StructuredResourceHandle::Result result;
    result.vendor_request_parameters =
        DecodeParameters(item["vendorRequestParameters"]);
    const Field named = item["namedResources"];
    if (named.RequireMap()) {
      result.named_resource = RequiredName(named["name"], nullptr);
    }
    handle.results.push_back(std::move(result));
  }
  return handle;
}

ResourceHandle DecodeHandle(const Field& item) {
  ResourceHandle handle;
  const Field data = item["data"];
  handle.data = Bounded(data, data.StringOr(""));
  const Field structured = item["structuredData"];
  if (!structured.IsMap()) return handle;
  handle.structured = DecodeStructured(structured);
  // Only one of the two is meant to be there.
  const bool is_empty = handle.structured == StructuredResourceHandle();
  if (is_empty && !handle.data.empty()) handle.structured.reset();
  return handle;
}

void AddHandle(const Field& driver, ResourceHandle handle,
               AllocationResult* allocation) {
  const std::string name = RequiredName(driver, CheckDriverName);
  if (!allocation->resource_handles.emplace(name, std::move(handle)).second) {
    driver.Error(
        fmt::format("{} is the driver of another handle", Quoted(name)));
  }
}

}  // namespace

AllocationResult DecodeResourceHandles(const Field& status) {
  AllocationResult decoded;
  const Field allocation = status["allocation"];
  if (const Field nodes = allocation["availableOnNodes"]; nodes.IsMap()) {
    decoded.many_nodes = OnlyNodeOf(nodes).empty();
    decoded.node_selector = DecodeNodeSelector(nodes.AsRemarks(), false);
  }
  decoded.shareable = allocation["shareable"].BoolOr(false);
  // The claim's driver, where a handle names none; without any handle it has
  // an empty one.
  const Field driver = status["driverName"];
  const auto handles = allocation["resourceHandles"].Items();
  CheckCount(allocation["resourceHandles"], kMaxHandles);
  if (handles.empty()) {
    const Field data = allocation["resourceHandle"];  // Of v1alpha1.
    AddHandle(driver, {Bounded(data, data.StringOr("")), {}}, &decoded);
  }
  for (const Field& item : handles) {
    if (!item.RequireMap()) continue;
    const Field own = item["driverName"];
    AddHandle(own.StringOr("").empty() ? driver : own, DecodeHandle(item),
              &decoded);
  }
  return decoded;
}

}  // namespace devmgr::api
