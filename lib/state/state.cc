// SPDX-License-Identifier: Apache-2.0
#include "state/state.h"

#include <algorithm>
#include <utility>

namespace devmgr::state {
namespace {

template <typename Record>
bool SameRecord(const std::shared_ptr<const Record>& a,
                const std::shared_ptr<const Record>& b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && *a == *b;
}

template <typename Map>
bool SameRecords(const Map& a, const Map& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return x.first == y.first && SameRecord(x.second, y.second);
      });
}

template <typename Map, typename Key>
const typename Map::mapped_type::element_type* Find(const Map& map,
                                                    const Key& key) {
  const auto* found = map.Find(key);
  return found == nullptr ? nullptr : found->get();
}

template <typename Record>
using NameIndex = PersistentSet<ByName<Record>>;

/// The uids of all entries of `index` with this name, in order of uid.
template <typename Record>
auto UidsNamed(const NameIndex<Record>& index, const ObjectName& name) {
  std::vector<decltype(Record::uid)> uids;
  const auto [begin, end] = index.equal_range(name);
  for (auto entry = begin; entry != end; ++entry) {
    uids.push_back(entry->record->uid);
  }
  return uids;
}

/// Puts `record` into the map and the index of names.
template <typename Uid, typename Record>
void PutNamed(PersistentMap<Uid, std::shared_ptr<const Record>>& map,
              NameIndex<Record>& index, std::shared_ptr<const Record> record) {
  const Record* before = Find(map, record->uid);
  if (before != nullptr) index.erase(ByName<Record>{before});
  index.insert({record.get()});
  Uid uid = record->uid;
  map.insert_or_assign(std::move(uid), std::move(record));
}

template <typename Uid, typename Record>
bool EraseNamed(PersistentMap<Uid, std::shared_ptr<const Record>>& map,
                NameIndex<Record>& index, const Uid& uid) {
  const Record* record = Find(map, uid);
  if (record == nullptr) return false;
  index.erase(ByName<Record>{record});
  map.erase(uid);
  return true;
}

const std::string& UidTextOf(const PodRecord& pod) { return pod.uid.value; }
const std::string& UidTextOf(const ClaimRecord& claim) {
  return claim.uid.value;
}
const std::string& UidTextOf(const ForeignHolderRecord& holder) {
  return holder.id.value;
}
const std::string& UidTextOf(const LocalClaimRecord& claim) {
  return claim.uid.value;
}

}  // namespace

bool operator==(const State& a, const State& b) {
  return a.seq == b.seq && SameRecords(a.pods, b.pods) &&
         SameRecords(a.claims, b.claims) &&
         SameRecords(a.identities, b.identities) &&
         SameRecords(a.resources, b.resources) &&
         SameRecords(a.healths, b.healths) &&
         SameRecords(a.sources, b.sources) &&
         SameRecords(a.foreign_holders, b.foreign_holders) &&
         SameRecords(a.local_claims, b.local_claims) &&
         SameRecords(a.authority, b.authority);
}

template <typename Record>
void State::IndexHardware(HardwareHolding::Kind kind, const Record& record) {
  const std::string& uid = UidTextOf(record);
  for (const auto& [owner, hardware] : HardwareOf(record)) {
    for (const device::PhysicalIdentity& identity : hardware->identities) {
      hardware_holdings.insert({&identity, kind, &uid, owner, hardware->part});
    }
  }
}

template <typename Record>
void State::ForgetHardware(HardwareHolding::Kind kind, const Record* record) {
  if (record == nullptr) return;
  const std::string& uid = UidTextOf(*record);
  for (const auto& [owner, hardware] : HardwareOf(*record)) {
    for (const device::PhysicalIdentity& identity : hardware->identities) {
      hardware_holdings.erase(
          HardwareHolding{&identity, kind, &uid, owner, hardware->part});
    }
  }
}

void State::Put(std::shared_ptr<const PodRecord> pod) {
  ForgetHolds(FindPod(pod->uid));
  IndexHolds(*pod);
  ForgetHardware(HardwareHolding::Kind::kPod, FindPod(pod->uid));
  IndexHardware(HardwareHolding::Kind::kPod, *pod);
  PutNamed(pods, pod_names, std::move(pod));
}

void State::Put(std::shared_ptr<const ClaimRecord> claim) {
  ForgetDevices(FindClaim(claim->uid));
  ForgetHardware(HardwareHolding::Kind::kClaim, FindClaim(claim->uid));
  IndexHardware(HardwareHolding::Kind::kClaim, *claim);
  for (const auto& [driver, record] : claim->drivers) {
    for (const PreparedDevice& device : record.devices) {
      device_claims.insert({&driver, &device, claim.get()});
    }
  }
  if (claim->pods.empty()) {
    for (const DeviceKey& device : OwnDevices(*claim)) {
      kept_devices.insert({device, claim->uid});
    }
  }
  PutNamed(claims, claim_names, std::move(claim));
}

