// SPDX-License-Identifier: Apache-2.0
#include "view/device_changes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "claim/container_answer.h"
#include "device/id_order.h"
#include "state/views.h"

namespace devmgr::view {
namespace {

using state::Batch;
using state::ClaimRecord;
using state::PodRecord;
using state::State;

/// Devices of one resource that a container has of its plugin.
struct PluginHolding {
  std::set<DeviceId, device::IdOrder> devices;
  std::vector<std::string> cdi_devices;
};

/// A device that a container has of a claim.
struct ClaimHolding {
  ContainerName container;
  ClaimUid claim;
  ObjectName name;
  std::string driver;
  std::string pool;
  std::string device;
  std::string share_id;
  std::vector<std::string> cdi_devices;
  ResourceName resource;
  friend auto operator<=>(const ClaimHolding&, const ClaimHolding&) = default;
};

struct PodHoldings {
  std::map<std::pair<ContainerName, ResourceName>, PluginHolding> plugins;
  std::set<ClaimHolding> claims;
};

void AddDevice(const PodRecord& pod, const ClaimRecord& claim,
               const std::string& driver, const state::PreparedDevice& device,
               PodHoldings* all) {
  ClaimHolding holding{
      {},          claim.uid,     claim.name,      driver,
      device.pool, device.device, device.share_id, device.cdi_device_ids,
      {}};
  bool is_used = false;
  for (const state::ContainerNeed& need : pod.needs) {
    for (const state::Want& want : need.wants) {
      if (want.claim != claim.uid || !claim::Serves(device, want.request)) {
        continue;
      }
      holding.container = need.name;
      holding.resource = want.resource;
      all->claims.insert(holding);
      is_used = true;
    }
  }
  if (!is_used) all->claims.insert(std::move(holding));
}

PodHoldings HoldingsOf(const State& state, const PodRecord* pod) {
  PodHoldings all;
  if (pod == nullptr) return all;
  for (const state::DeviceHold& hold : pod->holds) {
    if (hold.phase != device::ReservationPhase::kCommitted) continue;
    PluginHolding& holding = all.plugins[{hold.container, hold.resource}];
    for (const device::HeldDevice& device : hold.devices) {
      holding.devices.insert(device.id);
    }
    holding.cdi_devices = hold.edits.cdi_devices;
  }
  for (const ClaimUid& uid : pod->claims) {
    const ClaimRecord* claim = state.FindClaim(uid);
    if (claim == nullptr) continue;
    for (const auto& [driver, record] : claim->drivers) {
      for (const state::PreparedDevice& device : record.devices) {
        AddDevice(*pod, *claim, driver, device, &all);
      }
    }
  }
  return all;
}

/// What `a` has and `b` has not.
PodHoldings Without(const PodHoldings& a, const PodHoldings& b) {
  PodHoldings left;
  for (const auto& [key, holding] : a.plugins) {
    const auto other = b.plugins.find(key);
    if (other == b.plugins.end()) {
      left.plugins.emplace(key, holding);
      continue;
    }
    PluginHolding rest;
    std::set_difference(
        holding.devices.begin(), holding.devices.end(),
        other->second.devices.begin(), other->second.devices.end(),
        std::inserter(rest.devices, rest.devices.end()), device::IdOrder());
    if (rest.devices.empty()) continue;
    rest.cdi_devices = holding.cdi_devices;
    left.plugins.emplace(key, std::move(rest));
  }
  std::set_difference(a.claims.begin(), a.claims.end(), b.claims.begin(),
                      b.claims.end(),
                      std::inserter(left.claims, left.claims.end()));
  return left;
}

/// A change for each holding; `change` has what they have in common.
void AddAll(const PodHoldings& holdings, const DeviceChange& common,
            std::vector<DeviceChange>* changes) {
  for (const auto& [key, holding] : holdings.plugins) {
    DeviceChange& change = changes->emplace_back(common);
    std::tie(change.container, change.resource) = key;
    change.devices.assign(holding.devices.begin(), holding.devices.end());
    change.cdi_devices = holding.cdi_devices;
  }
  for (const ClaimHolding& holding : holdings.claims) {
    DeviceChange& change = changes->emplace_back(common);
    change.container = holding.container;
    change.resource = holding.resource;
    change.claim = holding.name;
    change.claim_uid = holding.claim;
    change.driver = holding.driver;
    change.pool = holding.pool;
    if (!holding.device.empty()) change.devices = {holding.device};
    change.share_id = holding.share_id;
    change.cdi_devices = holding.cdi_devices;
  }
}

/// Finds the changes of a batch.
class Finder {
 public:
  Finder(const State& before, const State& after, const Batch& batch)
      : before_(before), after_(after), batch_(batch) {
    common_.time = state::WallTimeOf(batch.time_ms);
    common_.reason = DecisionKindName(state::PublicOf(batch.decision.kind));
    common_.message = batch.decision.message;
  }

