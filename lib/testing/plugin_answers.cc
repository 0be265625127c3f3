// SPDX-License-Identifier: Apache-2.0
#include "testing/plugin_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "cdi/qualified_name.h"
#include "common/ascii.h"

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

constexpr std::size_t kMaxFileName = 100;
constexpr char kVersionOfCdi[] = "0.5.0";

/// Resource names that no manager accepts are a thing to test, so anything has
/// to become a name of a file.
std::string FileNameOf(std::string_view resource) {
  std::string name;
  for (const char c : resource.substr(0, kMaxFileName)) {
    name += IsLetterOrDigit(c) || c == '.' || c == '-' ? c : '_';
  }
  if (name.empty() || name.front() == '.') name.insert(0, "plugin");
  return name;
}

std::string VariableOf(std::string_view resource) {
  std::string name;
  for (const char c : resource.substr(0, kMaxFileName)) {
    const bool lower = c >= 'a' && c <= 'z';
    name += lower ? static_cast<char>(c - 'a' + 'A')
                  : (IsLetterOrDigit(c) ? c : '_');
  }
  return name.empty() ? "DEVICES" : name;
}

DeviceNode NodeOf(const std::string& id) {
  return {"/dev/" + id, "/dev/null", "rw"};
}

DeviceMount MountOf(const std::string& id, const std::filesystem::path& state) {
  return {"/run/devices/" + id, (state / id).string(), true};
}

}  // namespace

PluginNames::PluginNames(std::string_view resource)
    : file(FileNameOf(resource)),
      device(FileNameOf(resource.substr(resource.rfind('/') + 1))),
      variable(VariableOf(resource)),
      cdi_kind(resource) {
  if (!cdi::CheckQualifiedName(cdi_kind + "=x").ok()) {
    cdi_kind = "fake.example.com/device";
  }
}

PluginDevices MakeDevices(const PluginNames& names, int count,
                          const std::vector<std::int64_t>& numa) {
  PluginDevices devices;
  for (int i = 0; i < count; ++i) {
    FakeDevicePlugin::Device device;
    device.id = fmt::format("{}-{}", names.device, i);
    if (!numa.empty()) {
      device.numa = {numa[static_cast<std::size_t>(i) % numa.size()]};
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

PluginDevices Spoiled(PluginDevices devices, const ScenarioStep& step) {
  switch (step.action) {
    case Action::kDuplicateIds:
      if (!devices.empty()) {
        devices.push_back(devices.front());
        devices.back().health = "Unhealthy";
      }
      break;
    case Action::kUnknownHealth:
      for (auto& device : devices) {
        device.health = step.message.empty() ? "Degraded" : step.message;
      }
      break;
    case Action::kGarbageIds:
      for (const std::string& id :
           {std::string(), std::string(64, 'x'), std::string("\xff\xfe")}) {
        devices.push_back({id, "Healthy", {}});
      }
      break;
    case Action::kGarbageNuma:
      for (auto& device : devices) {
        device.numa = {-1, 4096, std::numeric_limits<std::int64_t>::max()};
      }
      break;
    default:
      break;
  }
  return devices;
}

DeviceIds Prefer(const PreferenceRequest& request) {
  DeviceIds chosen = request.must_include;
  const std::set<std::string> taken(chosen.begin(), chosen.end());
  const auto wanted = static_cast<std::size_t>(std::max(request.size, 0));
  for (auto id = request.available.rbegin();
       id != request.available.rend() && chosen.size() < wanted; ++id) {
    if (taken.count(*id) == 0) chosen.push_back(*id);
  }
  return chosen;
}

Edits EditsFor(const PluginNames& names, const DeviceIds& ids,
               const std::filesystem::path& state) {
  Edits edits;
  edits.env.push_back({names.variable, fmt::format("{}", fmt::join(ids, ","))});
  for (const std::string& id : ids) {
    edits.devices.push_back(NodeOf(id));
    edits.mounts.push_back(MountOf(id, state));
  }
  return edits;
}

Edits CdiEditsFor(const PluginNames& names, const DeviceIds& ids) {
  Edits edits;
  edits.env.push_back({names.variable, fmt::format("{}", fmt::join(ids, ","))});
  for (const std::string& id : ids) {
    edits.cdi_devices.push_back(fmt::format("{}={}", names.cdi_kind, id));
  }
  return edits;
}

Edits GarbageEdits(const ScenarioStep& step) {
  Edits edits;
  edits.env = {{"", "no name"}, {"A=B", "two names"}};
  edits.mounts = {{"not/absolute", "../etc", false}, {"", "", true}};
  edits.devices = {{"dev/null", "", "everything"}};
  edits.cdi_devices = {step.message.empty() ? "not a CDI name" : step.message};
  return edits;
}

CdiSpec CdiSpecOf(const PluginNames& names, const PluginDevices& devices,
                  const std::filesystem::path& state) {
  CdiSpec spec;
  spec.version = kVersionOfCdi;
  spec.kind = names.cdi_kind;
  for (const FakeDevicePlugin::Device& device : devices) {
    const DeviceNode node = NodeOf(device.id);
    const DeviceMount mount = MountOf(device.id, state);
    CdiSpecDevice& defined = spec.devices.emplace_back();
    defined.name = device.id;
    CdiDeviceNode& cdi_node = defined.edits.device_nodes.emplace_back();
    cdi_node.path = node.container_path;
    cdi_node.host_path = node.host_path;
    cdi_node.permissions = node.permissions;
    defined.edits.mounts.push_back(
        {mount.host_path, mount.container_path, {"ro", "bind"}, ""});
  }
  return spec;
}

}  // namespace devmgr::testing
