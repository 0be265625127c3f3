// SPDX-License-Identifier: Apache-2.0
#include "state/views.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "device/id_order.h"

namespace devmgr::state {
namespace {

/// How far a phase is from "nothing left to do"; the lowest one of a claim's
/// drivers is shown as the claim's.
int Advance(DriverPhase phase) {
  switch (phase) {
    case DriverPhase::kPreparing:
      return 0;
    case DriverPhase::kUnpreparing:
      return 1;
    case DriverPhase::kPrepared:
      return 2;
  }
  return 0;
}

/// Names of the claim's holders, sorted; the UID of one the ledger lacks.
std::vector<std::string> HoldersOf(const ClaimRecord& claim,
                                   const State& state) {
  std::set<std::string> names;
  for (const PodUid& uid : claim.pods) {
    const PodRecord* pod = state.FindPod(uid);
    names.insert(pod == nullptr ? uid.value : pod->name.ToString());
  }
  return {names.begin(), names.end()};
}

/// Texts in the order of their first appearance.
class UniqueTexts {
 public:
  void Add(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (known_.insert(text).second) texts_.push_back(text);
    }
  }
  std::vector<std::string> Take() { return std::move(texts_); }

 private:
  std::set<std::string> known_;
  std::vector<std::string> texts_;
};

ClaimDriverInfo ClaimDriverInfoOf(const std::string& name,
                                  const DriverRecord& driver) {
  ClaimDriverInfo info;
  info.driver = name;
  info.state = PublicOf(driver.phase);
  UniqueTexts cdi_devices;
  for (const PreparedDevice& device : driver.devices) {
    if (!device.device.empty()) {
      info.devices.push_back(device.pool + "/" + device.device);
    }
    cdi_devices.Add(device.cdi_device_ids);
  }
  info.cdi_devices = cdi_devices.Take();
  return info;
}

/// Whom a change is about: see DecisionInfo::uids.
struct UidCollector {
  std::set<std::string>& uids;
  void operator()(const PutPod& change) { uids.insert(change.pod->uid.value); }
  void operator()(const ErasePod& change) { uids.insert(change.uid.value); }
  void operator()(const PutClaim& change) {
    uids.insert(change.claim->uid.value);
    for (const PodUid& pod : change.claim->pods) uids.insert(pod.value);
  }
  void operator()(const EraseClaim& change) { uids.insert(change.uid.value); }
  void operator()(const PutIdentity& change) {
    uids.insert(change.identity->uid);
  }
  // The record that was there stands in the undo.
  void operator()(const EraseIdentity&) {}
  // A resource has a name only.
  void operator()(const PutResource&) {}
  void operator()(const EraseResource&) {}
  // Nor have devices.
  void operator()(const PutHealth&) {}
  void operator()(const EraseHealth&) {}
  void operator()(const PutSource&) {}
  void operator()(const EraseSource&) {}
  void operator()(const PutHolder& change) {
    uids.insert(change.holder->id.value);
    if (!change.holder->pod_uid.value.empty()) {
      uids.insert(change.holder->pod_uid.value);
    }
  }
  void operator()(const EraseHolder& change) { uids.insert(change.id.value); }
  void operator()(const PutLocalClaim& change) {
    uids.insert(change.claim->uid.value);
    if (!change.claim->pod.value.empty()) uids.insert(change.claim->pod.value);
  }
  void operator()(const EraseLocalClaim& change) {
    uids.insert(change.uid.value);
  }
  void operator()(const PutAuthority&) {}
  void operator()(const EraseAuthority&) {}
};

std::vector<std::string> UidsOf(const Batch& batch) {
  std::set<std::string> uids;
  for (const auto* changes : {&batch.decision.changes, &batch.undo}) {
    for (const Change& change : *changes) {
      std::visit(UidCollector{uids}, change);
    }
  }
  return {uids.begin(), uids.end()};
}

std::vector<std::string> NamesOf(const std::vector<ObjectName>& objects) {
  std::vector<std::string> names;
  names.reserve(objects.size());
  for (const ObjectName& object : objects) names.push_back(object.ToString());
  return names;
}

/// Adds the holders to devices of plugins that are listed, and devices that no
/// pod has.
void AddForeign(const State& state, std::vector<DeviceInfo>* devices) {
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  if (state.foreign_devices.empty()) return;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const DeviceInfo& device = (*devices)[i];
    if (device.resource.empty()) continue;
    places.emplace(std::pair(device.resource, device.device), i);
  }
  for (const auto& [resource, id, container] : state.foreign_devices) {
    const auto [place, fresh] =
        places.emplace(std::pair(resource, id), devices->size());
    if (fresh) {
      DeviceInfo& device = devices->emplace_back();
      device.device = id;
      device.resource = resource;
    }
    (*devices)[place->second].used_by.push_back(
        HolderText(*state.FindHolder(container)));
  }
  const auto of_plugins = std::find_if(
      devices->begin(), devices->end(),
      [](const DeviceInfo& device) { return !device.resource.empty(); });
  std::stable_sort(
      of_plugins, devices->end(), [](const DeviceInfo& a, const DeviceInfo& b) {
        return std::tie(a.resource, a.device) < std::tie(b.resource, b.device);
      });
}

}  // namespace

