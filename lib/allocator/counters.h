// SPDX-License-Identifier: Apache-2.0
//
// Counters of partitionable devices (KEP-4815) and compatibility groups
// (KEP-5963): what is left of each pool's, and which devices go together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "allocator/allocated_state.h"
#include "allocator/inventory.h"

namespace devmgr::allocator {

/// The compatibility groups that all devices on a counter set have in common.
/// Devices without groups go with each other alone.
struct CommonGroups {
  bool has_members = false;
  bool has_groups = false;
  std::vector<std::string> groups;  ///< Sorted.

  bool Admits(const std::vector<std::string>& others) const;
  /// Devices that are held already may contradict each other: then nothing more
  /// with groups is admitted.
  void Add(const std::vector<std::string>& others);
  friend bool operator==(const CommonGroups&, const CommonGroups&) = default;
};

/// What is left of the counters of all pools. Admin access neither asks nor
/// takes. It is a value: what Take() does, Return() undoes.
class CounterState {
 public:
  /// Of what there is, takes what `held` has. What was recorded with an
  /// allocation counts, whatever the slices say now; where nothing was, the
  /// device's slice does.
  CounterState(const Inventory& inventory, const AllocatedState& held);

  bool Admits(const Device& device) const {
    return ShortOf(device) == nullptr && ForeignSet(device) == nullptr;
  }
  /// The counter of which too little is left; null when there is none. As
  /// upstream has it, a pool with any counter overdrawn gives none at all.
  const Counter* ShortOf(const Device& device) const;
  /// The counter set on which devices of other groups are; null when there is
  /// none.
  const std::string* ForeignSet(const Device& device) const;

  /// The device is admitted. Returns what Return() needs.
  std::vector<CommonGroups> Take(const Device& device);
  void Return(const Device& device, std::vector<CommonGroups> groups_before);

  Amount Left(PoolNumber pool, const Counter& counter) const;

  friend bool operator==(const CounterState& a, const CounterState& b) {
    return a.pools_ == b.pools_;
  }

 private:
  struct PoolState {
    std::vector<Amount> left;          ///< By counter.
    std::vector<CommonGroups> groups;  ///< By counter set.
    friend bool operator==(const PoolState&, const PoolState&) = default;
  };

  void Charge(const Pool& pool, const AllocatedState& held, PoolState& state);

  const Inventory* inventory_;
  std::vector<PoolState> pools_;
};

}  // namespace devmgr::allocator