void State::Put(std::shared_ptr<const IdentityRecord> identity) {
  IdentityKey key(identity->kind, identity->name);
  identities.insert_or_assign(std::move(key), std::move(identity));
}

void State::Put(std::shared_ptr<const ResourceRecord> resource) {
  std::string name = resource->name;
  resources.insert_or_assign(std::move(name), std::move(resource));
}

void State::Put(std::shared_ptr<const HealthRecord> health) {
  DeviceKey key = health->Key();
  healths.insert_or_assign(std::move(key), std::move(health));
}

void State::Put(std::shared_ptr<const SourceRecord> source) {
  SourceKey key = source->Key();
  sources.insert_or_assign(std::move(key), std::move(source));
}

void State::Put(std::shared_ptr<const ForeignHolderRecord> holder) {
  ForgetDevices(FindHolder(holder->id));
  ForgetHardware(HardwareHolding::Kind::kContainer, FindHolder(holder->id));
  IndexHardware(HardwareHolding::Kind::kContainer, *holder);
  if (holder->Holds()) {
    for (const auto& [resource, device] : holder->devices) {
      foreign_devices.insert({resource, device, holder->id});
    }
  }
  ContainerId id = holder->id;
  foreign_holders.insert_or_assign(std::move(id), std::move(holder));
}

void State::Put(std::shared_ptr<const LocalClaimRecord> claim) {
  ForgetHardware(HardwareHolding::Kind::kLocalClaim,
                 FindLocalClaim(claim->uid));
  IndexHardware(HardwareHolding::Kind::kLocalClaim, *claim);
  LocalClaimUid uid = claim->uid;
  local_claims.insert_or_assign(std::move(uid), std::move(claim));
}

void State::ForgetDevices(const ForeignHolderRecord* holder) {
  if (holder == nullptr) return;
  for (const auto& [resource, device] : holder->devices) {
    foreign_devices.erase(std::tie(resource, device, holder->id));
  }
}

void State::ForgetDevices(const ClaimRecord* claim) {
  if (claim == nullptr) return;
  for (const auto& [driver, record] : claim->drivers) {
    for (const PreparedDevice& device : record.devices) {
      device_claims.erase(ByDevice{&driver, &device, claim});
    }
  }
  if (!claim->pods.empty()) return;
  for (const DeviceKey& device : OwnDevices(*claim)) {
    kept_devices.erase(std::pair(device, claim->uid));
  }
}

void State::IndexHolds(const PodRecord& pod) {
  for (const DeviceHold& hold : pod.holds) {
    if (!hold.Holds()) continue;
    for (const device::HeldDevice& device : hold.devices) {
      device_holders.insert({hold.resource, device.id, pod.uid});
    }
  }
  for (const ResourceName& resource : ResourcesByClaims(pod)) {
    class_holders.insert({resource, pod.uid});
  }
}

void State::ForgetHolds(const PodRecord* pod) {
  if (pod == nullptr) return;
  for (const DeviceHold& hold : pod->holds) {
    if (!hold.Holds()) continue;
    for (const device::HeldDevice& device : hold.devices) {
      device_holders.erase(std::tie(hold.resource, device.id, pod->uid));
    }
  }
  for (const ResourceName& resource : ResourcesByClaims(*pod)) {
    class_holders.erase(std::pair(resource, pod->uid));
  }
}

bool State::Erase(const PodUid& uid) {
  ForgetHolds(FindPod(uid));
  ForgetHardware(HardwareHolding::Kind::kPod, FindPod(uid));
  return EraseNamed(pods, pod_names, uid);
}

bool State::Erase(const ClaimUid& uid) {
  ForgetDevices(FindClaim(uid));
  ForgetHardware(HardwareHolding::Kind::kClaim, FindClaim(uid));
  return EraseNamed(claims, claim_names, uid);
}

bool State::Erase(const IdentityKey& key) { return identities.erase(key) > 0; }

bool State::Erase(const ResourceName& resource) {
  return resources.erase(resource) > 0;
}

bool State::Erase(const DeviceKey& device) { return healths.erase(device) > 0; }

bool State::Erase(const SourceKey& source) { return sources.erase(source) > 0; }

bool State::Erase(const ContainerId& id) {
  ForgetDevices(FindHolder(id));
  ForgetHardware(HardwareHolding::Kind::kContainer, FindHolder(id));
  return foreign_holders.erase(id) > 0;
}

bool State::Erase(const LocalClaimUid& uid) {
  ForgetHardware(HardwareHolding::Kind::kLocalClaim, FindLocalClaim(uid));
  return local_claims.erase(uid) > 0;
}