WallTime WallTimeOf(std::int64_t unix_ms) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(
      std::chrono::milliseconds(unix_ms)));
}

PodState PodStateOf(PodPhase phase) {
  switch (phase) {
    case PodPhase::kWaiting:
      return PodState::kWaiting;
    case PodPhase::kPreparing:
      return PodState::kPreparing;
    case PodPhase::kReady:
      return PodState::kReady;
    case PodPhase::kRejected:
      return PodState::kRejected;
    case PodPhase::kReleasing:
      return PodState::kReleasing;
    case PodPhase::kAllocating:
    case PodPhase::kAdmitted:
      return PodState::kPreparing;
  }
  return PodState::kWaiting;
}

PodInfo PodInfoOf(const PodRecord& pod, const State& state) {
  PodInfo info;
  info.name = pod.name;
  info.uid = pod.uid;
  info.state = PodStateOf(pod.phase);
  info.reason = pod.reason;
  info.message = pod.message;
  if (pod.imported) {
    info.message = "imported from the kubelet; the source has not shown it yet";
  }
  if (IsEvicting(pod)) {
    if (pod.phase != PodPhase::kReleasing) info.state = PodState::kEvicting;
    info.reason = pod.eviction->reason;
    info.message = pod.eviction->message;
  }
  info.first_seen = WallTimeOf(pod.first_seen_ms);
  for (const ContainerNeed& need : pod.needs) {
    info.containers.push_back(need.name);
  }
  for (const ClaimUid& uid : pod.claims) {
    const ClaimRecord* claim = state.FindClaim(uid);
    info.claims.push_back(claim == nullptr ? uid.value : claim->name.name);
  }
  return info;
}

ClaimInfo ClaimInfoOf(const ClaimRecord& claim, const State& state) {
  ClaimInfo info;
  info.name = claim.name;
  info.uid = claim.uid;
  info.pods = HoldersOf(claim, state);
  DriverPhase least = DriverPhase::kPrepared;
  for (const auto& [name, driver] : claim.drivers) {
    if (Advance(driver.phase) < Advance(least)) least = driver.phase;
    info.drivers.push_back(ClaimDriverInfoOf(name, driver));
  }
  info.state = PublicOf(least);
  return info;
}

std::vector<DebtInfo> DebtsOf(const State& state) {
  std::vector<DebtInfo> debts;
  for (const auto& [claim] : state.claim_names) {
    for (const auto& [driver, part] : claim->drivers) {
      if (!part.debt.has_value()) continue;
      const Debt& debt = *part.debt;
      debts.push_back({claim->name, claim->uid, driver, debt.pods,
                       WallTimeOf(debt.since_ms), debt.attempts,
                       debt.last_error, ""});
    }
  }
  return debts;
}

std::vector<DeviceInfo> DevicesOf(const State& state) {
  // A device may be shared by all claims there are.
  struct Holders {
    UniqueTexts used_by;
    UniqueTexts cdi_devices;
  };
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, Holders> devices;
  for (const auto& [uid, claim] : state.claims) {
    const std::vector<std::string> holders = HoldersOf(*claim, state);
    for (const auto& [driver, record] : claim->drivers) {
      for (const PreparedDevice& prepared : record.devices) {
        // By CDI names alone it is not known which device it is.
        if (prepared.device.empty()) continue;
        Holders& device = devices[{driver, prepared.pool, prepared.device}];
        device.used_by.Add(holders);
        device.cdi_devices.Add(prepared.cdi_device_ids);
      }
    }
  }
  std::vector<DeviceInfo> result;
  result.reserve(devices.size());
  for (auto& [key, device] : devices) {
    const auto& [driver, pool, name] = key;
    result.push_back(
        {driver, pool, name, device.used_by.Take(), device.cdi_devices.Take()});
    std::sort(result.back().used_by.begin(), result.back().used_by.end());
    if (const HealthRecord* health = state.FindHealth(key)) {
      result.back().health = PublicOf(health->health);
      result.back().health_reason = health->message;
      result.back().since = WallTimeOf(health->since_ms);
    }
  }
  for (const auto& [resource, id, pod] : state.device_holders) {
    DeviceInfo& device = result.emplace_back();
    device.device = id;
    device.used_by = {state.FindPod(pod)->name.ToString()};
    device.resource = resource;
  }
  AddForeign(state, &result);
  return result;
}

