// SPDX-License-Identifier: Apache-2.0
#include "model/allocation_manifests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/test_node.h"

namespace devmgr::model {
namespace {

std::string RequestText(const std::string& device_class, int count) {
  return fmt::format(
      "{{devices: {{requests: [{{name: r, exactly: {{deviceClassName: {}, "
      "count: {}}}}}]}}}}",
      device_class, count);
}

template <typename Objects>
void AddAll(const Objects& from, Objects* to) {
  for (const auto& [name, object] : from) to->insert_or_assign(name, object);
}

}  // namespace

std::string DriverName(const std::string& name) {
  return name + ".example.com";
}

std::string ClassText(const std::string& name) {
  const std::string selector =
      name == "any" ? "true"
                    : fmt::format("device.driver == \"{}\"", DriverName(name));
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: "
      "{0}}}\nspec: {{extendedResourceName: example.com/{0}, selectors: "
      "[{{cel: {{expression: '{1}'}}}}]}}\n",
      name, selector);
}

std::string TemplateText(const std::string& name) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: "
      "{{name: {}}}\nspec: {{spec: {}}}\n",
      name, RequestText(name, name == "any" ? 2 : 1));
}

std::string SharedClaimText(const std::string& name, int incarnation) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: {0}-{1}}}\nspec: {2}\n",
      name, incarnation, RequestText(name == "s0" ? "a" : "any", 1));
}

std::string SliceText(const std::string& driver, const Pool& pool) {
  std::vector<std::string> devices;
  for (int i = 0; i < pool.devices; ++i) {
    devices.push_back(fmt::format("{{name: gpu-{}}}", i));
  }
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "{0}}}\nspec:\n  driver: {0}\n  nodeName: node-1\n  pool: {{name: p, "
      "generation: {1}, resourceSliceCount: {2}}}\n  devices: [{3}]\n",
      DriverName(driver), pool.generation, pool.complete ? 1 : 2,
      fmt::join(devices, ", "));
}

void ReadManifests::Add(const std::string& text, ObjectSnapshot* objects) {
  auto& parsed = documents_[text];
  if (parsed == nullptr) {
    parsed = std::make_unique<ObjectSnapshot>(SnapshotOf(text));
  }
  AddAll(parsed->pods, &objects->pods);
  AddAll(parsed->claims, &objects->claims);
  AddAll(parsed->claim_templates, &objects->claim_templates);
  AddAll(parsed->device_classes, &objects->device_classes);
  AddAll(parsed->resource_slices, &objects->resource_slices);
}

}  // namespace devmgr::model
