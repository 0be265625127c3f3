// SPDX-License-Identifier: Apache-2.0
//
// ResourceClaims as an API server would show them: in the shape of v1alpha2
// those that have it, all others in that of v1. What is empty is left out.
#include <devmgr/manifests.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/quantity.h"

namespace devmgr {
namespace api {
namespace {

/// Keys stay in the order in which they are added.
using OrderedJson = nlohmann::ordered_json;

void Put(OrderedJson& object, const char* key, std::string_view text) {
  if (!text.empty()) object[key] = text;
}

void PutTrue(OrderedJson& object, const char* key, bool flag) {
  if (flag) object[key] = true;
}

void PutPart(OrderedJson& object, const char* key, OrderedJson part) {
  if (!part.empty()) object[key] = std::move(part);
}

void PutTexts(OrderedJson& object, const char* key,
              const std::vector<std::string>& texts) {
  if (!texts.empty()) object[key] = texts;
}

void PutTexts(OrderedJson& object, const char* key,
              const std::map<std::string, std::string>& texts) {
  if (!texts.empty()) object[key] = texts;
}

/// A list of what `encode` makes of the values.
template <typename T>
void PutList(OrderedJson& object, const char* key, const std::vector<T>& values,
             OrderedJson (*encode)(const T&)) {
  OrderedJson list = OrderedJson::array();
  for (const T& value : values) list.push_back(encode(value));
  PutPart(object, key, std::move(list));
}

void PutAmounts(OrderedJson& object, const char* key,
                const SortedMap<Quantity>& amounts) {
  OrderedJson map = OrderedJson::object();
  for (const auto& [name, amount] : amounts) {
    map[name.str()] = QuantityText(amount);
  }
  PutPart(object, key, std::move(map));
}

/// A part that is JSON already.
OrderedJson Parsed(const std::string& text) {
  OrderedJson json = OrderedJson::parse(text, nullptr, false);
  return json.is_discarded() ? OrderedJson() : json;
}

OrderedJson EncodeOwner(const OwnerReference& owner) {
  OrderedJson json = {{"apiVersion", owner.api_version},
                      {"kind", owner.kind},
                      {"name", owner.name},
                      {"uid", owner.uid}};
  PutTrue(json, "controller", owner.controller);
  PutTrue(json, "blockOwnerDeletion", owner.blocks_owner_deletion);
  return json;
}

OrderedJson EncodeMeta(const ObjectMeta& metadata) {
  OrderedJson json = {{"name", metadata.name}};
  Put(json, "namespace", metadata.ns);
  Put(json, "uid", metadata.uid);
  Put(json, "creationTimestamp", metadata.creation_timestamp);
  Put(json, "deletionTimestamp", metadata.deletion_timestamp);
  PutTexts(json, "labels", metadata.labels);
  PutTexts(json, "annotations", metadata.annotations);
  PutList(json, "ownerReferences", metadata.owner_references, EncodeOwner);
  PutTexts(json, "finalizers", metadata.finalizers);
  return json;
}

OrderedJson EncodeRequirement(const NodeSelectorRequirement& requirement) {
  OrderedJson json = {{"key", requirement.key}, {"operator", requirement.op}};
  PutTexts(json, "values", requirement.values);
  return json;
}

OrderedJson EncodeTerm(const NodeSelectorTerm& term) {
  OrderedJson json = OrderedJson::object();
  PutList(json, "matchExpressions", term.match_expressions, EncodeRequirement);
  PutList(json, "matchFields", term.match_fields, EncodeRequirement);
  return json;
}

OrderedJson EncodeNodeSelector(const NodeSelector& selector) {
  OrderedJson terms = OrderedJson::array();
  for (const NodeSelectorTerm& term : selector.terms) {
    terms.push_back(EncodeTerm(term));
  }
  return {{"nodeSelectorTerms", std::move(terms)}};
}

OrderedJson EncodeToleration(const DeviceToleration& toleration) {
  OrderedJson json = OrderedJson::object();
  Put(json, "key", toleration.key);
  Put(json, "operator", toleration.op);
  Put(json, "value", toleration.value);
  Put(json, "effect", toleration.effect);
  if (toleration.toleration_seconds.has_value()) {
    json["tolerationSeconds"] = *toleration.toleration_seconds;
  }
  return json;
}

OrderedJson EncodeDerived(const DerivedAttribute& attribute) {
  return {{"name", attribute.name}, {"expression", attribute.expression}};
}

/// Adds what plain requests and alternatives share.
void PutSubRequest(OrderedJson& json, const DeviceSubRequest& request) {
  json["deviceClassName"] = request.device_class_name;
  OrderedJson selectors = OrderedJson::array();
  for (const std::string& expression : request.selectors) {
    selectors.push_back({{"cel", {{"expression", expression}}}});
  }
  PutPart(json, "selectors", std::move(selectors));
  Put(json, "allocationMode", request.allocation_mode);
  if (request.count != 0) json["count"] = request.count;
  PutList(json, "tolerations", request.tolerations, EncodeToleration);
  OrderedJson capacity = OrderedJson::object();
  PutAmounts(capacity, "requests", request.capacity_requests);
  PutPart(json, "capacity", std::move(capacity));
  PutList(json, "derivedAttributes", request.derived_attributes, EncodeDerived);
}

OrderedJson EncodeAlternative(const DeviceSubRequest& request) {
  OrderedJson json = {{"name", request.name}};
  PutSubRequest(json, request);
  return json;
}

OrderedJson EncodeRequest(const DeviceRequest& request) {
  OrderedJson json = {{"name", request.name}};
  if (request.exactly.has_value()) {
    OrderedJson exactly = OrderedJson::object();
    PutSubRequest(exactly, *request.exactly);
    if (request.says_admin_access || request.admin_access) {
      exactly["adminAccess"] = request.admin_access;
    }
    json["exactly"] = std::move(exactly);
  }
  PutList(json, "firstAvailable", request.first_available, EncodeAlternative);
  return json;
}

OrderedJson EncodeConstraint(const DeviceConstraint& constraint) {
  OrderedJson json = OrderedJson::object();
  PutTexts(json, "requests", constraint.requests);
  Put(json, "matchAttribute", constraint.match_attribute);
  Put(json, "distinctAttribute", constraint.distinct_attribute);
  return json;
}

OrderedJson EncodeOpaque(const OpaqueDeviceConfiguration& config) {
  return {{"driver", config.driver}, {"parameters", Parsed(config.parameters)}};
}

OrderedJson EncodeClaimConfig(const DeviceClaimConfiguration& config) {
  OrderedJson json = OrderedJson::object();
  PutTexts(json, "requests", config.requests);
  json["opaque"] = EncodeOpaque(config.opaque);
  return json;
}

OrderedJson EncodeAllocationConfig(
    const DeviceAllocationConfiguration& config) {
  OrderedJson json = {{"source", config.source}};
  PutTexts(json, "requests", config.requests);
  json["opaque"] = EncodeOpaque(config.opaque);
  return json;
}

OrderedJson EncodeSpec(const ResourceClaimSpec& spec) {
  OrderedJson devices = OrderedJson::object();
  PutList(devices, "requests", spec.requests, EncodeRequest);
  PutList(devices, "constraints", spec.constraints, EncodeConstraint);
  PutList(devices, "config", spec.config, EncodeClaimConfig);
  return {{"devices", std::move(devices)}};
}

OrderedJson EncodeResult(const DeviceRequestAllocationResult& result) {
  OrderedJson json = {{"request", result.request},
                      {"driver", result.driver},
                      {"pool", result.pool},
                      {"device", result.device}};
  PutTrue(json, "adminAccess", result.admin_access);
  PutList(json, "tolerations", result.tolerations, EncodeToleration);
  PutTexts(json, "bindingConditions", result.binding_conditions);
  PutTexts(json, "bindingFailureConditions", result.binding_failure_conditions);
  Put(json, "shareID", result.share_id);
  PutAmounts(json, "consumedCapacity", result.consumed_capacity);
  PutTexts(json, "skipNodeOperations", result.skip_node_operations);
  return json;
}

OrderedJson EncodeAllocation(const AllocationResult& allocation) {
  OrderedJson devices = OrderedJson::object();
  PutList(devices, "results", allocation.results, EncodeResult);
  PutList(devices, "config", allocation.config, EncodeAllocationConfig);
  OrderedJson json = {{"devices", std::move(devices)}};
  if (allocation.node_selector.has_value()) {
    json["nodeSelector"] = EncodeNodeSelector(*allocation.node_selector);
  }
  Put(json, "allocationTimestamp", allocation.allocation_timestamp);
  return json;
}

OrderedJson EncodeConsumer(const ResourceClaimConsumer& consumer) {
  OrderedJson json = OrderedJson::object();
  Put(json, "apiGroup", consumer.api_group);
  json["resource"] = consumer.resource;
  json["name"] = consumer.name;
  json["uid"] = consumer.uid;
  return json;
}

OrderedJson EncodeCondition(const Condition& condition) {
  OrderedJson json = {{"type", condition.type}, {"status", condition.status}};
  if (condition.observed_generation != 0) {
    json["observedGeneration"] = condition.observed_generation;
  }
  json["lastTransitionTime"] = condition.last_transition_time;
  json["reason"] = condition.reason;
  json["message"] = condition.message;
  return json;
}

OrderedJson EncodeNetworkData(const NetworkDeviceData& data) {
  OrderedJson json = OrderedJson::object();
  Put(json, "interfaceName", data.interface_name);
  PutTexts(json, "ips", data.ips);
  Put(json, "hardwareAddress", data.hardware_address);
  return json;
}

OrderedJson EncodeDeviceStatus(const AllocatedDeviceStatus& status) {
  OrderedJson json = {{"driver", status.driver},
                      {"pool", status.pool},
                      {"device", status.device}};
  Put(json, "shareID", status.share_id);
  PutList(json, "conditions", status.conditions, EncodeCondition);
  if (!status.data.empty()) json["data"] = Parsed(status.data);
  if (status.network_data.has_value()) {
    json["networkData"] = EncodeNetworkData(*status.network_data);
  }
  return json;
}

OrderedJson EncodeOldSpec(const OldClaimSpec& spec) {
  OrderedJson json = {{"resourceClassName", spec.class_name}};
  if (spec.parameters.has_value()) {
    OrderedJson reference = OrderedJson::object();
    Put(reference, "apiGroup", spec.parameters->api_group);
    reference["kind"] = spec.parameters->kind;
    Put(reference, "namespace", spec.parameters->ns);
    reference["name"] = spec.parameters->name;
    json["parametersRef"] = std::move(reference);
  }
  if (spec.is_immediate) json["allocationMode"] = "Immediate";
  return json;
}

/// `null` is left out, too: it says as much.
void PutParsed(OrderedJson& object, const char* key, const std::string& text) {
  OrderedJson json = Parsed(text);
  if (!json.is_null()) object[key] = std::move(json);
}

OrderedJson EncodeNamed(const StructuredResourceHandle::Result& result) {
  OrderedJson json = OrderedJson::object();
  PutParsed(json, "vendorRequestParameters", result.vendor_request_parameters);
  json["namedResources"] = {{"name", result.named_resource}};
  return json;
}

OrderedJson EncodeHandle(const std::string& driver,
                         const ResourceHandle& handle) {
  OrderedJson json = {{"driverName", driver}};
  Put(json, "data", handle.data);
  if (!handle.structured.has_value()) return json;
  OrderedJson structured = OrderedJson::object();
  PutParsed(structured, "vendorClassParameters",
            handle.structured->vendor_class_parameters);
  PutParsed(structured, "vendorClaimParameters",
            handle.structured->vendor_claim_parameters);
  Put(structured, "nodeName", handle.structured->node_name);
  PutList(structured, "results", handle.structured->results, EncodeNamed);
  json["structuredData"] = std::move(structured);
  return json;
}

/// The drivers of handles, those with results in the order of these.
std::vector<std::string> DriversOf(const AllocationResult& allocation) {
  std::vector<std::string> drivers;
  const auto add = [&](const std::string& driver) {
    if (allocation.resource_handles.contains(driver) &&
        std::find(drivers.begin(), drivers.end(), driver) == drivers.end()) {
      drivers.push_back(driver);
    }
  };
  for (const auto& result : allocation.results) add(result.driver);
  for (const auto& [driver, handle] : allocation.resource_handles) add(driver);
  return drivers;
}

/// Without handles the claim's driver has an empty one.
OrderedJson EncodeOldAllocation(const AllocationResult& allocation,
                                const std::string& claim_driver) {
  OrderedJson json = OrderedJson::object();
  const auto& handles = allocation.resource_handles;
  const bool has_none = handles.size() == 1 &&
                        handles.begin()->first == claim_driver &&
                        handles.begin()->second == ResourceHandle();
  if (!has_none) {
    OrderedJson list = OrderedJson::array();
    for (const std::string& driver : DriversOf(allocation)) {
      list.push_back(EncodeHandle(driver, handles.at(driver)));
    }
    PutPart(json, "resourceHandles", std::move(list));
  }
  if (allocation.node_selector.has_value()) {
    json["availableOnNodes"] = EncodeNodeSelector(*allocation.node_selector);
  }
  PutTrue(json, "shareable", allocation.shareable);
  return json;
}

OrderedJson EncodeStatus(const ResourceClaim& claim) {
  OrderedJson json = OrderedJson::object();
  const ResourceClaimStatus& status = claim.status;
  if (claim.spec.old) Put(json, "driverName", status.driver);
  if (status.allocation.has_value()) {
    json["allocation"] =
        claim.spec.old ? EncodeOldAllocation(*status.allocation, status.driver)
                       : EncodeAllocation(*status.allocation);
  }
  PutList(json, "reservedFor", status.reserved_for, EncodeConsumer);
  PutList(json, "devices", status.devices, EncodeDeviceStatus);
  return json;
}

}  // namespace
}  // namespace api

std::string EncodeResourceClaim(const ResourceClaim& claim) {
  const auto& old = claim.spec.old;
  api::OrderedJson json = {
      {"apiVersion", old ? "resource.k8s.io/v1alpha2" : "resource.k8s.io/v1"},
      {"kind", "ResourceClaim"},
      {"metadata", api::EncodeMeta(claim.metadata)},
      {"spec", old ? api::EncodeOldSpec(*old) : api::EncodeSpec(claim.spec)}};
  api::PutPart(json, "status", api::EncodeStatus(claim));
  return json.dump(-1, ' ', false, api::OrderedJson::error_handler_t::replace);
}

}  // namespace devmgr