const ForeignHolderRecord* State::ForeignHolderOf(const ResourceName& resource,
                                                  const DeviceId& device,
                                                  const PodUid& pod) const {
  for (auto found =
           foreign_devices.lower_bound({resource, device, ContainerId{}});
       found != foreign_devices.end() && std::get<0>(*found) == resource &&
       std::get<1>(*found) == device;
       ++found) {
    const ForeignHolderRecord* holder = FindHolder(std::get<2>(*found));
    if (pod.value.empty() || holder->pod_uid != pod) return holder;
  }
  return nullptr;
}

std::vector<const ForeignHolderRecord*> State::ForeignHoldersOf(
    const ResourceName& resource, std::size_t most, const PodUid& pod) const {
  std::vector<const ForeignHolderRecord*> found;
  for (auto item = foreign_devices.lower_bound({resource, "", ContainerId{}});
       item != foreign_devices.end() && std::get<0>(*item) == resource &&
       found.size() < most;
       ++item) {
    const ForeignHolderRecord* holder = FindHolder(std::get<2>(*item));
    const bool is_own = !pod.value.empty() && holder->pod_uid == pod;
    if (!is_own &&
        std::find(found.begin(), found.end(), holder) == found.end()) {
      found.push_back(holder);
    }
  }
  return found;
}

const PodUid* State::HolderOf(const ResourceName& resource,
                              const DeviceId& device) const {
  const auto found = device_holders.lower_bound({resource, device, PodUid{}});
  if (found == device_holders.end() || std::get<0>(*found) != resource ||
      std::get<1>(*found) != device) {
    return nullptr;
  }
  return &std::get<2>(*found);
}

std::vector<PodUid> State::PluginHoldersOf(const ResourceName& resource,
                                           std::size_t most) const {
  std::vector<PodUid> holders;
  for (auto holder = device_holders.lower_bound({resource, "", PodUid{}});
       holder != device_holders.end() && std::get<0>(*holder) == resource &&
       holders.size() < most;
       ++holder) {
    const PodUid& pod = std::get<2>(*holder);
    if (std::find(holders.begin(), holders.end(), pod) == holders.end()) {
      holders.push_back(pod);
    }
  }
  return holders;
}

std::vector<PodUid> State::ClassHoldersOf(const ResourceName& resource,
                                          std::size_t most) const {
  std::vector<PodUid> holders;
  for (auto holder = class_holders.lower_bound({resource, PodUid{}});
       holder != class_holders.end() && holder->first == resource &&
       holders.size() < most;
       ++holder) {
    holders.push_back(holder->second);
  }
  return holders;
}

std::vector<ClaimUid> State::ClaimsOf(const DeviceKey& device) const {
  std::vector<ClaimUid> uids;
  const auto [begin, end] = device_claims.equal_range(device);
  for (auto item = begin; item != end; ++item) {
    uids.push_back(item->claim->uid);
  }
  return uids;
}

const ClaimUid* State::KeeperOf(const DeviceKey& device) const {
  const auto item = kept_devices.lower_bound({device, ClaimUid{}});
  if (item == kept_devices.end() || item->first != device) return nullptr;
  return &item->second;
}

std::vector<PodUid> State::PodsNamed(const ObjectName& name) const {
  std::vector<PodUid> uids = UidsNamed(pod_names, name);
  std::stable_sort(
      uids.begin(), uids.end(), [&](const PodUid& a, const PodUid& b) {
        return pods.at(a)->first_seen_seq < pods.at(b)->first_seen_seq;
      });
  return uids;
}

std::vector<ClaimUid> State::ClaimsNamed(const ObjectName& name) const {
  return UidsNamed(claim_names, name);
}

const PodRecord* State::FindPod(const PodUid& uid) const {
  return Find(pods, uid);
}

const ClaimRecord* State::FindClaim(const ClaimUid& uid) const {
  return Find(claims, uid);
}

const IdentityRecord* State::FindIdentity(const std::string& kind,
                                          const ObjectName& name) const {
  return Find(identities, IdentityKey(kind, name));
}

const ResourceRecord* State::FindResource(const std::string& name) const {
  return Find(resources, name);
}

const SourceRecord* State::FindSource(const SourceKey& source) const {
  return Find(sources, source);
}

const ForeignHolderRecord* State::FindHolder(const ContainerId& id) const {
  return Find(foreign_holders, id);
}

void State::Put(std::shared_ptr<const AuthorityRecord> record) {
  authority.insert_or_assign(AuthorityKey{}, std::move(record));
}

bool State::Erase(const AuthorityKey& key) { return authority.erase(key) > 0; }

const AuthorityRecord* State::FindAuthority() const {
  return Find(authority, AuthorityKey{});
}

const LocalClaimRecord* State::FindLocalClaim(const LocalClaimUid& uid) const {
  return Find(local_claims, uid);
}

const HealthRecord* State::FindHealth(const DeviceKey& device) const {
  return Find(healths, device);
}

}  // namespace devmgr::state
