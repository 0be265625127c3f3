// SPDX-License-Identifier: Apache-2.0
//
// Containers that were made past the shim are recognised by what they have:
// device nodes and CDI devices, of which it is known whose they are.
#include <devmgr/cdi.h>
#include <devmgr/runtime_inspection.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "common/status.h"
#include "shim/json_member.h"
#include "shim/oci_devices.h"

namespace devmgr {
namespace {

using shim::OciNode;
using shim::OciNodesOf;

/// Reasons that one finding tells.
constexpr std::size_t kMaxReasons = 3;

/// Devices of this node, by what a container shows of them, and who holds them.
/// They are known by a text: `CDI device 'v.com/c=1'`.
class DevicesOfNode {
 public:
  DevicesOfNode(const LedgerAnswers& answers, const CdiRegistry& registry,
                const CdiHost& host)
      : registry_(registry), host_(host) {
    for (const CdiRegistryDevice& device : registry.devices()) {
      const auto edits = CdiEditsOf(registry, {device.name});
      if (!edits.ok()) continue;  // By its name it is found all the same.
      AddNodes(CdiText(device.name),
               InjectCdiIntoOciConfig("{}", *edits, host));
    }
    for (const auto& [uid, answer] : answers) {
      if (!answer.ok()) continue;
      for (const ContainerDevices& container : answer->containers) {
        if (!container.devices_released) AddHeld(*answer, container);
      }
    }
  }

  bool empty() const { return nodes_.empty() && holders_.empty(); }

  /// What is wrong when a container of this pod has this node; or nothing.
  std::string WhyNot(const OciNode& node, const PodUid& pod) const {
    if (shim::IsEverywhere(node.path)) return "";
    const auto devices = nodes_.find({node.type, node.major, node.minor});
    if (devices == nodes_.end()) return "";
    const auto is_held_by_it = [&](const auto& d) { return Holds(pod, d); };
    if (std::any_of(devices->second.begin(), devices->second.end(),
                    is_held_by_it)) {
      return "";
    }
    // Of those that share a node, one that somebody holds says most.
    const auto held =
        std::find_if(devices->second.begin(), devices->second.end(),
                     [&](const auto& d) { return holders_.contains(d); });
    const std::string& device =
        held != devices->second.end() ? *held : *devices->second.begin();
    return fmt::format("it has the device node '{}' ({} {}:{}) of {}",
                       node.path, node.type, node.major, node.minor,
                       WithHolder(device));
  }

  /// The same of a CDI device that it was created with.
  std::string WhyNot(const std::string& name, const PodUid& pod) const {
    const std::string device = CdiText(name);
    const bool is_known =
        registry_.Find(name) != nullptr || holders_.contains(device);
    if (!is_known || Holds(pod, device)) return "";
    return "it was created with " + WithHolder(device);
  }

 private:
  static std::string CdiText(const std::string& name) {
    return fmt::format("CDI device '{}'", name);
  }

  void AddHeld(const PodDevices& pod, const ContainerDevices& container) {
    const auto names = CdiNamesOf(container);
    for (const auto& name : names.value_or(std::vector<std::string>())) {
      holders_[CdiText(name)].emplace(pod.uid, pod.name);
    }
    for (const DeviceNode& node : container.devices) {
      const std::string device =
          fmt::format("'{}', a device of '{}'", node.host_path, node.resource);
      holders_[device].emplace(pod.uid, pod.name);
      ContainerDevices alone;
      alone.devices = {node};
      AddNodes(device, InjectIntoOciConfig("{}", alone, {}, host_));
    }
  }

  /// The nodes of a configuration into which only `device` was injected. Where
  /// that failed a host node is gone, and no container has it either.
  void AddNodes(const std::string& device,
                const absl::StatusOr<std::string>& config) {
    if (!config.ok()) return;
    const auto json = shim::ParseJson(*config);
    if (!json.ok()) return;
    for (const OciNode& node : OciNodesOf(*json)) {
      nodes_[{node.type, node.major, node.minor}].insert(device);
    }
  }

  bool Holds(const PodUid& pod, const std::string& device) const {
    const auto holders = holders_.find(device);
    return holders != holders_.end() && holders->second.contains(pod);
  }

  std::string WithHolder(const std::string& device) const {
    const auto holders = holders_.find(device);
    if (holders == holders_.end()) {
      return device + ", which the ledger gives to no pod";
    }
    return fmt::format("{}, which the ledger gives to pod '{}'", device,
                       holders->second.begin()->second.ToString());
  }

  const CdiRegistry& registry_;
  const CdiHost& host_;
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>,
           std::set<std::string>>
      nodes_;
  std::map<std::string, std::map<PodUid, ObjectName>> holders_;
};

std::vector<std::string> ReasonsFor(const UnmarkedContainer& unmarked,
                                    const DevicesOfNode& devices) {
  std::vector<std::string> reasons;
  const PodUid& pod = unmarked.container.pod_uid;
  const auto add = [&](std::string reason) {
    if (!reason.empty()) reasons.push_back(std::move(reason));
  };
  for (const std::string& name : unmarked.config.cdi_devices) {
    add(devices.WhyNot(name, pod));
  }
  const auto config = shim::ParseJson(unmarked.config.oci);
  if (!config.ok() || shim::DeviceAccess(*config).all()) return reasons;
  for (const OciNode& node : OciNodesOf(*config)) {
    add(devices.WhyNot(node, pod));
  }
  return reasons;
}

FsckFinding Finding(const RuntimeContainer& container,
                    std::vector<std::string> reasons) {
  const std::size_t count = reasons.size();
  reasons.resize(std::min(count, kMaxReasons));
  std::string why = fmt::format("{}", fmt::join(reasons, "; "));
  if (count > kMaxReasons) {
    why += fmt::format("; and {} more", count - kMaxReasons);
  }
  FsckFinding finding;
  finding.check = "unaccounted-container";
  finding.object = container.pod.name.empty()
                       ? "container/" + container.id
                       : fmt::format("container/{}/{}",
                                     container.pod.ToString(), container.name);
  finding.message = fmt::format(
      "container {}: no shim has given it devices, "
      "and {}",
      container.id, why);
  finding.hint =
      "until the container ends it can use them beside a pod that is given "
      "them: stop it, or have its pod prepared";
  return finding;
}

}  // namespace

std::vector<FsckFinding> CheckUnmarkedContainers(
    const std::vector<UnmarkedContainer>& containers,
    const LedgerAnswers& answers, const CdiRegistry& registry,
    const CdiHost& host) {
  std::vector<FsckFinding> findings;
  const DevicesOfNode devices(answers, registry, host);
  if (devices.empty()) return findings;
  for (const UnmarkedContainer& unmarked : containers) {
    const auto answer = answers.find(unmarked.container.pod_uid);
    if (answer != answers.end() &&
        absl::IsUnavailable(answer->second.status())) {
      continue;
    }
    auto reasons = ReasonsFor(unmarked, devices);
    if (reasons.empty()) continue;
    findings.push_back(Finding(unmarked.container, std::move(reasons)));
  }
  return findings;
}

}  // namespace devmgr
