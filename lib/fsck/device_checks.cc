// SPDX-License-Identifier: Apache-2.0
//
// Checks of what pods hold against what device plugins tell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

#include "api/quote.h"
#include "common/counted.h"
#include "device/id_order.h"
#include "fsck/checks.h"

namespace devmgr::fsck {
namespace {

using Names = std::set<std::string, device::IdOrder>;

std::string Listed(const Names& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == kMostNames) {
      shown.emplace_back("...");
      break;
    }
    shown.push_back(api::Quoted(name));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

/// Calls `visit(pod, hold)` for all that containers have, or may start with.
template <typename Visit>
void ForEachHold(const state::State& state, Visit visit) {
  for (const auto& [uid, pod] : state.pods) {
    if (pod->phase == state::PodPhase::kReleasing) continue;
    for (const state::DeviceHold& hold : pod->holds) {
      if (hold.phase == device::ReservationPhase::kCommitted) visit(*pod, hold);
    }
  }
}

/// What a pod holds of a resource and its plugin does not vouch for.
struct Doubtful {
  Names unlisted;
  Names unhealthy;
};

Doubtful DoubtfulOf(const state::DeviceHold& hold, const PluginView& plugin) {
  Doubtful doubtful;
  for (const device::HeldDevice& device : hold.devices) {
    const auto health = plugin.find(device.id);
    if (health == plugin.end()) {
      doubtful.unlisted.insert(device.id);
    } else if (health->second != device::Health::kHealthy) {
      doubtful.unhealthy.insert(device.id);
    }
  }
  return doubtful;
}

/// `problem` is what is wrong with the devices `names`, of which there may be
/// none.
void AddDevices(const std::string& check, const state::PodRecord& pod,
                const state::DeviceHold& hold, const Names& names,
                const std::string& problem, std::vector<Finding>* findings) {
  if (names.empty()) return;
  findings->push_back(Warning(
      check, "pod/" + pod.name.ToString(),
      fmt::format("container '{}' of pod '{}' ({}) holds {} of '{}' {}: {}",
                  hold.container, pod.name.ToString(), pod.uid.value,
                  Counted(names.size(), "device"), hold.resource, problem,
                  Listed(names)),
      "they stay the pod's for as long as it is there, and no other pod gets "
      "them; to move it to others, delete the pod and make it again"));
}

}  // namespace

std::vector<Finding> CheckHeldDevices(const Input& input) {
  std::vector<Finding> findings;
  if (input.running == nullptr) return findings;
  ForEachHold(input.state, [&](const auto& pod, const auto& hold) {
    const auto plugin = input.running->plugins.find(hold.resource);
    if (plugin == input.running->plugins.end()) return;
    const Doubtful doubtful = DoubtfulOf(hold, plugin->second);
    AddDevices("unlisted-device", pod, hold, doubtful.unlisted,
               "that its plugin does not list any more", &findings);
    AddDevices("unhealthy-device", pod, hold, doubtful.unhealthy,
               "that its plugin calls unhealthy", &findings);
  });
  return findings;
}

std::vector<Finding> CheckAbsentPlugins(const Input& input) {
  std::vector<Finding> findings;
  if (input.running == nullptr) return findings;
  std::map<std::string, Names> holders;
  ForEachHold(input.state, [&](const auto& pod, const auto& hold) {
    if (input.running->plugins.contains(hold.resource)) return;
    holders[hold.resource].insert(pod.name.ToString());
  });
  for (const auto& [resource, pods] : holders) {
    findings.push_back(Warning(
        "absent-plugin", "resource/" + resource,
        fmt::format("no device plugin lists devices of '{}' now, and {} {} "
                    "devices of it ({}); whether these work is not known",
                    resource, Counted(pods.size(), "pod"),
                    pods.size() == 1 ? "holds" : "hold", Listed(pods)),
        "start the plugin; what it answered goes on being answered"));
  }
  return findings;
}

}  // namespace devmgr::fsck
