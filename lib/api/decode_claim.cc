// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "api/meta.h"
#include "api/names.h"
#include "api/old_handles.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {
namespace {

constexpr std::size_t kMaxRequests = 32;
constexpr std::size_t kMaxAlternatives = 8;
constexpr std::size_t kMaxSelectors = 32;
constexpr std::size_t kMaxExpressionBytes = 10 * 1024;
constexpr std::size_t kMaxResults = 32;
constexpr std::size_t kMaxConsumers = 256;

constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

constexpr std::string_view kExactCount = "ExactCount";
constexpr std::string_view kAll = "All";

/// What v1alpha3 and v1beta1 write into the request and later versions under
/// `exactly`.
constexpr std::string_view kExactFields[] = {
    "deviceClassName", "selectors",   "allocationMode", "count",
    "adminAccess",     "tolerations", "capacity",
};

bool HasExactFields(const Field& request) {
  for (const std::string_view name : kExactFields) {
    if (request[name].IsPresent()) return true;
  }
  return false;
}

/// Mode and count with their defaults: exactly one device.
void DecodeAmount(const Field& field, DeviceSubRequest& request) {
  const Field mode = field["allocationMode"];
  request.allocation_mode = mode.StringOr(kExactCount);
  if (request.allocation_mode.empty()) request.allocation_mode = kExactCount;
  const Field count = field["count"];
  if (request.allocation_mode == kAll) {
    if (count.AsInteger().value_or(0) != 0) {
      count.Error("must not be given with allocationMode All");
    }
    return;
  }
  if (request.allocation_mode != kExactCount) {
    mode.Error(fmt::format("{} is unknown; 'ExactCount' and 'All' are known",
                           Quoted(request.allocation_mode)));
  }
  request.count =
      count.AsInteger(1, std::numeric_limits<std::int64_t>::max()).value_or(1);
}

/// The part that plain requests and alternatives share.
DeviceSubRequest DecodeSubRequest(const Field& field) {
  DeviceSubRequest request;
  request.device_class_name =
      RequiredName(field["deviceClassName"], CheckSubdomain);
  request.selectors = DecodeSelectors(field["selectors"]);
  DecodeAmount(field, request);
  return request;
}

void DecodeAlternatives(const Field& list, DeviceRequest& request) {
  CheckCount(list, kMaxAlternatives);
  std::set<std::string> names;
  for (const Field& item : list.Items()) {
    if (!item.RequireMap()) continue;
    DeviceSubRequest alternative = DecodeSubRequest(item);
    alternative.name = RequiredName(item["name"], CheckLabel);
    if (!alternative.name.empty() && !names.insert(alternative.name).second) {
      item["name"].Error(fmt::format("{} is the name of another alternative",
                                     Quoted(alternative.name)));
    }
    request.first_available.push_back(std::move(alternative));
  }
}

DeviceRequest DecodeRequest(const Field& field, ResourceVersion version) {
  DeviceRequest request;
  request.name = RequiredName(field["name"], CheckLabel);
  const Field alternatives = field["firstAvailable"];
  const bool has_alternatives =
      alternatives.IsPresent() &&
      !(alternatives.value()->kind == Value::Kind::kList &&
        alternatives.value()->items.empty());
  const bool is_flat = HasFlatRequests(version);
  const bool is_exact =
      is_flat ? HasExactFields(field) : field["exactly"].IsPresent();
  if (is_exact && has_alternatives) {
    field.Error(
        "asks for exact devices and for 'firstAvailable' alternatives; only "
        "one of the two is allowed");
    return request;
  }
  if (has_alternatives) {
    DecodeAlternatives(alternatives, request);
    return request;
  }
  if (!is_exact) {
    const bool other_shape =
        is_flat ? field["exactly"].IsPresent() : HasExactFields(field);
    field.Error(fmt::format(
        "asks for nothing: {} is required{}",
        is_flat ? "deviceClassName" : "'exactly' or 'firstAvailable'",
        !other_shape ? ""
        : is_flat    ? " ('exactly' is not known in v1beta1)"
                     : " (deviceClassName and the like stand under 'exactly' "
                       "since v1beta2)"));
    return request;
  }
  const Field exactly = is_flat ? field : field["exactly"];
  if (!exactly.IsMap()) return request;
  request.exactly = DecodeSubRequest(exactly);
  request.exactly->name = request.name;
  request.admin_access = exactly["adminAccess"].BoolOr(false);
  return request;
}

ResourceClaimSpec DecodeClaimSpec(const Field& field, ResourceVersion version) {
  ResourceClaimSpec spec;
  if (!field.IsMap() || HasResourceHandles(version)) return spec;
  const Field devices = field["devices"];
  if (!devices.IsMap()) return spec;
  const Field requests = devices["requests"];
  CheckCount(requests, kMaxRequests);
  std::set<std::string> names;
  for (const Field& item : requests.Items()) {
    if (!item.RequireMap()) continue;
    DeviceRequest request = DecodeRequest(item, version);
    if (!request.name.empty() && !names.insert(request.name).second) {
      item["name"].Error(fmt::format("{} is the name of another request",
                                     Quoted(request.name)));
    }
    spec.requests.push_back(std::move(request));
  }
  return spec;
}

/// `request` or `request/alternative`.
std::string CheckRequestReference(std::string_view text) {
  const std::size_t slash = text.find('/');
  std::string problem = CheckLabel(text.substr(0, slash));
  if (problem.empty() && slash != std::string_view::npos) {
    problem = CheckLabel(text.substr(slash + 1));
  }
  return problem;
}

AllocationResult DecodeAllocation(const Field& field) {
  AllocationResult allocation;
  std::string node;
  if (const Field selector = field["nodeSelector"]; selector.IsMap()) {
    node = OnlyNodeOf(selector);
    allocation.many_nodes = node.empty();
  }
  const Field devices = field["devices"];
  if (!devices.IsMap()) return allocation;
  const Field results = devices["results"];
  CheckCount(results, kMaxResults);
  for (const Field& item : results.Items()) {
    if (!item.RequireMap()) continue;
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
    allocation.results.push_back(std::move(result));
  }
  AddOldHandles(field, node, &allocation);
  return allocation;
}

ResourceClaimStatus DecodeClaimStatus(const Field& field,
                                      ResourceVersion version) {
  ResourceClaimStatus status;
  if (!field.IsMap()) return status;
  if (const Field allocation = field["allocation"]; allocation.IsMap()) {
    status.allocation = HasResourceHandles(version)
                            ? DecodeResourceHandles(field)
                            : DecodeAllocation(allocation);
  }
  const Field consumers = field["reservedFor"];
  CheckCount(consumers, kMaxConsumers);
  std::set<std::string> uids;
  for (const Field& item : consumers.Items()) {
    if (!item.RequireMap()) continue;
    ResourceClaimConsumer consumer;
    consumer.api_group = item["apiGroup"].StringOr("");
    consumer.resource = RequiredName(item["resource"], nullptr);
    consumer.name = RequiredName(item["name"], nullptr);
    consumer.uid = RequiredName(item["uid"], nullptr);
    if (!consumer.uid.empty() && !uids.insert(consumer.uid).second) {
      item["uid"].Error(fmt::format("{} is the uid of another consumer",
                                    Quoted(consumer.uid)));
    }
    status.reserved_for.push_back(std::move(consumer));
  }
  return status;
}

/// What `key` has to be by one of the `requirements`, all of which hold; empty
/// when several values will do.
std::string OnlyValue(const Field& requirements, std::string_view key) {
  for (const Field& requirement : requirements.Items()) {
    const std::vector<Field> values = requirement["values"].Items();
    if (requirement["key"].StringOr("") == key &&
        requirement["operator"].StringOr("") == "In" && values.size() == 1) {
      return values.front().StringOr("");
    }
  }
  return "";
}

}  // namespace

