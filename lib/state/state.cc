// SPDX-License-Identifier: Apache-2.0
#include "state/state.h"

#include <algorithm>
#include <utility>

#include "api/quote.h"
#include "common/status.h"

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
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second.get();
}

/// The uids of all entries of `index` with this name, in order of uid.
template <typename Uid>
std::vector<Uid> UidsNamed(const std::set<std::pair<ObjectName, Uid>>& index,
                           const ObjectName& name) {
  std::vector<Uid> uids;
  for (auto entry = index.lower_bound({name, Uid{}});
       entry != index.end() && entry->first == name; ++entry) {
    uids.push_back(entry->second);
  }
  return uids;
}

/// Puts `record` into the map and the index of names.
template <typename Uid, typename Record>
void PutNamed(std::map<Uid, std::shared_ptr<const Record>>& map,
              std::set<std::pair<ObjectName, Uid>>& index,
              std::shared_ptr<const Record> record) {
  std::shared_ptr<const Record>& slot = map[record->uid];
  if (slot != nullptr && slot->name != record->name) {
    index.erase({slot->name, slot->uid});
  }
  index.emplace(record->name, record->uid);
  slot = std::move(record);
}

template <typename Uid, typename Record>
bool EraseNamed(std::map<Uid, std::shared_ptr<const Record>>& map,
                std::set<std::pair<ObjectName, Uid>>& index, const Uid& uid) {
  const auto found = map.find(uid);
  if (found == map.end()) return false;
  index.erase({found->second->name, uid});
  map.erase(found);
  return true;
}

Change PutOf(std::shared_ptr<const PodRecord> pod) {
  return PutPod{std::move(pod)};
}
Change PutOf(std::shared_ptr<const ClaimRecord> claim) {
  return PutClaim{std::move(claim)};
}
Change PutOf(std::shared_ptr<const IdentityRecord> identity) {
  return PutIdentity{std::move(identity)};
}
Change PutOf(std::shared_ptr<const ResourceRecord> resource) {
  return PutResource{std::move(resource)};
}
Change EraseOf(const PodUid& uid) { return ErasePod{uid}; }
Change EraseOf(const ClaimUid& uid) { return EraseClaim{uid}; }
Change EraseOf(const IdentityKey& key) {
  return EraseIdentity{key.first, key.second};
}

Change EraseOf(const std::string& resource) { return EraseResource{resource}; }
Change PutOf(std::shared_ptr<const HealthRecord> health) {
  return PutHealth{std::move(health)};
}
Change EraseOf(const DeviceKey& device) { return EraseHealth{device}; }

