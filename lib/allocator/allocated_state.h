// SPDX-License-Identifier: Apache-2.0
//
// What claims hold already: a value that is changed claim by claim, and whose
// copies share what they have in common.
#pragma once

#include <devmgr/objects.h>
#include <devmgr/persistent_map.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/amount.h"

namespace devmgr::allocator {

struct PoolId {
  std::string driver;
  std::string pool;
  friend auto operator<=>(const PoolId&, const PoolId&) = default;
};

/// The same, where the names lie elsewhere.
struct PoolIdView {
  std::string_view driver;
  std::string_view pool;

  PoolIdView(std::string_view driver_name, std::string_view pool_name)
      : driver(driver_name), pool(pool_name) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is the same name
  PoolIdView(const PoolId& other) : PoolIdView(other.driver, other.pool) {}
  PoolId Copy() const { return {std::string(driver), std::string(pool)}; }
};

/// A device by its full name.
struct PoolDevice {
  std::string driver;
  std::string pool;
  std::string device;

  /// `driver/pool/device`.
  std::string Text() const { return driver + '/' + pool + '/' + device; }
  friend auto operator<=>(const PoolDevice&, const PoolDevice&) = default;
};

/// The same, where the names lie elsewhere.
struct PoolDeviceView {
  std::string_view driver;
  std::string_view pool;
  std::string_view device;

  PoolDeviceView() = default;
  PoolDeviceView(std::string_view driver_name, std::string_view pool_name,
                 std::string_view device_name)
      : driver(driver_name), pool(pool_name), device(device_name) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is the same name
  PoolDeviceView(const PoolDevice& other)
      : PoolDeviceView(other.driver, other.pool, other.device) {}
  PoolIdView Pool() const { return {driver, pool}; }
  PoolDevice Copy() const {
    return {std::string(driver), std::string(pool), std::string(device)};
  }
  std::string Text() const { return Copy().Text(); }
  friend auto operator<=>(const PoolDeviceView&,
                          const PoolDeviceView&) = default;
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

/// What a device takes of the counters of its pool.
using CounterAmounts = std::map<CounterName, Amount>;

/// A result of a claim, or several that are the same to others.
struct HolderId {
  std::string claim_uid;
  std::string share_id;  ///< Empty: the claim has the whole device.
  friend auto operator<=>(const HolderId&, const HolderId&) = default;
};
/// The same, where the texts lie elsewhere.
struct HolderIdView {
  std::string_view claim_uid;
  std::string_view share_id;

  HolderIdView(std::string_view uid, std::string_view share)
      : claim_uid(uid), share_id(share) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is the same holder
  HolderIdView(const HolderId& other)
      : HolderIdView(other.claim_uid, other.share_id) {}
  HolderId Copy() const {
    return {std::string(claim_uid), std::string(share_id)};
  }
};
struct Holder {
  ObjectName claim;
  std::uint32_t results = 0;
  /// Null: what the device uses is what its slice says today.
  std::shared_ptr<const CounterAmounts> charge;
};

struct ByHolder {
  int Order(const HolderIdView& a, const HolderIdView& b) const {
    const int order = a.claim_uid.compare(b.claim_uid);
    return order != 0 ? order : a.share_id.compare(b.share_id);
  }
  bool operator()(const HolderIdView& a, const HolderIdView& b) const {
    return Order(a, b) < 0;
  }
};

/// A device that some claim holds. A copy shares the holders.
struct HeldDevice {
  PersistentMap<HolderId, Holder, ByHolder> holders;
  /// By name of the capacity, of all holders; those of which nothing is left
  /// are missing.
  std::map<std::string, Amount, std::less<>> consumed;
  /// What is charged: the largest of what the holders recorded. Null when one
  /// of them recorded nothing.
  std::shared_ptr<const CounterAmounts> charge;

  bool IsHeldWhole() const { return whole > 0; }
  friend bool operator==(const HeldDevice& a, const HeldDevice& b);

  // What the rest follows from without a look at all holders.
  struct Recorded {
    std::shared_ptr<const CounterAmounts> charge;
    std::uint32_t holders = 0;
  };
  std::uint32_t whole = 0;         ///< Results without a share ID.
  std::uint32_t unrecorded = 0;    ///< Holders without a charge.
  std::vector<Recorded> recorded;  ///< Each charge once, empty ones left out.
};

struct ByText {
  int Order(std::string_view a, std::string_view b) const {
    return a.compare(b);
  }
  bool operator()(std::string_view a, std::string_view b) const {
    return a < b;
  }
};
/// The devices of a pool that claims hold, by name.
using HeldPool = PersistentMap<std::string, HeldDevice, ByText>;

/// Devices with admin access do not count. Keys are driver, pool and device;
/// counters are those of driver, pool, set and counter, so that two drivers
/// with pools of one name have nothing to do with each other. A state belongs
/// to one thread at a time; its copies may be on others.
///
/// A change costs what the allocation has, times the logarithm of how much is
/// held, and a copy nothing: a state is kept up to date claim by claim, and is
/// never built anew.
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
  /// Undoes Add() of the same claim and allocation, exactly. Results that were
  /// not added are passed over.
  void Remove(const ObjectMeta& claim, const AllocationResult& allocation);

  /// Nothing was changed since one was copied from the other. Takes no time.
  bool SharesAllWith(const AllocatedState& other) const {
    return pools_.SharesAllWith(other.pools_);
  }

  /// Null when no claim holds any of its devices.
  const HeldPool* FindPool(const PoolIdView& pool) const {
    return pools_.Find(pool);
  }
  /// Null when no claim holds it.
  const HeldDevice* Find(const PoolDeviceView& device) const {
    const HeldPool* pool = FindPool(device.Pool());
    return pool == nullptr ? nullptr : pool->Find(device.device);
  }
  /// All that are charged to the pool by record.
  CounterAmounts Charged(const PoolIdView& pool) const;

  friend bool operator==(const AllocatedState&,
                         const AllocatedState&) = default;

 private:
  struct ById {
    int Order(const PoolIdView& a, const PoolIdView& b) const {
      const int order = a.driver.compare(b.driver);
      return order != 0 ? order : a.pool.compare(b.pool);
    }
    bool operator()(const PoolIdView& a, const PoolIdView& b) const {
      return Order(a, b) < 0;
    }
  };

  HeldDevice& EditDevice(const PoolDeviceView& id);
  HeldPool& EditPool(const PoolIdView& id);
  void EraseDevice(const PoolDeviceView& id);
  void AddResult(const ObjectMeta& claim,
                 const DeviceRequestAllocationResult& result,
                 std::shared_ptr<const CounterAmounts> charge);
  void RemoveResult(const ObjectMeta& claim,
                    const DeviceRequestAllocationResult& result);

  PersistentMap<PoolId, HeldPool, ById> pools_;  ///< None is empty.
};

}  // namespace devmgr::allocator