std::string OnlyNodeOf(const Field& selector) {
  const std::vector<Field> terms = selector["nodeSelectorTerms"].Items();
  if (terms.size() != 1) return "";
  const std::string name =
      OnlyValue(terms.front()["matchFields"], "metadata.name");
  if (!name.empty()) return name;
  return OnlyValue(terms.front()["matchExpressions"], kHostnameLabel);
}

std::vector<std::string> DecodeSelectors(const Field& selectors) {
  std::vector<std::string> expressions;
  CheckCount(selectors, kMaxSelectors);
  for (const Field& item : selectors.Items()) {
    if (!item.RequireMap()) continue;
    const Field cel = item["cel"];
    if (!cel.RequireMap()) continue;
    const Field expression = cel["expression"];
    std::string text = RequiredName(expression, nullptr);
    if (text.size() > kMaxExpressionBytes) {
      expression.Error(fmt::format("has {} bytes, at most {} are allowed",
                                   text.size(), kMaxExpressionBytes));
    }
    expressions.push_back(std::move(text));
  }
  return expressions;
}

void CheckCount(const Field& list, std::size_t limit) {
  if (!list.IsPresent() || list.value()->items.size() <= limit) return;
  list.Error(fmt::format("has {} entries, at most {} are allowed",
                         list.value()->items.size(), limit));
}

std::string RequiredName(const Field& field,
                         std::string (*check)(std::string_view)) {
  std::string text = field.StringOr("");
  if (text.empty()) {
    // A value of another type has been reported already.
    if (!field.IsPresent() || field.IsString()) field.Error("is required");
  } else if (check != nullptr) {
    field.Check(check(text));
  }
  return text;
}

ResourceClaim DecodeResourceClaim(const Field& root, ResourceVersion version) {
  ResourceClaim claim;
  claim.metadata = DecodeMeta(root, Scope::kNamespace);
  CheckMeta(root, claim.metadata);
  claim.spec = DecodeClaimSpec(root["spec"], version);
  claim.status = DecodeClaimStatus(root["status"], version);
  return claim;
}

ResourceClaimTemplate DecodeResourceClaimTemplate(const Field& root,
                                                  ResourceVersion version) {
  ResourceClaimTemplate claim_template;
  claim_template.metadata = DecodeMeta(root, Scope::kNamespace);
  CheckMeta(root, claim_template.metadata);
  const Field spec = root["spec"];
  if (spec.RequireMap()) {
    claim_template.spec = DecodeClaimSpec(spec["spec"], version);
  }
  return claim_template;
}

}  // namespace devmgr::api