/// Applies changes one by one and takes them all back unless told to keep them.
class Transaction {
 public:
  explicit Transaction(State& state) : state_(state) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    const std::vector<Change> undo = Keep();
    // What was there before can be put back, and what was not be erased.
    for (const Change& change : undo) {
      std::visit(*this, change).IgnoreError();
    }
  }

  absl::Status Apply(const std::vector<Change>& changes) {
    for (const Change& change : changes) {
      DEVMGR_RETURN_IF_ERROR(std::visit(*this, change));
    }
    return absl::OkStatus();
  }

  /// Returns what would take the changes back, in the order to do it.
  std::vector<Change> Keep() {
    std::reverse(undo_.begin(), undo_.end());
    return std::exchange(undo_, {});
  }

  absl::Status operator()(const PutPod& change) {
    if (change.pod == nullptr) return DataLossError("a pod record is missing");
    if (change.pod->uid.value.empty()) {
      return DataLossError("pod {} has no uid",
                           api::Quoted(change.pod->name.ToString()));
    }
    Put(change.pod, change.pod->uid, state_.pods);
    return absl::OkStatus();
  }
  absl::Status operator()(const PutClaim& change) {
    if (change.claim == nullptr) {
      return DataLossError("a claim record is missing");
    }
    if (change.claim->uid.value.empty()) {
      return DataLossError("claim {} has no uid",
                           api::Quoted(change.claim->name.ToString()));
    }
    Put(change.claim, change.claim->uid, state_.claims);
    return absl::OkStatus();
  }
  absl::Status operator()(const PutIdentity& change) {
    if (change.identity == nullptr) {
      return DataLossError("an identity record is missing");
    }
    const IdentityRecord& identity = *change.identity;
    // The store separates the parts of its keys by NUL.
    if (identity.kind.find('\0') != std::string::npos ||
        identity.name.ns.find('\0') != std::string::npos) {
      return DataLossError("the identity of {} has a NUL in its name",
                           api::Quoted(identity.name.name));
    }
    Put(change.identity, IdentityKey(identity.kind, identity.name),
        state_.identities);
    return absl::OkStatus();
  }
  absl::Status operator()(const PutResource& change) {
    if (change.resource == nullptr) {
      return DataLossError("a resource record is missing");
    }
    if (change.resource->name.empty()) {
      return DataLossError("a resource has no name");
    }
    Put(change.resource, change.resource->name, state_.resources);
    return absl::OkStatus();
  }
  absl::Status operator()(const ErasePod& change) {
    if (Erase(change.uid, state_.pods)) return absl::OkStatus();
    return DataLossError("pod with uid {} is not known",
                         api::Quoted(change.uid.value));
  }
  absl::Status operator()(const EraseClaim& change) {
    if (Erase(change.uid, state_.claims)) return absl::OkStatus();
    return DataLossError("claim with uid {} is not known",
                         api::Quoted(change.uid.value));
  }
  absl::Status operator()(const EraseIdentity& change) {
    if (Erase(IdentityKey(change.kind, change.name), state_.identities)) {
      return absl::OkStatus();
    }
    return DataLossError("the identity of {} {} is not known",
                         api::Quoted(change.kind),
                         api::Quoted(change.name.ToString()));
  }
  absl::Status operator()(const EraseResource& change) {
    if (Erase(change.name, state_.resources)) return absl::OkStatus();
    return DataLossError("resource {} is not known", api::Quoted(change.name));
  }
  absl::Status operator()(const PutHealth& change) {
    if (change.health == nullptr) {
      return DataLossError("a health record is missing");
    }
    const HealthRecord& health = *change.health;
    // The store separates the parts of its keys by NUL.
    if (health.driver.empty() ||
        health.driver.find('\0') != std::string::npos ||
        health.pool.find('\0') != std::string::npos) {
      return DataLossError("the health of {} has no driver, or a NUL in a name",
                           api::Quoted(health.device));
    }
    Put(change.health, health.Key(), state_.healths);
    return absl::OkStatus();
  }
  absl::Status operator()(const EraseHealth& change) {
    if (Erase(change.device, state_.healths)) return absl::OkStatus();
    return DataLossError("the health of {} is not known",
                         api::Quoted(std::get<2>(change.device)));
  }

 private:
  template <typename Key, typename Record>
  void Put(const std::shared_ptr<const Record>& record, const Key& key,
           const std::map<Key, std::shared_ptr<const Record>>& map) {
    RememberOld(key, map);
    state_.Put(record);
  }

  template <typename Key, typename Record>
  bool Erase(const Key& key,
             const std::map<Key, std::shared_ptr<const Record>>& map) {
    if (map.find(key) == map.end()) return false;
    RememberOld(key, map);
    return state_.Erase(key);
  }

  template <typename Key, typename Record>
  void RememberOld(const Key& key,
                   const std::map<Key, std::shared_ptr<const Record>>& map) {
    const auto old = map.find(key);
    undo_.push_back(old == map.end() ? EraseOf(key) : PutOf(old->second));
  }

  State& state_;
  std::vector<Change> undo_;
};

/// Applies a batch and returns what takes it back.
absl::StatusOr<std::vector<Change>> ApplyBatch(State& state,
                                               const Batch& batch) {
  if (batch.seq != state.seq + 1) {
    return DataLossError("batch {} does not follow batch {}", batch.seq,
                         state.seq);
  }
  Transaction transaction(state);
  DEVMGR_RETURN_IF_ERROR(WithContext(transaction.Apply(batch.decision.changes),
                                     "batch {}", batch.seq));
  state.seq = batch.seq;
  return transaction.Keep();
}

}  // namespace

bool operator==(const PodRecord& a, const PodRecord& b) {
  return a.uid == b.uid && a.name == b.name &&
         a.first_seen_ms == b.first_seen_ms &&
         a.first_seen_seq == b.first_seen_seq && a.phase == b.phase &&
         a.reason == b.reason && a.message == b.message &&
         a.claims == b.claims && a.needs == b.needs && a.holds == b.holds &&
         SameRecord(a.answer, b.answer) && a.boot_id == b.boot_id;
}

bool operator==(const State& a, const State& b) {
  return a.seq == b.seq && SameRecords(a.pods, b.pods) &&
         SameRecords(a.claims, b.claims) &&
         SameRecords(a.identities, b.identities) &&
         SameRecords(a.resources, b.resources) &&
         SameRecords(a.healths, b.healths);
}

void State::Put(std::shared_ptr<const PodRecord> pod) {
  ForgetHolds(FindPod(pod->uid));
  IndexHolds(*pod);
  PutNamed(pods, pod_names, std::move(pod));
}

void State::Put(std::shared_ptr<const ClaimRecord> claim) {
  ForgetDevices(FindClaim(claim->uid));
  for (const auto& [driver, record] : claim->drivers) {
    for (const PreparedDevice& device : record.devices) {
      device_claims.emplace(DeviceKey(driver, device.pool, device.device),
                            claim->uid);
    }
  }
  if (claim->pods.empty()) {
    for (const DeviceKey& device : OwnDevices(*claim)) {
      kept_devices.emplace(device, claim->uid);
    }
  }
  PutNamed(claims, claim_names, std::move(claim));
}

