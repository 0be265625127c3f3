// SPDX-License-Identifier: Apache-2.0
#include "control/local_inventory.h"

#include <utility>

namespace devmgr::control {
namespace {

/// The source may have none: then nothing is known of it but its name.
std::shared_ptr<const Node> NodeNamed(const ObjectSnapshot& objects,
                                      const std::string& name,
                                      std::shared_ptr<const Node> before) {
  const auto* found = objects.nodes.Find(ObjectName{"", name});
  if (found != nullptr) return *found;
  const bool is_bare = before != nullptr && before->metadata.uid.empty() &&
                       before->metadata.name == name;
  if (is_bare) return before;
  auto node = std::make_shared<Node>();
  node->metadata.name = name;
  return node;
}

}  // namespace

DeviceTaintRule UnhealthyTaint(const state::DeviceKey& device) {
  const auto& [driver, pool, name] = device;
  DeviceTaintRule rule;
  rule.metadata.name = "unhealthy: " + driver + "/" + pool + "/" + name;
  rule.device_selector = DeviceTaintSelector{driver, pool, name};
  rule.taint = {"devmgr/unhealthy", "", "NoSchedule", ""};
  return rule;
}

void LocalInventory::FollowSlices(const ObjectMap<ResourceSlice>& slices) {
  if (slices.SharesAllWith(slices_)) return;
  ++slice_version_;
  slices.VisitChangesSince(slices_, [&](const auto* was, const auto* is) {
    if (was != nullptr) versions_[was->second->driver] = slice_version_;
    if (is != nullptr) versions_[is->second->driver] = slice_version_;
  });
  slices_ = slices;
  inventory_ = nullptr;
  drivers_.clear();
  for (const auto& [name, slice] : slices_) drivers_.insert(slice->driver);
}

const allocator::Inventory& LocalInventory::Follow(
    const ObjectSnapshot& objects, const std::string& node_name,
    const std::function<bool(const std::string& driver)>& registered) {
  FollowSlices(objects.resource_slices);
  if (!objects.device_taint_rules.SharesAllWith(taint_rules_)) {
    taint_rules_ = objects.device_taint_rules;
    ++version_;
    inventory_ = nullptr;
  }
  if (auto node = NodeNamed(objects, node_name, node_); node != node_) {
    node_ = std::move(node);
    ++version_;
    inventory_ = nullptr;
  }
  std::set<std::string> left_out;
  for (const std::string& driver : drivers_) {
    if (!registered(driver)) left_out.insert(driver);
  }
  if (left_out != left_out_) {
    left_out_ = std::move(left_out);
    ++version_;
    inventory_ = nullptr;
  }
  if (inventory_ == nullptr) {
    allocator::World world{node_.get(), {}, {}};
    for (const auto& [name, slice] : slices_) {
      if (left_out_.count(slice->driver) == 0) {
        world.slices.push_back(slice.get());
      }
    }
    for (const auto& [name, rule] : taint_rules_) {
      world.taint_rules.push_back(rule.get());
    }
    inventory_ = allocator::TakeInventory(world, features_);
  }
  return *inventory_;
}

std::uint64_t LocalInventory::VersionOf(const std::string& driver) const {
  if (driver == WaitingFor::kAnyDriver) return version_ + slice_version_;
  const auto found = versions_.find(driver);
  // Both only rise, so the sum is another one when one of them is.
  return version_ + (found != versions_.end() ? found->second : 0);
}

}  // namespace devmgr::control