std::vector<ForeignHolderInfo> ForeignHoldersOf(const State& state) {
  std::vector<ForeignHolderInfo> infos;
  for (const auto& [id, record] : state.foreign_holders) {
    ForeignHolderInfo& info = infos.emplace_back();
    ForeignHolder& holder = info.holder;
    holder.container_id = id.value;
    holder.pod_uid = record->pod_uid;
    holder.pod = record->pod;
    holder.container = record->container;
    for (const auto& [resource, device] : record->devices) {
      if (holder.resources.empty() ||
          holder.resources.back().name != resource) {
        holder.resources.push_back({resource, {}});
      }
      holder.resources.back().devices.push_back(device);
    }
    for (HeldResource& resource : holder.resources) {
      std::sort(resource.devices.begin(), resource.devices.end(),
                device::IdLess);
    }
    holder.cdi_devices = {record->cdi_devices.begin(),
                          record->cdi_devices.end()};
    holder.why = record->why;
    info.endpoint = record->endpoint;
    info.since = WallTimeOf(record->since_ms);
    info.freed = record->freed;
  }
  return infos;
}

std::vector<ResourceDevices> HeldDevicesOf(const PodRecord& pod,
                                           const ContainerName& container) {
  std::vector<ResourceDevices> resources;
  for (const DeviceHold& hold : pod.holds) {
    if (hold.container != container || !hold.Holds()) continue;
    ResourceDevices& resource = resources.emplace_back();
    resource.resource = hold.resource;
    for (const device::HeldDevice& device : hold.devices) {
      resource.devices.push_back({device.id, device.numa_nodes});
    }
  }
  std::sort(
      resources.begin(), resources.end(),
      [](const auto& a, const auto& b) { return a.resource < b.resource; });
  return resources;
}

std::vector<ResourceInfo> ResourcesOf(const State& state) {
  std::map<std::string, ResourceInfo> resources;
  for (const auto& [name, record] : state.resources) {
    resources[name].owner = PublicOf(record->backing);
    resources[name].since = WallTimeOf(record->since_ms);
    resources[name].by_operator = record->by_operator;
  }
  for (const auto& [name, id, pod] : state.device_holders) {
    ++resources[name].held;
  }
  std::set<std::pair<std::string, std::string>> foreign;
  for (const auto& [name, id, container] : state.foreign_devices) {
    if (state.HolderOf(name, id) == nullptr) foreign.emplace(name, id);
  }
  for (const auto& [name, id] : foreign) ++resources[name].held;
  std::vector<ResourceInfo> infos;
  for (auto& [name, info] : resources) {
    info.name = name;
    infos.push_back(std::move(info));
  }
  return infos;
}

DecisionInfo DecisionInfoOf(const Batch& batch) {
  DecisionInfo info;
  info.sequence = batch.seq;
  info.time = WallTimeOf(batch.time_ms);
  info.kind = PublicOf(batch.decision.kind);
  info.pods = NamesOf(batch.decision.pods);
  info.claims = NamesOf(batch.decision.claims);
  info.message = batch.decision.message;
  info.uids = UidsOf(batch);
  return info;
}

LedgerView LedgerViewOf(const State& state, std::int64_t time_ms) {
  LedgerView view;
  view.sequence = state.seq;
  view.time = WallTimeOf(time_ms);
  for (const auto& [uid, pod] : state.pods) {
    view.pods.push_back(PodInfoOf(*pod, state));
  }
  for (const auto& [uid, claim] : state.claims) {
    view.claims.push_back(ClaimInfoOf(*claim, state));
  }
  view.devices = DevicesOf(state);
  view.holders = ForeignHoldersOf(state);
  return view;
}

}  // namespace devmgr::state
