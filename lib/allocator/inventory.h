// SPDX-License-Identifier: Apache-2.0
//
// What a node has, as the search looks at it: devices in order of trial by
// number, with all that is compared again and again worked out once.
#pragma once

#include <devmgr/objects.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/allocated_state.h"
#include "allocator/allocator.h"
#include "allocator/capacity.h"
#include "allocator/features.h"
#include "allocator/pools.h"
#include "cel/value.h"

namespace devmgr::allocator {

/// Numbers of devices and pools, from 0 on.
using DeviceNumber = std::uint32_t;
using PoolNumber = std::uint32_t;

struct Counter {
  CounterName name;
  Amount total = 0;
};

/// What a device takes of a counter of its pool.
struct CounterUse {
  std::uint32_t counter = 0;  ///< A number of Pool::counters.
  Amount amount = 0;
  friend bool operator==(const CounterUse&, const CounterUse&) = default;
};

/// The compatibility groups that a device declares for a counter set; none is
/// a group of its own.
struct GroupUse {
  std::uint32_t set = 0;            ///< A number of Pool::sets.
  std::vector<std::string> groups;  ///< Sorted.
  friend bool operator==(const GroupUse&, const GroupUse&) = default;
};

/// A device that uses counters, here or on another node.
struct CounterUser {
  PoolDeviceView id;
  std::vector<CounterUse> counters;
  std::vector<GroupUse> groups;
};

struct Pool {
  PoolId id;
  GatheredPool::State state = GatheredPool::State::kUsable;
  std::string problem;
  std::vector<Counter> counters;
  std::vector<std::string> sets;
  std::vector<CounterUser> users;
};

/// A device as selectors see it, made when one first looks at it, by whatever
/// thread that is.
class SelectorValue {
 public:
  SelectorValue() = default;
  /// While no other thread has it.
  SelectorValue(SelectorValue&& other) noexcept
      : value_(other.value_.exchange(nullptr)) {}
  SelectorValue& operator=(SelectorValue&&) = delete;
  ~SelectorValue() { delete value_.load(); }

  const cel::Value& Of(const SliceDevice& device,
                       std::string_view driver) const;

 private:
  mutable std::atomic<const cel::Value*> value_ = nullptr;  ///< Owned.
};

/// A device that may be tried.
struct Device {
  PoolDeviceView id;  ///< Of the slice.
  PoolNumber pool = 0;
  const ResourceSlice* slice = nullptr;
  const SliceDevice* device = nullptr;
  SelectorValue value;
  /// Several claims may share it, each with a share ID.
  bool is_shareable = false;
  /// It has binding conditions, and their feature is off: no selector matches
  /// it.
  bool is_hidden = false;
  /// A feature that it needs and that is off, or that the node does not
  /// declare; empty when there is none. It matches selectors, and is refused.
  std::string_view feature_off;
  /// An attribute has no value; selectors cannot look at the device.
  bool has_bad_attribute = false;
  std::vector<Capacity> capacity;    ///< By name.
  std::vector<CounterUse> counters;  ///< Each counter once.
  std::vector<GroupUse> groups;
  /// Those that keep claims off, of the slice and of taint rules.
  std::vector<const DeviceTaint*> taints;
};

class Inventory {
 public:
  Inventory(const World& world, const Features& features);

  const Features& features() const { return features_; }
  const Node& node() const { return *node_; }
  /// In order of trial, with those from which nothing is taken.
  const std::vector<Pool>& pools() const { return pools_; }
  /// In order of trial: of usable pools, and within reach of the node.
  const std::vector<Device>& devices() const { return devices_; }
  const std::vector<LeftOut>& left_out() const { return left_out_; }

 private:
  void AddPool(GatheredPool gathered, const World& world);
  void AddDevices(const GatheredPool& gathered, PoolNumber pool,
                  const World& world);
  void Describe(const ResourceSlice& slice, const SliceDevice& device,
                PoolNumber pool, Device& made) const;
  std::string_view FeatureOff(const ResourceSlice& slice,
                              const SliceDevice& device) const;

  Features features_;
  const Node* node_;
  std::vector<Pool> pools_;
  std::vector<Device> devices_;
  std::vector<LeftOut> left_out_;
};

}  // namespace devmgr::allocator
