// SPDX-License-Identifier: Apache-2.0
#include "endpoint/rights.h"

#include <fmt/core.h>

#include <utility>

namespace devmgr::endpoint {
namespace {

using apistore::ApiError;
using apistore::ApiRequest;
using apistore::Json;
using apistore::ResourceType;
using apistore::Verb;

struct Grant {
  std::string_view group;
  std::string_view resource;
  std::string_view subresource;
  std::string_view verbs;  ///< Between spaces.
};

constexpr std::string_view kRead = " get list watch ";
constexpr std::string_view kPods = "pods";
constexpr std::string_view kSlices = "resourceslices";
constexpr std::string_view kClaims = "resourceclaims";
constexpr Grant kGrants[] = {
    {"", "nodes", "", kRead},
    {"", "namespaces", "", kRead},
    {"", kPods, "", kRead},
    {"", "events", "", " create patch "},
    {"events.k8s.io", "events", "", " create patch "},
    {"resource.k8s.io", "deviceclasses", "", kRead},
    {"resource.k8s.io", kSlices, "",
     " get list watch create update patch delete deletecollection "},
    {"resource.k8s.io", kClaims, "", kRead},
    {"resource.k8s.io", kClaims, "status", " get update patch "},
};

const Json& At(const Json& object, const char* pointer) {
  static const Json kNothing;
  const Json::json_pointer path(pointer);
  return object.contains(path) ? object.at(path) : kNothing;
}

std::string TextAt(const Json& object, const char* pointer) {
  const Json& value = At(object, pointer);
  return value.is_string() ? value.get<std::string>() : "";
}

ApiError ForbiddenObject(const ResourceType& type, const std::string& name,
                         std::string_view why) {
  ApiError error = apistore::Forbidden(fmt::format(
      "{} \"{}\" is forbidden: {}", type.QualifiedResource(), name, why));
  error.name = name;
  error.group = type.group;
  error.kind = type.resource;
  return error;
}

bool IsSliceOf(const Json& slice, const std::string& driver) {
  return TextAt(slice, "/spec/driver") == driver;
}

/// What the status says of devices of other drivers.
Json ForeignEntries(const Json& claim, const std::string& driver) {
  Json entries = Json::array();
  for (const Json& entry : At(claim, "/status/devices")) {
    if (apistore::TextField(entry, "driver") != driver) {
      entries.push_back(entry);
    }
  }
  return entries;
}

std::optional<ApiError> CheckDeviceStatus(const std::string& driver,
                                          const ResourceType& type,
                                          const Json* object, const Json* old) {
  if (object == nullptr || old == nullptr) return std::nullopt;
  const Json after = ForeignEntries(*object, driver);
  if (after == ForeignEntries(*old, driver)) return std::nullopt;
  std::string others;
  for (const Json& entry : after) {
    others = fmt::format(": an entry is of driver \"{}\"",
                         apistore::TextField(entry, "driver"));
  }
  return ForbiddenObject(
      type, apistore::MetaText(*old, "name"),
      fmt::format("driver \"{}\" may write only its own entries of "
                  "status.devices{}",
                  driver, others));
}

}  // namespace

bool HasDevicesOf(const Json& claim, std::string_view driver) {
  for (const Json& result : At(claim, "/status/allocation/devices/results")) {
    if (result.is_object() && apistore::TextField(result, "driver") == driver) {
      return true;
    }
  }
  return false;
}

bool Rights::Allows(std::string_view group, std::string_view resource,
                    std::string_view subresource, std::string_view verb) const {
  if (group.empty() && resource == kPods && !options_.read_pods) return false;
  for (const Grant& grant : kGrants) {
    if (grant.group == group && grant.resource == resource &&
        grant.subresource == subresource) {
      return grant.verbs.find(fmt::format(" {} ", verb)) !=
             std::string_view::npos;
    }
  }
  return false;
}

std::optional<ApiError> Rights::CheckVerb(const std::string& driver,
                                          const ApiRequest& request) const {
  const ResourceType& type = *request.target.type;
  const std::string_view verb = apistore::VerbName(request.verb);
  if (!Allows(type.group, type.resource, request.subresource, verb)) {
    return ForbiddenObject(
        type, request.target.name,
        fmt::format("driver \"{}\" cannot {} resource \"{}{}{}\" in API group "
                    "\"{}\"",
                    driver, verb, type.resource,
                    request.subresource.empty() ? "" : "/", request.subresource,
                    type.group));
  }
  if (request.verb == Verb::kDeleteCollection &&
      request.Parameter("fieldSelector").empty() &&
      request.Parameter("labelSelector").empty()) {
    return ForbiddenObject(type, "",
                           fmt::format("driver \"{}\" cannot delete them "
                                       "together without a selector",
                                       driver));
  }
  return std::nullopt;
}

std::optional<ApiError> Rights::CheckSlice(const std::string& driver,
                                           const Json* object, const Json* old,
                                           const apistore::Store& store) const {
  const ResourceType& type = *store.FindType("resource.k8s.io", kSlices);
  for (const Json* slice : {old, object}) {
    if (slice == nullptr || IsSliceOf(*slice, driver)) continue;
    return ForbiddenObject(
        type, apistore::MetaText(*slice, "name"),
        fmt::format("driver \"{}\" may not write slices of driver \"{}\" "
                    "(spec.driver)",
                    driver, TextAt(*slice, "/spec/driver")));
  }
  if (object == nullptr) return std::nullopt;
  const std::string name = apistore::MetaText(*object, "name");
  const std::string node = TextAt(*object, "/spec/nodeName");
  if (node != options_.node_name && !(node.empty() && options_.network_pools)) {
    return ForbiddenObject(
        type, name,
        fmt::format("driver \"{}\" may write slices of node \"{}\" only, and "
                    "spec.nodeName is \"{}\"",
                    driver, options_.node_name, node));
  }
  if (old != nullptr) return std::nullopt;
  std::size_t count = 0;
  for (const apistore::ObjectPtr& slice : store.All(type)) {
    count += IsSliceOf(*slice, driver) ? 1 : 0;
  }
  if (count < options_.max_slices) return std::nullopt;
  return ForbiddenObject(
      type, name,
      fmt::format("driver \"{}\" has {} slices, which is the limit", driver,
                  count));
}

apistore::ClientRules Rights::RulesFor(const std::string& driver,
                                       const ApiRequest& request,
                                       const apistore::Store& store) const {
  const ResourceType& type = *request.target.type;
  apistore::ClientRules rules;
  if (type.resource == kSlices) {
    rules.visible = [driver](const Json& slice) {
      return IsSliceOf(slice, driver);
    };
    rules.authorize = [this, driver, &store](const Json* object,
                                             const Json* old) {
      return CheckSlice(driver, object, old, store);
    };
  } else if (type.resource == kClaims) {
    rules.visible = [driver](const Json& claim) {
      return HasDevicesOf(claim, driver);
    };
    rules.authorize = [driver, &type](const Json* object, const Json* old) {
      return CheckDeviceStatus(driver, type, object, old);
    };
    rules.only_status_field = "devices";
  }
  return rules;
}

std::optional<ApiError> Rights::CheckVisible(const std::string& driver,
                                             const ApiRequest& request,
                                             const Json& object) const {
  const ResourceType& type = *request.target.type;
  const std::string& name = request.target.name;
  if (type.resource == kClaims && !HasDevicesOf(object, driver)) {
    return apistore::NotFound(type, name);
  }
  if (type.resource == kSlices && !IsSliceOf(object, driver)) {
    return ForbiddenObject(
        type, name,
        fmt::format("driver \"{}\" may not see slices of driver \"{}\" "
                    "(spec.driver)",
                    driver, TextAt(object, "/spec/driver")));
  }
  return std::nullopt;
}

std::optional<ApiError> Rights::CheckEvent(const std::string& driver,
                                           const Json& event,
                                           const apistore::Store& store) const {
  const char* field =
      event.contains("involvedObject") ? "involvedObject" : "regarding";
  const auto object = event.find(field);
  const bool there = object != event.end() && object->is_object();
  const std::string kind = there ? apistore::TextField(*object, "kind") : "";
  const std::string name = there ? apistore::TextField(*object, "name") : "";
  const std::string ns = there ? apistore::TextField(*object, "namespace") : "";
  if (kind == "Node" && name == options_.node_name) return std::nullopt;
  for (const ResourceType& type : store.types()) {
    if (type.kind != kind) continue;
    const apistore::ObjectPtr found = store.Find(type, {ns, name});
    if (found == nullptr) continue;
    const bool own =
        kind == "Pod" ||
        (kind == "ResourceClaim" && HasDevicesOf(*found, driver)) ||
        (kind == "ResourceSlice" && IsSliceOf(*found, driver));
    if (own) return std::nullopt;
  }
  return apistore::Forbidden(
      fmt::format("events is forbidden: driver \"{}\" may write events about "
                  "the node, its pods, and claims and slices of its own, and "
                  "{} is {} \"{}\"",
                  driver, field, kind.empty() ? "no object" : kind, name));
}

apistore::Answer Rights::Review(const std::string& driver,
                                const Json& review) const {
  const Json& asked = At(review, "/spec/resourceAttributes");
  apistore::Answer answer;
  answer.code = 201;
  answer.body = review;
  const auto text = [&](const char* field) {
    return asked.is_object() ? apistore::TextField(asked, field)
                             : std::string();
  };
  const bool allowed = Allows(text("group"), text("resource"),
                              text("subresource"), text("verb"));
  answer.body["status"] = {
      {"allowed", allowed},
      {"reason", fmt::format("driver \"{}\" {} this", driver,
                             allowed ? "may do" : "may not do")}};
  return answer;
}

}  // namespace devmgr::endpoint
