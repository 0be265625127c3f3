// SPDX-License-Identifier: Apache-2.0
//
// What claims hold already: a value that is changed claim by claim, and whose
// copies share what they have in common.
#pragma once

#include <devmgr/objects.h>

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/amount.h"
#include "common/persistent_map.h"

namespace devmgr::allocator {

struct PoolId {
  std::string driver;
  std::string pool;
  friend auto operator<=>(const PoolId&, const PoolId&) = default;
};

/// A device by its full name.
struct PoolDevice {
  std::string driver;
  std::string pool;
  std::string device;

  PoolId Pool() const { return {driver, pool}; }
  /// `driver/pool/device`.
  std::string Text() const { return driver + '/' + pool + '/' + device; }
  friend auto operator<=>(const PoolDevice&, const PoolDevice&) = default;
};

/// A counter of a pool: the name of its set, and its own.
using CounterName = std::pair<std::string, std::string>;

/// The counters that a device uses, as they were when it was allocated. Each
/// claim that shares a device has the same; they count once.
struct DeviceCharge {
  PoolDevice device;
  std::map<CounterName, Quantity> counters;
  friend bool operator==(const DeviceCharge&, const DeviceCharge&) = default;
};

/// One result of a claim, as far as others are concerned.
struct Holder {
  std::string claim_uid;
  std::string share_id;  ///< Empty: the claim has the whole device.
  ObjectName claim;
  std::map<std::string, Amount> consumed;
  /// Nothing: what the device uses is what its slice says today.
  std::optional<std::map<CounterName, Amount>> charge;
  friend bool operator==(const Holder&, const Holder&) = default;
};

/// A device that some claim holds.
struct HeldDevice {
  std::vector<Holder> holders;  ///< By UID of the claim and ID of the share.
  /// By name of the capacity, of all holders.
  std::map<std::string, Amount> consumed;
  /// What is charged: the largest of what the holders recorded. Nothing when
  /// one of them recorded nothing.
  std::optional<std::map<CounterName, Amount>> charge;

  bool IsHeldWhole() const;
  friend bool operator==(const HeldDevice&, const HeldDevice&) = default;
};

/// Devices with admin access do not count. Keys are driver, pool and device;
/// counters are those of driver, pool, set and counter, so that two drivers
/// with pools of one name have nothing to do with each other. A state belongs
/// to one thread at a time; its copies may be on others.
class AllocatedState {
 public:
  /// Counts what `claim` has by its status. `charges` is what was recorded with
  /// the allocation; null when nothing was. A claim is added once until it is
  /// removed.
  void Add(const ResourceClaim& claim,
           const std::vector<DeviceCharge>* charges = nullptr);
  /// The same for an allocation that is decided and not written yet.
  void Add(const ObjectMeta& claim, const AllocationResult& allocation,
           const std::vector<DeviceCharge>* charges = nullptr);
  /// Undoes Add() of the same claim and allocation, exactly.
  void Remove(const ObjectMeta& claim, const AllocationResult& allocation);

  /// Null when no claim holds it.
  const HeldDevice* Find(const PoolDevice& device) const {
    return devices_.Find(device);
  }
  /// All that are charged to the pool by record.
  std::map<CounterName, Amount> Charged(const PoolId& pool) const;

  const PersistentMap<PoolDevice, HeldDevice>& devices() const {
    return devices_;
  }
  friend bool operator==(const AllocatedState&,
                         const AllocatedState&) = default;

 private:
  void Put(const PoolDevice& id, HeldDevice device);

  PersistentMap<PoolDevice, HeldDevice> devices_;
};

}  // namespace devmgr::allocator
