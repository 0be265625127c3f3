// SPDX-License-Identifier: Apache-2.0
//
// The projection of the ledger: what holds after all decisions up to `seq`.
// Pure values. Records are immutable and shared, as the maps that have them
// are: a copy of a State costs nothing that grows with what it holds, later
// changes do not touch it, and it may live on another thread.
#pragma once

#include <devmgr/persistent_map.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "state/indexes.h"
#include "state/records.h"

namespace devmgr::state {

struct State {
  std::uint64_t seq = 0;
  PersistentMap<PodUid, std::shared_ptr<const PodRecord>> pods;
  PersistentMap<ClaimUid, std::shared_ptr<const ClaimRecord>> claims;
  PersistentMap<IdentityKey, std::shared_ptr<const IdentityRecord>> identities;
  PersistentMap<ResourceName, std::shared_ptr<const ResourceRecord>> resources;
  PersistentMap<DeviceKey, std::shared_ptr<const HealthRecord>> healths;
  PersistentMap<SourceKey, std::shared_ptr<const SourceRecord>> sources;
  PersistentMap<ContainerId, std::shared_ptr<const ForeignHolderRecord>>
      foreign_holders;
  PersistentMap<LocalClaimUid, std::shared_ptr<const LocalClaimRecord>>
      local_claims;
  /// One at most.
  PersistentMap<AuthorityKey, std::shared_ptr<const AuthorityRecord>> authority;

  // Indexes over the maps above; Put and Erase keep all of them together.
  PersistentSet<ByName<PodRecord>> pod_names;
  PersistentSet<ByName<ClaimRecord>> claim_names;
  /// Resource, device of its plugin, the pod that holds it.
  PersistentSet<std::tuple<ResourceName, DeviceId, PodUid>> device_holders;
  /// Resource, the pods that hold a claim for it.
  PersistentSet<std::pair<ResourceName, PodUid>> class_holders;
  /// What drivers have prepared.
  PersistentSet<ByDevice> device_claims;
  /// Device that no other claim may have, which claim without pods keeps it.
  PersistentSet<std::pair<DeviceKey, ClaimUid>> kept_devices;
  /// Resource, device of its plugin, which container holds it that the ledger
  /// has no pod for.
  PersistentSet<std::tuple<ResourceName, DeviceId, ContainerId>>
      foreign_devices;
  /// Hardware by its identities, and what holds it.
  PersistentSet<HardwareHolding> hardware_holdings;

  void Put(std::shared_ptr<const PodRecord> pod);
  void Put(std::shared_ptr<const ClaimRecord> claim);
  void Put(std::shared_ptr<const IdentityRecord> identity);
  void Put(std::shared_ptr<const ResourceRecord> resource);
  void Put(std::shared_ptr<const HealthRecord> health);
  void Put(std::shared_ptr<const SourceRecord> source);
  void Put(std::shared_ptr<const ForeignHolderRecord> holder);
  void Put(std::shared_ptr<const LocalClaimRecord> claim);
  void Put(std::shared_ptr<const AuthorityRecord> authority);
  // False when there was none.
  bool Erase(const PodUid& uid);
  bool Erase(const ClaimUid& uid);
  bool Erase(const IdentityKey& key);
  bool Erase(const ResourceName& resource);
  bool Erase(const DeviceKey& device);
  bool Erase(const SourceKey& source);
  bool Erase(const ContainerId& id);
  bool Erase(const LocalClaimUid& uid);
  bool Erase(const AuthorityKey& key);

  /// All of one name: a pod or claim that was re-created stands beside the one
  /// that is still being released. Pods in the order they were first seen.
  std::vector<PodUid> PodsNamed(const ObjectName& name) const;
  std::vector<ClaimUid> ClaimsNamed(const ObjectName& name) const;

  /// The pod that holds a device; null when it is free. Valid until the next
  /// change.
  const PodUid* HolderOf(const ResourceName& resource,
                         const DeviceId& device) const;

  /// A foreign holder of the device that is no container of this pod; null when
  /// there is none. Valid until the next change.
  const ForeignHolderRecord* ForeignHolderOf(const ResourceName& resource,
                                             const DeviceId& device,
                                             const PodUid& pod = {}) const;

  /// Containers that hold devices of the plugin for this resource and are none
  /// of this pod's, `most` at most. Valid until the next change.
  std::vector<const ForeignHolderRecord*> ForeignHoldersOf(
      const ResourceName& resource, std::size_t most,
      const PodUid& pod = {}) const;
  /// Pods that hold devices of the plugin for this resource, `most` at most.
  std::vector<PodUid> PluginHoldersOf(const ResourceName& resource,
                                      std::size_t most) const;
  /// Pods that hold claims for this resource, `most` at most.
  std::vector<PodUid> ClassHoldersOf(const ResourceName& resource,
                                     std::size_t most) const;

  /// Claims that have a prepared device, in order of UID.
  std::vector<ClaimUid> ClaimsOf(const DeviceKey& device) const;
  /// A claim whose pods have gone and which a driver has yet to unprepare, so
  /// that no other may have the device; null when there is none. Valid until
  /// the next change.
  const ClaimUid* KeeperOf(const DeviceKey& device) const;

  /// Null when there is none.
  const PodRecord* FindPod(const PodUid& uid) const;
  const ClaimRecord* FindClaim(const ClaimUid& uid) const;
  const IdentityRecord* FindIdentity(const std::string& kind,
                                     const ObjectName& name) const;
  const ResourceRecord* FindResource(const std::string& name) const;
  const HealthRecord* FindHealth(const DeviceKey& device) const;
  const SourceRecord* FindSource(const SourceKey& source) const;
  const ForeignHolderRecord* FindHolder(const ContainerId& id) const;
  const LocalClaimRecord* FindLocalClaim(const LocalClaimUid& uid) const;
  const AuthorityRecord* FindAuthority() const;

 private:
  void IndexHolds(const PodRecord& pod);
  void ForgetHolds(const PodRecord* pod);
  void ForgetDevices(const ClaimRecord* claim);
  void ForgetDevices(const ForeignHolderRecord* holder);
  template <typename Record>
  void IndexHardware(HardwareHolding::Kind kind, const Record& record);
  template <typename Record>
  void ForgetHardware(HardwareHolding::Kind kind, const Record* record);
};
/// Compares contents, not addresses.
bool operator==(const State& a, const State& b);

/// Invariants 1 to 5 of docs/architecture.md as far as the projection shows
/// them. One sentence per violation; empty when all hold.
/// With the `boot_id` of this boot, pods that became Ready in it are held to
/// be prepared in it; without, a reboot may explain that they are not.
std::vector<std::string> CheckInvariants(const State& state,
                                         std::string_view boot_id = {});

}  // namespace devmgr::state
