// SPDX-License-Identifier: Apache-2.0
#include "shim/held_devices.h"

#include <devmgr/cri_shim.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "shim/json_member.h"
#include "shim/oci_devices.h"

namespace devmgr::shim {
namespace {

using NodeKey = std::tuple<std::string, std::int64_t, std::int64_t>;

constexpr char kCdiMember[] = "cdi";
constexpr char kResourcesMember[] = "resources";

/// Without those that every container has.
std::set<NodeKey> NodesOf(const Json& config) {
  std::set<NodeKey> nodes;
  for (const OciNode& node : OciNodesOf(config)) {
    if (IsEverywhere(node.path)) continue;
    nodes.emplace(node.type, node.major, node.minor);
  }
  return nodes;
}

/// The nodes that a CDI device brings; none where that is not known.
std::set<NodeKey> NodesOf(const std::string& name, const CdiRegistry& registry,
                          const CdiHost& host) {
  const auto edits = CdiEditsOf(registry, {name});
  if (!edits.ok()) return {};
  const auto injected = InjectCdiIntoOciConfig("{}", *edits, host);
  if (!injected.ok()) return {};
  const auto json = ParseJson(*injected);
  return json.ok() ? NodesOf(*json) : std::set<NodeKey>();
}

/// Those of a list that are there; others wrote it.
std::vector<std::string> TextsIn(const Json& list) {
  std::vector<std::string> texts;
  if (!list.is_array()) return texts;
  for (const Json& item : list) {
    if (std::string text = TextOf(item); !text.empty()) {
      texts.push_back(std::move(text));
    }
  }
  return texts;
}

}  // namespace

void HeldDevices::Add(const HeldDevices& other) {
  devices.insert(other.devices.begin(), other.devices.end());
  cdi_devices.insert(other.cdi_devices.begin(), other.cdi_devices.end());
}

void HeldDevices::Remove(const HeldDevices& other) {
  for (const auto& device : other.devices) devices.erase(device);
  for (const std::string& name : other.cdi_devices) cdi_devices.erase(name);
}

HeldDevices HeldBy(const ContainerDevices& container) {
  HeldDevices held;
  for (const HeldResource& resource : container.resources) {
    for (const std::string& id : resource.devices) {
      held.devices.emplace(resource.name, id);
    }
  }
  for (const CdiDevice& device : container.cdi_devices) {
    held.cdi_devices.insert(device.name);
  }
  // Those that plugins name by annotation, too.
  if (const auto names = CdiNamesOf(container); names.ok()) {
    held.cdi_devices.insert(names->begin(), names->end());
  }
  return held;
}

HeldDevices HeldBy(const PodDevices& pod) {
  HeldDevices held;
  for (const ContainerDevices& container : pod.containers) {
    held.Add(HeldBy(container));
  }
  return held;
}

std::string WriteHeld(const HeldDevices& held) {
  Json json = Json::object();
  for (const auto& [resource, device] : held.devices) {
    json[kResourcesMember][resource].push_back(device);
  }
  if (!held.cdi_devices.empty()) json[kCdiMember] = held.cdi_devices;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HeldDevices ReadHeld(std::string_view text) {
  HeldDevices held;
  const auto json = ParseJson(text);
  if (!json.ok()) return held;
  const Json& resources = MemberOf(*json, kResourcesMember);
  if (resources.is_object()) {
    for (const auto& [resource, devices] : resources.items()) {
      for (std::string& id : TextsIn(devices)) {
        if (!resource.empty()) held.devices.emplace(resource, std::move(id));
      }
    }
  }
  for (std::string& name : TextsIn(MemberOf(*json, kCdiMember))) {
    held.cdi_devices.insert(std::move(name));
  }
  return held;
}

HeldDevices HeldByAnnotations(
    const std::map<std::string, std::string>& annotations) {
  HeldDevices held;
  const auto written = annotations.find(std::string(kDevicesAnnotation));
  if (written != annotations.end()) held = ReadHeld(written->second);
  if (const auto names = ParseCdiAnnotations(annotations); names.ok()) {
    held.cdi_devices.insert(names->begin(), names->end());
  }
  return held;
}

HeldDevices HeldByConfig(const RuntimeContainerConfig& config,
                         const CdiRegistry& registry, const CdiHost& host) {
  HeldDevices held = HeldByAnnotations(config.annotations);
  held.cdi_devices.insert(config.cdi_devices.begin(), config.cdi_devices.end());
  const auto json = ParseJson(config.oci);
  if (!json.ok() || DeviceAccess(*json).all()) return held;
  const std::set<NodeKey> has = NodesOf(*json);
  if (has.empty()) return held;
  for (const CdiRegistryDevice& device : registry.devices()) {
    const std::set<NodeKey> nodes = NodesOf(device.name, registry, host);
    if (!nodes.empty() &&
        std::includes(has.begin(), has.end(), nodes.begin(), nodes.end())) {
      held.cdi_devices.insert(device.name);
    }
  }
  return held;
}

}  // namespace devmgr::shim
