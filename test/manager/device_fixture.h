// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "support/test_node.h"

namespace devmgr {

inline constexpr char kGpu[] = "example.com/gpu";
inline constexpr char kNic[] = "example.com/nic";

/// Limits of one container.
using Limits = std::map<std::string, int>;

inline std::string ContainerYaml(const std::string& name,
                                 const Limits& limits) {
  std::string text = "  - name: " + name + "\n    resources: {limits: {";
  for (const auto& [resource, count] : limits) {
    text += resource + ": \"" + std::to_string(count) + "\", ";
  }
  return text + "}}\n";
}

/// Pod `name` with UID `u-name` and one container, `c`. `spec` is put into the
/// pod's spec as it is.
inline std::string DevicePod(const std::string& name, const Limits& limits,
                             const std::string& spec = "") {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: u-" +
         name + "}\nspec:\n" + spec + "  containers:\n" +
         ContainerYaml("c", limits) + "---\n";
}

class DeviceNodeTest : public ::testing::Test {
 protected:
  /// The devices that a pod holds of a resource, by the ledger.
  std::vector<DeviceId> Held(const std::string& pod,
                             const std::string& resource) {
    std::vector<DeviceId> ids;
    const state::State state = node_.store.Load();
    const auto* record = state.FindPod(PodUid{"u-" + pod});
    if (record == nullptr) return ids;
    for (const state::DeviceHold& hold : record->holds) {
      if (hold.resource != resource) continue;
      for (const auto& device : hold.devices) ids.push_back(device.id);
    }
    return ids;
  }

  std::vector<std::string> MessagesOf(const std::string& reason) {
    std::vector<std::string> messages;
    for (const EventInfo& event : node_.manager().Events(0)) {
      if (event.reason == reason) messages.push_back(event.message);
    }
    return messages;
  }

  TestNode node_;
};

inline FakePlugins::Call Allocate(const std::string& resource,
                                  std::vector<DeviceId> ids,
                                  const std::string& pod) {
  return {"Allocate", resource, std::move(ids), "default/" + pod, "c"};
}

}  // namespace devmgr
