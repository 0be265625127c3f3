// SPDX-License-Identifier: Apache-2.0
#include "simulation/simulated_node.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "api/quote.h"
#include "claim/backing.h"
#include "common/status.h"
#include "common/uuid.h"
#include "control/local_objects.h"
#include "control/release.h"

namespace devmgr::simulation {
namespace {

constexpr char kHostnameLabel[] = "kubernetes.io/hostname";
/// Of what a request may bring of one resource.
constexpr std::int64_t kMostDevices = 100'000;

/// The pool of another node that is like `node`.
std::string PoolOn(const std::string& pool, const std::string& node,
                   const std::string& other) {
  const std::size_t at = pool.find(node);
  if (node.empty() || at == std::string::npos) return other + "/" + pool;
  return pool.substr(0, at) + other + pool.substr(at + node.size());
}

absl::Status CheckView(const SimulationView& view) {
  const bool is_present = view.base == SimulationBase::kPresent;
  if (is_present != view.node_name.empty()) {
    if (!is_present) {
      return InvalidArgumentError("a node that is not this one needs a name");
    }
    return InvalidArgumentError(
        "this node has a name: '{}' cannot be given to it", view.node_name);
  }
  if (view.base == SimulationBase::kEmpty && !view.minus.empty()) {
    return InvalidArgumentError("pod '{}' cannot be taken from an empty node",
                                view.minus.front().ToString());
  }
  for (const SimulatedPlugin& plugin : view.plugins) {
    std::int64_t placed = 0;
    bool fits = plugin.count >= 0 && plugin.count <= kMostDevices;
    for (const auto& [node, count] : plugin.by_numa_node) {
      fits = fits && node >= 0 && count >= 0 && count <= plugin.count - placed;
      placed += std::max<std::int64_t>(count, 0);
    }
    if (fits) continue;
    return InvalidArgumentError(
        "{} devices of '{}': 0 to {} are possible, on NUMA nodes no more than "
        "that in all",
        plugin.count, plugin.resource.value, kMostDevices);
  }
  return absl::OkStatus();
}

template <typename T>
void PutAll(const std::vector<T>& from, ObjectMap<T>* to) {
  for (const T& object : from) {
    to->insert_or_assign(object.metadata.FullName(),
                         std::make_shared<const T>(object));
  }
}

/// The pods' reservations taken off a claim that another party allocated; its
/// allocation, too, when no other pod is left.
std::shared_ptr<const ResourceClaim> WithoutConsumers(
    const std::shared_ptr<const ResourceClaim>& claim,
    const std::set<PodUid>& pods) {
  auto changed = std::make_shared<ResourceClaim>(*claim);
  const auto erased =
      std::erase_if(changed->status.reserved_for, [&](const auto& consumer) {
        return pods.contains(PodUid{consumer.uid});
      });
  if (erased == 0) return claim;
  if (changed->status.reserved_for.empty()) changed->status.allocation.reset();
  return changed;
}

}  // namespace

SimulatedNode::SimulatedNode(const NodeMoment& moment, SimulationBase base)
    : moment_(&moment),
      base_(base),
      name_(moment.node_name),
      state_(moment.state),
      objects_(moment.objects),
      inventories_(moment.inventories),
      queue_(moment.queue),
      drivers_(moment.drivers),
      intended_(moment.intended),
      plugin_hardware_(moment.plugin_hardware),
      evictions_(moment.evictions) {}

absl::StatusOr<SimulatedNode> SimulatedNode::Make(
    const NodeMoment& moment, const SimulationRequest& request) {
  const SimulationView& view = request.view;
  DEVMGR_RETURN_IF_ERROR(CheckView(view));
  SimulatedNode node(moment, view.base);
  if (!view.minus.empty()) DEVMGR_RETURN_IF_ERROR(node.Drop(view.minus));
  if (view.base == SimulationBase::kLikeNode) node.BecomeLike(view.node_name);
  if (view.base == SimulationBase::kEmpty) node.BecomeEmpty();
  node.NameNode(view);
  node.Bring(request);
  if (node.is_present()) node.Withhold();
  node.CountHeld();
  if (!moment.hardware.one_holder) {
    node.plugin_hardware_.clear();
  } else {
    node.published_ =
        std::make_shared<claim::PublishedHardware>(moment.hardware, node.name_);
    node.published_->Follow(node.objects_.resource_slices);
    node.HoldElsewhere(node.state_);
  }
  node.evictions_.Follow(node.state_, node.objects_, moment.now_ms);
  return node;
}

absl::Status SimulatedNode::Drop(const std::vector<ObjectName>& pods) {
  std::set<PodUid> uids;
  for (const ObjectName& name : pods) {
    const std::vector<PodUid> of_ledger = state_.PodsNamed(name);
    const auto* of_source = objects_.pods.Find(name);
    if (of_ledger.empty() && of_source == nullptr) {
      return NotFoundError(
          "pod '{}' is known neither to the source nor to the ledger",
          name.ToString());
    }
    uids.insert(of_ledger.begin(), of_ledger.end());
    if (of_source != nullptr) {
      uids.insert(PodUid{(*of_source)->metadata.uid});
    }
  }
  DropUses(uids);
  return ReleaseClaims(uids);
}

void SimulatedNode::DropUses(const std::set<PodUid>& pods) {
  for (const PodUid& uid : pods) {
    queue_->Leave(uid);
    intended_.erase(uid);
    const state::PodRecord* pod = state_.FindPod(uid);
    if (pod == nullptr) continue;
    for (const ClaimUid& claim : std::vector<ClaimUid>(pod->claims)) {
      const state::ClaimRecord* known = state_.FindClaim(claim);
      if (known == nullptr) continue;
      auto changed = std::make_shared<state::ClaimRecord>(*known);
      changed->pods.erase(uid);
      // What a driver owes is not given back with the pod.
      if (changed->pods.empty() && !state::IsUnpreparing(*changed)) {
        state_.Erase(claim);
      } else {
        state_.Put(std::move(changed));
      }
    }
    state_.Erase(uid);
  }
  std::vector<state::ContainerId> containers;
  for (const auto& [id, holder] : state_.foreign_holders) {
    if (pods.contains(holder->pod_uid)) containers.push_back(id);
  }
  for (const state::ContainerId& id : containers) state_.Erase(id);
}

absl::Status SimulatedNode::ReleaseClaims(const std::set<PodUid>& pods) {
  if (moment_->allocates) {
    DEVMGR_RETURN_IF_ERROR(
        Apply(control::ReleaseClaims(state_, moment_->now_ms)));
  }
  objects_ = moment_->of_source;
  erase_if(objects_.pods, [&](const auto& entry) {
    return pods.contains(PodUid{entry.second->metadata.uid});
  });
  for (const auto& [name, claim] : moment_->of_source.claims) {
    if (!claim->status.allocation.has_value()) continue;
    auto without = WithoutConsumers(claim, pods);
    if (without != claim) {
      objects_.claims.insert_or_assign(name, std::move(without));
    }
  }
  if (moment_->allocates) control::LocalObjects().Show(state_, &objects_);
  return absl::OkStatus();
}

void SimulatedNode::BecomeLike(const std::string& name) {
  std::vector<ResourceSlice> copies;
  for (const auto& [slice_name, slice] : objects_.resource_slices) {
    if (slice->node_name != name_ || name_.empty()) continue;
    ResourceSlice& copy = copies.emplace_back(*slice);
    copy.metadata.name = name + "/" + slice_name.name;
    copy.metadata.uid.clear();
    copy.node_name = name;
    copy.pool = PoolOn(slice->pool, name_, name);
  }
  PutAll(copies, &objects_.resource_slices);
  // Pods go on using what they may of their namespaces' quotas; they hold
  // nothing of this node.
  std::vector<std::shared_ptr<const state::PodRecord>> pods;
  for (const auto& [uid, pod] : state_.pods) pods.push_back(pod);
  for (const auto& pod : pods) {
    auto elsewhere = std::make_shared<state::PodRecord>(*pod);
    elsewhere->holds.clear();
    elsewhere->needs.clear();
    // One of this name may come to the other node.
    elsewhere->name.name += "@" + name_;
    state_.Put(std::move(elsewhere));
  }
  std::vector<state::ContainerId> containers;
  for (const auto& [id, holder] : state_.foreign_holders) {
    containers.push_back(id);
  }
  for (const state::ContainerId& id : containers) state_.Erase(id);
  ForgetHardware();
  intended_.clear();
  queue_.emplace(admission::WaitQueueOptions());
}

void SimulatedNode::ForgetHardware() {
  std::vector<std::shared_ptr<const state::ClaimRecord>> claims;
  for (const auto& [uid, claim] : state_.claims) {
    if (!state::HardwareOf(*claim).empty()) claims.push_back(claim);
  }
  for (const auto& claim : claims) {
    auto elsewhere = std::make_shared<state::ClaimRecord>(*claim);
    for (auto& [driver, part] : elsewhere->drivers) {
      for (auto& device : part.allocated) device.hardware = {};
      for (auto& device : part.devices) device.hardware = {};
    }
    state_.Put(std::move(elsewhere));
  }
  std::vector<std::shared_ptr<const state::LocalClaimRecord>> local_claims;
  for (const auto& [uid, claim] : state_.local_claims) {
    if (!claim->hardware.empty()) local_claims.push_back(claim);
  }
  for (const auto& claim : local_claims) {
    auto elsewhere = std::make_shared<state::LocalClaimRecord>(*claim);
    elsewhere->hardware.clear();
    state_.Put(std::move(elsewhere));
  }
}

void SimulatedNode::BecomeEmpty() {
  state_ = state::State();
  state_.seq = moment_->state.seq;
  ObjectSnapshot objects;
  objects.complete = true;
  objects.device_classes = objects_.device_classes;
  objects.claim_templates = objects_.claim_templates;
  objects.device_taint_rules = objects_.device_taint_rules;
  objects_ = std::move(objects);
  inventories_.clear();
  plugin_hardware_.clear();
  drivers_.clear();
  intended_.clear();
  queue_.emplace(admission::WaitQueueOptions());
}

void SimulatedNode::NameNode(const SimulationView& view) {
  if (view.base == SimulationBase::kPresent && view.node_labels.empty()) return;
  const auto* found = objects_.nodes.Find(ObjectName{"", name_});
  Node node = found != nullptr ? **found : Node();
  if (view.base != SimulationBase::kPresent) {
    const auto host = node.metadata.labels.find(kHostnameLabel);
    if (host != node.metadata.labels.end() && host->second == name_) {
      host->second = view.node_name;
    }
    name_ = view.node_name;
  }
  node.metadata.name = name_;
  for (const auto& [key, value] : view.node_labels) {
    node.metadata.labels[key] = value;
  }
  objects_.nodes.insert_or_assign(ObjectName{"", name_},
                                  std::make_shared<const Node>(node));
}

void SimulatedNode::Withhold() {
  std::vector<DeviceTaintRule> rules;
  for (const state::DeviceKey& device : moment_->withheld) {
    rules.push_back(control::UnhealthyTaint(device));
  }
  PutAll(rules, &objects_.device_taint_rules);
}

void SimulatedNode::Bring(const SimulationRequest& request) {
  PutAll(request.claim_templates, &objects_.claim_templates);
  PutAll(request.device_classes, &objects_.device_classes);
  for (const ResourceClaim& claim : request.claims) {
    if (objects_.claims.contains(claim.metadata.FullName())) continue;
    auto brought = std::make_shared<ResourceClaim>(claim);
    if (brought->metadata.uid.empty()) {
      brought->metadata.uid = UuidText(moment_->random(), moment_->random());
    }
    objects_.claims.insert_or_assign(claim.metadata.FullName(),
                                     std::move(brought));
  }
  PutAll(request.view.slices, &objects_.resource_slices);
  for (const ResourceSlice& slice : request.view.slices) {
    drivers_.insert(slice.driver);
  }
  for (const SimulatedPlugin& plugin : request.view.plugins) Bring(plugin);
}

void SimulatedNode::Bring(const SimulatedPlugin& plugin) {
  std::vector<device::Device> list;
  const auto add = [&](std::vector<std::int64_t> nodes) {
    device::Device& device = list.emplace_back();
    device.id = DeviceId(std::to_string(list.size() - 1));
    device.health = device::Health::kHealthy;
    device.numa_nodes = std::move(nodes);
  };
  for (const auto& [node, count] : plugin.by_numa_node) {
    for (std::int64_t i = 0; i < count; ++i) add({node});
  }
  while (static_cast<std::int64_t>(list.size()) < plugin.count) add({});
  device::Inventory inventory(moment_->numa_nodes);
  const auto held = [](const DeviceId&) { return false; };
  inventory.Connect(1, moment_->now_ms);
  inventory.Report(1, std::move(list), held, moment_->now_ms);
  inventories_.insert_or_assign(plugin.resource, std::move(inventory));
  std::erase_if(plugin_hardware_, [&](const auto& known) {
    return known.first.first == plugin.resource;
  });
}

void SimulatedNode::CountHeld() {
  reservations_ = claim::ReservationsOf(state_, intended_);
  for (auto& [resource, inventory] : inventories_) {
    std::vector<DeviceId> ids;
    for (const device::InventoryDevice& each : inventory.devices()) {
      ids.push_back(each.device.id);
    }
    inventory.UpdateHeld(ids, [&, &name = resource](const DeviceId& id) {
      return reservations_.HolderOf(name, id) != nullptr;
    });
  }
}

device::EndpointState SimulatedNode::StateOf(
    const ResourceName& resource) const {
  const auto found = inventories_.find(resource);
  return found == inventories_.end() ? device::EndpointState::kUnknown
                                     : found->second.state();
}

control::ProvideInput SimulatedNode::ProvideInput() const {
  control::ProvideInput input{
      state_,
      objects_,
      name_,
      [this](const ResourceName& resource) {
        return claim::IsServedByClass(
            state_, resource,
            claim::CandidatesOf(resource, StateOf(resource),
                                objects_.device_classes),
            moment_->plan_options.sharing);
      },
      [this](const std::string& driver) { return drivers_.contains(driver); },
      moment_->plan_options.extended_resources,
      moment_->now_ms,
      moment_->random};
  input.hardware = published_.get();
  input.evictions = &evictions_;
  input.quota_rule = moment_->quota_rule;
  input.read_back = false;
  return input;
}

admission::JudgeInput SimulatedNode::JudgeInput(
    const state::State& state, const ObjectSnapshot& objects) const {
  claim::PlanOptions options = moment_->plan_options;
  options.why_not_served = [this](const ResourceName& resource) -> std::string {
    if (moment_->policy.profile == Profile::kStrictKubelet) return "";
    return claim::WhyNotServed(state_.FindResource(resource),
                               device::HasPlugin(StateOf(resource)));
  };
  options.hardware_of = nullptr;
  if (published_ != nullptr) {
    options.hardware_of = [this](const state::DeviceKey& device) {
      return published_->Find(device);
    };
  }
  return {
      state, objects, moment_->boot_id,
      [this](const std::string& driver) { return drivers_.contains(driver); },
      std::move(options)};
}

bool SimulatedNode::IsServedByPlugin(const ResourceName& resource) const {
  if (const auto* record = state_.FindResource(resource)) {
    return record->backing == state::Backing::kPlugin;
  }
  return inventories_.contains(resource);
}

const claim::HeldHardware* SimulatedNode::FindElsewhere(
    const PodUid& uid) const {
  const auto held = elsewhere_.find(uid);
  return held == elsewhere_.end() ? nullptr : &held->second;
}

std::string SimulatedNode::NameOf(const PodUid& uid) const {
  if (const claim::HeldHardware* held = FindElsewhere(uid)) {
    return claim::HolderText(*held);
  }
  for (const auto& [id, holder] : state_.foreign_holders) {
    if (claim::ForeignUid(id) == uid) return state::HolderText(*holder);
  }
  const state::PodRecord* pod = state_.FindPod(uid);
  return pod != nullptr ? pod->name.ToString() : "with UID " + uid.value;
}

void SimulatedNode::Take(const Pod& pod, state::State state,
                         ObjectSnapshot objects) {
  state_ = std::move(state);
  objects_ = std::move(objects);
  objects_.pods.insert_or_assign(pod.metadata.FullName(),
                                 std::make_shared<const Pod>(pod));
  evictions_.Follow(state_, objects_, moment_->now_ms);
}

absl::Status SimulatedNode::Apply(state::Decision decision) {
  if (decision.changes.empty()) return absl::OkStatus();
  return state::Apply(
      state_, {state_.seq + 1, moment_->now_ms, std::move(decision), {}});
}

void SimulatedNode::Hold(const std::vector<device::Reservation>& plan) {
  for (const device::Reservation& reservation : plan) {
    std::vector<DeviceId> ids;
    for (const auto& device : reservation.devices) ids.push_back(device.id);
    // A plan takes what is free; the pod's own containers may share it.
    reservations_.Add(reservation).IgnoreError();
    const auto inventory = inventories_.find(reservation.resource);
    if (inventory == inventories_.end()) continue;
    inventory->second.UpdateHeld(ids, [&](const DeviceId& id) {
      return reservations_.HolderOf(reservation.resource, id) != nullptr;
    });
  }
}

void SimulatedNode::HoldElsewhere(const state::State& state) {
  if (published_ == nullptr) return;
  for (const auto& [device, hardware] : plugin_hardware_) {
    HoldElsewhere(device.first, device.second,
                  claim::FindHardwareHolder(state, hardware,
                                            {device.first.value, {}, {}}));
  }
}

void SimulatedNode::HoldElsewhere(const ResourceName& resource,
                                  const DeviceId& id,
                                  std::optional<claim::HeldHardware> held) {
  const PodUid uid = claim::ElsewhereUid(resource, id);
  const auto known = elsewhere_.find(uid);
  if (held.has_value() && known != elsewhere_.end()) {
    known->second = *std::move(held);
    return;
  }
  if (held.has_value()) {
    // By a pod of its own name.
    if (reservations_.HolderOf(resource, id) != nullptr) return;
    elsewhere_.emplace(uid, *std::move(held));
    // The device was found free.
    reservations_.Add(claim::ElsewhereReservation(resource, id)).IgnoreError();
  } else {
    if (known == elsewhere_.end()) return;
    elsewhere_.erase(known);
    reservations_.ReleasePod(uid);
  }
  const auto inventory = inventories_.find(resource);
  if (inventory == inventories_.end()) return;
  inventory->second.UpdateHeld({id}, [&](const DeviceId& device) {
    return reservations_.HolderOf(resource, device) != nullptr;
  });
}

}  // namespace devmgr::simulation
