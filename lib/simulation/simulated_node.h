// SPDX-License-Identifier: Apache-2.0
//
// A node on which pods are tried: a moment of the manager, changed by a view.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/simulation.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "admission/judge.h"
#include "claim/backing.h"
#include "claim/device_plan.h"
#include "claim/held_hardware.h"
#include "claim/published_hardware.h"
#include "control/eviction_plan.h"
#include "control/provide.h"
#include "simulation/node_moment.h"

namespace devmgr::simulation {

/// A value: a copy is a node of its own. Lives on one thread.
class SimulatedNode {
 public:
  /// As the view has it. `moment` is borrowed and must outlive all copies.
  ///   InvalidArgument  the view cannot be meant
  ///   NotFound         a pod of `view.minus` is not known
  static absl::StatusOr<SimulatedNode> Make(const NodeMoment& moment,
                                            const SimulationRequest& request);

  const NodeMoment& moment() const { return *moment_; }
  const std::string& name() const { return name_; }
  /// This node, and not another one.
  bool is_present() const { return base_ == SimulationBase::kPresent; }
  const state::State& state() const { return state_; }
  const ObjectSnapshot& objects() const { return objects_; }
  const device::InventoryMap& inventories() const { return inventories_; }
  const device::ReservationTable& reservations() const { return reservations_; }
  admission::WaitQueue& queue() { return *queue_; }
  claim::PluginDevices Devices() const {
    return {state_, inventories_, reservations_, moment_->plan_options.sharing};
  }

  /// What admission decides by here; borrow this and `state`, `objects`.
  control::ProvideInput ProvideInput() const;
  admission::JudgeInput JudgeInput(const state::State& state,
                                   const ObjectSnapshot& objects) const;
  bool IsServedByPlugin(const ResourceName& resource) const;
  /// A pod, or what stands for one: a container, or what has the hardware.
  std::string NameOf(const PodUid& uid) const;
  /// What `uid` stands for, which has a device's hardware by another driver or
  /// device plugin; null: it is a pod or a container.
  const claim::HeldHardware* FindElsewhere(const PodUid& uid) const;
  const claim::PluginHardware& plugin_hardware() const {
    return plugin_hardware_;
  }

  /// The pod is there now, with these objects and this state.
  void Take(const Pod& pod, state::State state, ObjectSnapshot objects);
  /// Applies a decision about a pod that is there.
  absl::Status Apply(state::Decision decision);
  /// The pod holds these now.
  void Hold(const std::vector<device::Reservation>& plan);
  /// Devices of plugins count as held whose hardware is in use by another name,
  /// as `state` has it.
  void HoldElsewhere(const state::State& state);

 private:
  SimulatedNode(const NodeMoment& moment, SimulationBase base);

  absl::Status Drop(const std::vector<ObjectName>& pods);
  void DropUses(const std::set<PodUid>& pods);
  absl::Status ReleaseClaims(const std::set<PodUid>& pods);
  void BecomeLike(const std::string& name);
  /// What claims of this node have is no hardware of another node.
  void ForgetHardware();
  void BecomeEmpty();
  void HoldElsewhere(const ResourceName& resource, const DeviceId& id,
                     std::optional<claim::HeldHardware> held);
  void Bring(const SimulationRequest& request);
  void Bring(const SimulatedPlugin& plugin);
  void NameNode(const SimulationView& view);
  /// Taints on devices that do not work.
  void Withhold();
  /// Reservations and marks of the inventories, after the state has changed.
  void CountHeld();
  device::EndpointState StateOf(const ResourceName& resource) const;

  const NodeMoment* moment_;
  SimulationBase base_ = SimulationBase::kPresent;
  std::string name_;
  state::State state_;
  ObjectSnapshot objects_;
  device::InventoryMap inventories_;
  device::ReservationTable reservations_;
  std::optional<admission::WaitQueue> queue_;
  std::set<std::string> drivers_;
  std::map<PodUid, std::vector<device::Reservation>> intended_;
  claim::PluginHardware plugin_hardware_;
  /// What stands in `reservations_` for others, by UID.
  std::map<PodUid, claim::HeldHardware> elsewhere_;
  /// Of the slices, which stay as they are: copies share it. Null: one holder
  /// at a time is not asked for.
  std::shared_ptr<claim::PublishedHardware> published_;
  control::EvictionPlan evictions_;
};

}  // namespace devmgr::simulation
