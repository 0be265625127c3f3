// SPDX-License-Identifier: Apache-2.0
#include "apistore/resource_type.h"

#include <fmt/core.h>

#include <utility>

#include "apistore/device_status.h"
#include "apistore/resource_versions.h"

namespace devmgr::apistore {
namespace {

constexpr const char* kResourceGroup = "resource.k8s.io";

std::vector<ServedVersion> SliceVersions() {
  return {{"v1"}, {"v1beta2"}, {"v1beta1", SliceFromBeta1, SliceToBeta1}};
}

std::vector<ServedVersion> ClaimVersions() {
  return {{"v1"}, {"v1beta2"}, {"v1beta1", ClaimFromBeta1, ClaimToBeta1}};
}

/// Taints get the time at which they came.
std::vector<Cause> AdmitSlice(Json& object, const Json*, std::string_view now) {
  const auto spec = object.find("spec");
  if (spec == object.end() || !spec->is_object()) return {};
  const auto devices = spec->find("devices");
  if (devices == spec->end() || !devices->is_array()) return {};
  for (Json& device : *devices) {
    if (!device.is_object()) continue;
    const auto taints = device.find("taints");
    if (taints == device.end() || !taints->is_array()) continue;
    for (Json& taint : *taints) {
      if (taint.is_object() && !taint.contains("timeAdded")) {
        taint["timeAdded"] = now;
      }
    }
  }
  return {};
}

std::vector<Cause> AdmitClaim(Json& object, const Json*, std::string_view) {
  return CheckDeviceStatus(object);
}

ResourceType Pods() {
  ResourceType type;
  type.versions = {{"v1"}};
  type.kind = "Pod";
  type.resource = "pods";
  type.singular = "pod";
  type.namespaced = true;
  type.has_status = true;
  type.graceful_delete = true;
  type.has_strategic_merge = true;
  type.fields = {
      {"spec.nodeName", "/spec/nodeName", ""},
      {"spec.restartPolicy", "/spec/restartPolicy", ""},
      {"spec.schedulerName", "/spec/schedulerName", ""},
      {"spec.serviceAccountName", "/spec/serviceAccountName", ""},
      {"spec.hostNetwork", "/spec/hostNetwork", "false"},
      {"status.phase", "/status/phase", ""},
      {"status.podIP", "/status/podIP", ""},
      {"status.nominatedNodeName", "/status/nominatedNodeName", ""},
  };
  return type;
}

ResourceType Nodes() {
  ResourceType type;
  type.versions = {{"v1"}};
  type.kind = "Node";
  type.resource = "nodes";
  type.singular = "node";
  type.has_status = true;
  type.status_on_create = true;
  type.has_generation = false;
  type.has_strategic_merge = true;
  type.fields = {{"spec.unschedulable", "/spec/unschedulable", "false"}};
  return type;
}

ResourceType Events() {
  ResourceType type;
  type.versions = {{"v1"}};
  type.kind = "Event";
  type.resource = "events";
  type.singular = "event";
  type.namespaced = true;
  type.has_generation = false;
  type.has_strategic_merge = true;
  for (const char* field : {"kind", "namespace", "name", "uid", "apiVersion",
                            "resourceVersion", "fieldPath"}) {
    type.fields.push_back({fmt::format("involvedObject.{}", field),
                           fmt::format("/involvedObject/{}", field), ""});
  }
  type.fields.push_back({"reason", "/reason", ""});
  type.fields.push_back({"reportingComponent", "/reportingComponent", ""});
  type.fields.push_back({"source", "/source/component", ""});
  type.fields.push_back({"type", "/type", ""});
  return type;
}

ResourceType Leases() {
  ResourceType type;
  type.group = "coordination.k8s.io";
  type.versions = {{"v1"}};
  type.kind = "Lease";
  type.resource = "leases";
  type.singular = "lease";
  type.namespaced = true;
  type.has_generation = false;
  return type;
}

ResourceType Claims() {
  ResourceType type;
  type.group = kResourceGroup;
  type.versions = ClaimVersions();
  type.kind = "ResourceClaim";
  type.resource = "resourceclaims";
  type.singular = "resourceclaim";
  type.namespaced = true;
  type.has_status = true;
  type.has_strategic_merge = true;
  type.has_device_status = true;
  type.immutable = {"/spec"};
  type.admit = AdmitClaim;
  return type;
}

ResourceType Slices() {
  ResourceType type;
  type.group = kResourceGroup;
  type.versions = SliceVersions();
  type.kind = "ResourceSlice";
  type.resource = "resourceslices";
  type.singular = "resourceslice";
  type.fields = {{"spec.nodeName", "/spec/nodeName", ""},
                 {"spec.driver", "/spec/driver", ""}};
  type.immutable = {"/spec/driver", "/spec/pool/name", "/spec/nodeName"};
  type.admit = AdmitSlice;
  return type;
}

ResourceType Classes() {
  ResourceType type;
  type.group = kResourceGroup;
  type.versions = {{"v1"}, {"v1beta2"}, {"v1beta1"}};
  type.kind = "DeviceClass";
  type.resource = "deviceclasses";
  type.singular = "deviceclass";
  return type;
}

ApiError About(const ResourceType& type, int code, const char* reason,
               std::string_view name, std::string message) {
  ApiError error;
  error.code = code;
  error.reason = reason;
  error.message = std::move(message);
  error.name = name;
  error.group = type.group;
  error.kind = type.resource;
  return error;
}

}  // namespace

std::string ResourceType::ApiVersion(std::size_t version) const {
  const std::string& name = versions[version].name;
  return group.empty() ? name : fmt::format("{}/{}", group, name);
}

std::string ResourceType::QualifiedResource() const {
  return group.empty() ? resource : fmt::format("{}.{}", resource, group);
}

std::vector<ResourceType> BuiltinTypes() {
  return {Pods(), Nodes(), Events(), Leases(), Claims(), Slices(), Classes()};
}

ApiError NotFound(const ResourceType& type, std::string_view name) {
  return About(
      type, 404, "NotFound", name,
      fmt::format("{} \"{}\" not found", type.QualifiedResource(), name));
}

ApiError AlreadyExists(const ResourceType& type, std::string_view name) {
  return About(
      type, 409, "AlreadyExists", name,
      fmt::format("{} \"{}\" already exists", type.QualifiedResource(), name));
}

ApiError Conflict(const ResourceType& type, std::string_view name,
                  std::string_view detail) {
  return About(type, 409, "Conflict", name,
               fmt::format("Operation cannot be fulfilled on {} \"{}\": {}",
                           type.QualifiedResource(), name, detail));
}

ApiError Invalid(const ResourceType& type, std::string_view name,
                 std::vector<Cause> causes) {
  std::string texts;
  for (const Cause& cause : causes) {
    if (!texts.empty()) texts += ", ";
    if (!cause.field.empty()) texts += cause.field + ": ";
    texts += cause.message;
  }
  const std::string kind = type.group.empty()
                               ? type.kind
                               : fmt::format("{}.{}", type.kind, type.group);
  ApiError error =
      About(type, 422, "Invalid", name,
            fmt::format("{} \"{}\" is invalid: {}", kind, name, texts));
  error.kind = type.kind;
  error.causes = std::move(causes);
  return error;
}

}  // namespace devmgr::apistore