void State::Put(std::shared_ptr<const IdentityRecord> identity) {
  IdentityKey key(identity->kind, identity->name);
  identities[std::move(key)] = std::move(identity);
}

void State::Put(std::shared_ptr<const ResourceRecord> resource) {
  std::string name = resource->name;
  resources[std::move(name)] = std::move(resource);
}

void State::Put(std::shared_ptr<const HealthRecord> health) {
  DeviceKey key = health->Key();
  healths[std::move(key)] = std::move(health);
}

void State::ForgetDevices(const ClaimRecord* claim) {
  if (claim == nullptr) return;
  for (const auto& [driver, record] : claim->drivers) {
    for (const PreparedDevice& device : record.devices) {
      device_claims.erase({{driver, device.pool, device.device}, claim->uid});
    }
  }
  if (!claim->pods.empty()) return;
  for (const DeviceKey& device : OwnDevices(*claim)) {
    kept_devices.erase({device, claim->uid});
  }
}

void State::IndexHolds(const PodRecord& pod) {
  for (const DeviceHold& hold : pod.holds) {
    if (!hold.Holds()) continue;
    for (const device::HeldDevice& device : hold.devices) {
      device_holders.emplace(hold.resource, device.id, pod.uid);
    }
  }
  for (const std::string& resource : ResourcesByClaims(pod)) {
    class_holders.emplace(resource, pod.uid);
  }
}

void State::ForgetHolds(const PodRecord* pod) {
  if (pod == nullptr) return;
  for (const DeviceHold& hold : pod->holds) {
    if (!hold.Holds()) continue;
    for (const device::HeldDevice& device : hold.devices) {
      device_holders.erase({hold.resource, device.id, pod->uid});
    }
  }
  for (const std::string& resource : ResourcesByClaims(*pod)) {
    class_holders.erase({resource, pod->uid});
  }
}

bool State::Erase(const PodUid& uid) {
  ForgetHolds(FindPod(uid));
  return EraseNamed(pods, pod_names, uid);
}

bool State::Erase(const ClaimUid& uid) {
  ForgetDevices(FindClaim(uid));
  return EraseNamed(claims, claim_names, uid);
}

bool State::Erase(const IdentityKey& key) { return identities.erase(key) > 0; }

bool State::Erase(const std::string& resource) {
  return resources.erase(resource) > 0;
}

bool State::Erase(const DeviceKey& device) { return healths.erase(device) > 0; }

const PodUid* State::HolderOf(std::string_view resource,
                              std::string_view device) const {
  const auto found = device_holders.lower_bound(
      {std::string(resource), std::string(device), PodUid{}});
  if (found == device_holders.end() || std::get<0>(*found) != resource ||
      std::get<1>(*found) != device) {
    return nullptr;
  }
  return &std::get<2>(*found);
}

std::vector<PodUid> State::PluginHoldersOf(const std::string& resource,
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

std::vector<PodUid> State::ClassHoldersOf(const std::string& resource,
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
  for (auto item = device_claims.lower_bound({device, ClaimUid{}});
       item != device_claims.end() && item->first == device; ++item) {
    uids.push_back(item->second);
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

const HealthRecord* State::FindHealth(const DeviceKey& device) const {
  return Find(healths, device);
}

bool IsWorthWriting(const Decision& decision) {
  return !decision.changes.empty() || decision.kind == DecisionKind::kRepair;
}

absl::Status Apply(State& state, const Batch& batch) {
  return ApplyBatch(state, batch).status();
}

absl::Status ApplyNew(State& state, Batch& batch) {
  DEVMGR_ASSIGN_OR_RETURN(batch.undo, ApplyBatch(state, batch));
  return absl::OkStatus();
}

bool CanRevert(const Batch& batch) {
  return batch.decision.kind != DecisionKind::kRecovered &&
         batch.undo.size() == batch.decision.changes.size();
}

absl::Status Revert(State& state, const Batch& batch) {
  if (batch.seq != state.seq || batch.seq == 0) {
    return DataLossError("batch {} is not the last one, which is {}", batch.seq,
                         state.seq);
  }
  if (!CanRevert(batch)) {
    return FailedPreconditionError("what was before batch {} is not known",
                                   batch.seq);
  }
  Transaction transaction(state);
  DEVMGR_RETURN_IF_ERROR(WithContext(transaction.Apply(batch.undo),
                                     "undo of batch {}", batch.seq));
  transaction.Keep();
  --state.seq;
  return absl::OkStatus();
}

}  // namespace devmgr::state
