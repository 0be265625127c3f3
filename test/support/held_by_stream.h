// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/device_changes.h>
#include <fmt/core.h>

#include <set>
#include <string>
#include <vector>

namespace devmgr {

/// What pods hold, as a reader of changes comes to know it. Each device of each
/// container is held once at most, and only what is held is released.
class HeldByStream {
 public:
  void Take(const DeviceChange& change) {
    Follow(change.token);
    if (change.kind == DeviceChangeKind::kReleased) {
      for (const std::string& key : KeysOf(change)) {
        if (held_.erase(key) == 0) Complain("released, and not held", key);
      }
    } else if (change.kind == DeviceChangeKind::kAllocated ||
               change.kind == DeviceChangeKind::kHeld) {
      for (const std::string& key : KeysOf(change)) {
        if (!held_.insert(key).second) Complain("held twice", key);
        ++allocations_;
      }
    }
  }
  void Take(const std::vector<DeviceChange>& changes) {
    for (const DeviceChange& change : changes) Take(change);
  }

  const std::set<std::string>& held() const { return held_; }
  std::size_t allocations() const { return allocations_; }
  /// What was wrong; empty: nothing.
  const std::string& complaint() const { return complaint_; }

  /// One for each device of a container.
  static std::vector<std::string> KeysOf(const DeviceChange& change) {
    std::vector<std::string> keys;
    const auto add = [&](const std::string& device) {
      keys.push_back(fmt::format(
          "{} {} {} {} {} {} {} {}", change.pod_uid.value,
          change.container.value, change.resource.value, change.claim_uid.value,
          change.driver, change.pool, change.share_id, device));
    };
    for (const DeviceId& device : change.devices) add(device.value);
    if (!change.devices.empty()) return keys;
    // Of old drivers only CDI names are known.
    std::string names;
    for (const std::string& name : change.cdi_devices) names += name + ",";
    add(names);
    return keys;
  }

 private:
  void Follow(const ChangeToken& token) {
    // Another process begins to count changes of health anew.
    const bool is_before = token.process == last_.process
                               ? token < last_
                               : token.sequence < last_.sequence;
    if (is_before) Complain("before the one before", token.ToString());
    last_ = token;
  }
  void Complain(const std::string& what, const std::string& key) {
    if (complaint_.empty()) complaint_ = what + ": " + key;
  }

  std::set<std::string> held_;
  std::size_t allocations_ = 0;
  ChangeToken last_{0, 0};
  std::string complaint_;
};

}  // namespace devmgr
