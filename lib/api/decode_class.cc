// SPDX-License-Identifier: Apache-2.0
#include <devmgr/manifests.h>
#include <fmt/core.h>

#include <string>

#include "api/device_parts.h"
#include "api/meta.h"
#include "api/names.h"
#include "api/quote.h"
#include "api/resource.h"

namespace devmgr::api {

DeviceClass DecodeDeviceClass(const Field& root) {
  DeviceClass device_class;
  device_class.metadata = DecodeMeta(root, Scope::kCluster);
  CheckMeta(root, device_class.metadata);
  const std::string& name = device_class.metadata.name;
  if (!name.empty() && ImplicitResourceName(name).empty()) {
    root["metadata"]["name"].Warn(fmt::format(
        "{} has {} characters, at most 63 fit a resource name: the class has "
        "no implicit name; set extendedResourceName",
        Quoted(name), name.size()));
  }
  const Field spec = root["spec"];
  if (!spec.IsMap()) return device_class;
  device_class.selectors = DecodeSelectors(spec["selectors"]);
  device_class.config = DecodeClassConfig(spec["config"]);
  const Field resource = spec["extendedResourceName"];
  device_class.extended_resource_name = resource.StringOr("");
  if (resource.IsString() &&
      !IsExtendedResourceName(device_class.extended_resource_name)) {
    resource.Error(fmt::format(
        "{} is not an extended resource name (a domain outside kubernetes.io, "
        "not beginning with 'requests.', then '/' and a name)",
        Quoted(device_class.extended_resource_name)));
  }
  return device_class;
}

Node DecodeNode(const Field& root) {
  Node node;
  node.metadata = DecodeMeta(root, Scope::kCluster);
  CheckMeta(root, node.metadata);
  const Field status = root["status"];
  if (!status.IsMap()) return node;
  node.capacity = status["capacity"].QuantityMap();
  node.allocatable = status["allocatable"].QuantityMap();
  for (const Field& item : status["declaredFeatures"].AsRemarks().Items()) {
    node.declared_features.push_back(item.StringOr(""));
  }
  return node;
}

}  // namespace devmgr::api