  std::vector<DeviceChange> Run() {
    for (const state::Change& change : batch_.decision.changes) {
      std::visit(*this, change);
    }
    for (const PodUid& pod : pods_) AddPod(pod);
    std::vector<DeviceChange> all = std::move(released_);
    for (auto* more : {&allocated_, &handed_over_, &health_}) {
      std::move(more->begin(), more->end(), std::back_inserter(all));
    }
    Number(&all);
    return all;
  }

  void operator()(const state::PutPod& put) { pods_.insert(put.pod->uid); }
  void operator()(const state::ErasePod& erase) { pods_.insert(erase.uid); }
  void operator()(const state::PutClaim& put) { AddPodsOf(put.claim->uid); }
  void operator()(const state::EraseClaim& erase) { AddPodsOf(erase.uid); }
  void operator()(const state::PutResource& put) {
    const state::ResourceRecord& now = *put.resource;
    const auto* former = before_.FindResource(now.name);
    if (former != nullptr && former->backing == now.backing) return;
    DeviceChange& change = handed_over_.emplace_back(common_);
    change.kind = DeviceChangeKind::kHandedOver;
    change.resource = now.name;
    change.owner = state::PublicOf(now.backing);
    if (former != nullptr) change.former_owner = PublicOf(former->backing);
    if (!now.by_operator.empty()) change.message = now.by_operator;
  }
  void operator()(const state::PutHealth& put) {
    const auto* former = before_.FindHealth(put.health->Key());
    if (former != nullptr && former->health == put.health->health) return;
    // That a device works is news only where it did not.
    if (former == nullptr && put.health->health == device::Health::kHealthy) {
      return;
    }
    AddHealth(put.health->Key(), put.health->health, put.health->message);
  }
  void operator()(const state::EraseHealth& erase) {
    AddHealth(erase.device, device::Health::kUnknown,
              "its driver reports nothing of it any more");
  }
  template <typename Other>
  void operator()(const Other&) const {}

 private:
  void AddPodsOf(const ClaimUid& uid) {
    for (const State* state : {&before_, &after_}) {
      const ClaimRecord* claim = state->FindClaim(uid);
      if (claim != nullptr)
        pods_.insert(claim->pods.begin(), claim->pods.end());
    }
  }

  void AddPod(const PodUid& uid) {
    const PodRecord* before = before_.FindPod(uid);
    const PodRecord* after = after_.FindPod(uid);
    if (before == nullptr && after == nullptr) return;
    const PodHoldings had = HoldingsOf(before_, before);
    const PodHoldings has = HoldingsOf(after_, after);
    DeviceChange change = common_;
    change.pod = (after != nullptr ? after : before)->name;
    change.pod_uid = uid;
    change.kind = DeviceChangeKind::kReleased;
    AddAll(Without(had, has), change, &released_);
    change.kind = DeviceChangeKind::kAllocated;
    AddAll(Without(has, had), change, &allocated_);
  }

  /// Of a device that claims hold; of others the ledger keeps nothing.
  void AddHealth(const state::DeviceKey& key, device::Health health,
                 const std::string& message) {
    for (const ClaimUid& uid : after_.ClaimsOf(key)) {
      for (const PodUid& pod : after_.FindClaim(uid)->pods) {
        DeviceChange& change = health_.emplace_back(common_);
        change.kind = DeviceChangeKind::kHealthChanged;
        change.reason = "Kept";
        change.message = message;
        change.health = PublicOf(health);
        change.pod_uid = pod;
        if (const auto* record = after_.FindPod(pod)) change.pod = record->name;
        change.driver = std::get<0>(key);
        change.pool = std::get<1>(key);
        change.devices = {std::get<2>(key)};
      }
    }
  }

  void Number(std::vector<DeviceChange>* changes) const {
    std::uint32_t index = 0;
    for (DeviceChange& change : *changes) {
      change.token = {batch_.seq, ++index, 0, 0};
    }
    if (!changes->empty()) changes->back().token.index = ChangeToken::kWhole;
  }

  const State& before_;
  const State& after_;
  const Batch& batch_;
  DeviceChange common_;
  std::set<PodUid> pods_;
  std::vector<DeviceChange> released_;
  std::vector<DeviceChange> allocated_;
  std::vector<DeviceChange> handed_over_;
  std::vector<DeviceChange> health_;
};

}  // namespace

std::vector<DeviceChange> ChangesOf(const State& before, const State& after,
                                    const Batch& batch) {
  return Finder(before, after, batch).Run();
}

std::vector<DeviceChange> HoldingsOf(const State& state, WallTime time) {
  std::vector<DeviceChange> all;
  DeviceChange common;
  common.time = time;
  common.kind = DeviceChangeKind::kHeld;
  common.reason = "Snapshot";
  for (const auto& [uid, pod] : state.pods) {
    common.pod = pod->name;
    common.pod_uid = uid;
    AddAll(HoldingsOf(state, pod.get()), common, &all);
  }
  return all;
}

}  // namespace devmgr::view
