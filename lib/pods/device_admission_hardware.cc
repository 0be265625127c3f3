// SPDX-License-Identifier: Apache-2.0
//
// Which hardware the answers of plugins are, and what becomes of a pod whose
// hardware another one has.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "pods/device_admission.h"

namespace devmgr::pods {
namespace {

/// Each time other devices are known to be held elsewhere.
constexpr int kMostClashes = 16;

std::vector<DeviceId> IdsOf(const std::vector<device::Reservation>& plan,
                            const device::NeedKey& key) {
  std::vector<DeviceId> ids;
  for (const device::Reservation& reservation : plan) {
    if (reservation.container != key.first ||
        reservation.resource != key.second) {
      continue;
    }
    for (const auto& device : reservation.devices) ids.push_back(device.id);
  }
  return ids;
}

}  // namespace

void DeviceAdmission::Identify(const Shared& operation) {
  if (!parts_.hardware.one_holder) return Commit(operation);
  std::vector<device::NeedKey> keys;
  std::vector<upkeep::NodeQuestion> questions;
  for (const auto& [key, answer] : operation->answers) {
    if (device::IsSharedByIntent(key.second.value, parts_.hardware)) continue;
    keys.push_back(key);
    upkeep::NodeQuestion& question = questions.emplace_back();
    const std::vector<DeviceId> ids = IdsOf(operation->plan, key);
    if (std::any_of(ids.begin(), ids.end(), device::IsReplica)) continue;
    question.cdi_devices = answer.edits.cdi_devices;
    for (const DeviceNode& node : answer.edits.devices) {
      if (!device::IsControlNode(node.host_path, parts_.hardware)) {
        question.devices.push_back(node);
      }
    }
  }
  if (!parts_.look_at_hardware) {
    return OnIdentified(operation, keys,
                        upkeep::HardwareLook::Facts(keys.size()));
  }
  parts_.look_at_hardware(
      std::move(questions),
      [this, operation, keys](const upkeep::HardwareLook::Facts& facts) {
        OnIdentified(operation, keys, facts);
      });
}

void DeviceAdmission::OnIdentified(const Shared& operation,
                                   const std::vector<device::NeedKey>& keys,
                                   const upkeep::HardwareLook::Facts& facts) {
  if (operation->askers.empty()) return Free(operation, "cancelled", nullptr);
  operation->hardware.clear();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    device::Hardware hardware = device::HardwareOf(
        IdsOf(operation->plan, keys[i]), facts[i], parts_.hardware);
    if (!hardware.empty()) operation->hardware[keys[i]] = std::move(hardware);
  }
  const auto clash = claim::FindClash(parts_.state, operation->request.pod.uid,
                                      operation->hardware);
  if (!clash.has_value()) return Commit(operation);
  YieldHardware(operation, clash->first, clash->second);
}

void DeviceAdmission::YieldHardware(const Shared& operation,
                                    const device::NeedKey& key,
                                    const claim::HeldHardware& held) {
  const std::vector<DeviceId> ids = IdsOf(operation->plan, key);
  const std::string text = claim::HeldElsewhereText(
      fmt::format("device '{}' of {}", ids.empty() ? DeviceId() : ids.front(),
                  key.second),
      held);
  parts_.events.Add(true, claim::kDeviceHeldElsewhere, "Pod",
                    operation->request.pod.name, text);
  parts_.devices.Learn(key.second, ids, operation->hardware[key]);
  ++operation->clashes;
  Free(operation, text, [this, operation, text] {
    if (operation->clashes < kMostClashes) operation->plans = 0;
    PlanAgain(operation, AbortedError("{}", text));
  });
}

}  // namespace devmgr::pods
