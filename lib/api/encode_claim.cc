// SPDX-License-Identifier: Apache-2.0
//
// ResourceClaims as an API server would show them, in the shape of v1. What is
// empty is left out.
#include <devmgr/manifests.h>

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

OrderedJson EncodeStatus(const ResourceClaimStatus& status) {
  OrderedJson json = OrderedJson::object();
  if (status.allocation.has_value()) {
    json["allocation"] = EncodeAllocation(*status.allocation);
  }
  PutList(json, "reservedFor", status.reserved_for, EncodeConsumer);
  PutList(json, "devices", status.devices, EncodeDeviceStatus);
  return json;
}

}  // namespace
}  // namespace api

std::string EncodeResourceClaim(const ResourceClaim& claim) {
  api::OrderedJson json = {{"apiVersion", "resource.k8s.io/v1"},
                           {"kind", "ResourceClaim"},
                           {"metadata", api::EncodeMeta(claim.metadata)},
                           {"spec", api::EncodeSpec(claim.spec)}};
  api::PutPart(json, "status", api::EncodeStatus(claim.status));
  return json.dump(-1, ' ', false, api::OrderedJson::error_handler_t::replace);
}

}  // namespace devmgr
