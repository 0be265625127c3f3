// SPDX-License-Identifier: Apache-2.0
#include "allocator/counters.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace devmgr::allocator {
namespace {

std::vector<std::string> InCommon(const std::vector<std::string>& a,
                                  const std::vector<std::string>& b) {
  std::vector<std::string> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                        std::back_inserter(common));
  return common;
}

}  // namespace

bool CommonGroups::Admits(const std::vector<std::string>& others) const {
  if (!has_members) return true;
  if (others.empty() || !has_groups) return others.empty() && !has_groups;
  return !InCommon(groups, others).empty();
}

void CommonGroups::Add(const std::vector<std::string>& others) {
  if (!has_members) {
    has_members = true;
    has_groups = !others.empty();
    groups = others;
  } else if (has_groups && !others.empty()) {
    groups = InCommon(groups, others);
  }
}

CounterState::CounterState(const Inventory& inventory,
                           const AllocatedState& held)
    : inventory_(&inventory) {
  for (const Pool& pool : inventory.pools()) {
    PoolState& state = pools_.emplace_back();
    for (const Counter& counter : pool.counters) {
      state.left.push_back(counter.total);
    }
    state.groups.resize(pool.sets.size());
    if (!pool.sets.empty()) Charge(pool, held, state);
  }
}

void CounterState::Charge(const Pool& pool, const AllocatedState& held,
                          PoolState& state) {
  const std::map<CounterName, Amount> recorded = held.Charged(pool.id);
  for (std::size_t i = 0; i < pool.counters.size(); ++i) {
    const auto charged = recorded.find(pool.counters[i].name);
    if (charged != recorded.end()) state.left[i] -= charged->second;
  }
  for (const CounterUser& user : pool.users) {
    const HeldDevice* holders = held.Find(user.id);
    if (holders == nullptr) continue;
    if (!holders->charge) {
      for (const CounterUse& use : user.counters) {
        state.left[use.counter] -= use.amount;
      }
    }
    // Groups are no part of an allocation: the slice says what they are.
    if (!inventory_->features().compatibility_groups) continue;
    for (const GroupUse& use : user.groups) {
      state.groups[use.set].Add(use.groups);
    }
  }
}

const Counter* CounterState::ShortOf(const Device& device) const {
  if (device.counters.empty() && device.groups.empty()) return nullptr;
  const Pool& pool = inventory_->pools()[device.pool];
  const PoolState& state = pools_[device.pool];
  for (const CounterUse& use : device.counters) {
    if (state.left[use.counter] < use.amount)
      return &pool.counters[use.counter];
  }
  const auto overdrawn = std::find_if(state.left.begin(), state.left.end(),
                                      [](Amount left) { return left < 0; });
  return overdrawn == state.left.end()
             ? nullptr
             : &pool.counters[static_cast<std::size_t>(overdrawn -
                                                       state.left.begin())];
}

const std::string* CounterState::ForeignSet(const Device& device) const {
  const PoolState& state = pools_[device.pool];
  for (const GroupUse& use : device.groups) {
    if (!state.groups[use.set].Admits(use.groups)) {
      return &inventory_->pools()[device.pool].sets[use.set];
    }
  }
  return nullptr;
}

std::vector<CommonGroups> CounterState::Take(const Device& device) {
  PoolState& state = pools_[device.pool];
  for (const CounterUse& use : device.counters) {
    state.left[use.counter] -= use.amount;
  }
  std::vector<CommonGroups> before;
  for (const GroupUse& use : device.groups) {
    before.push_back(state.groups[use.set]);
    state.groups[use.set].Add(use.groups);
  }
  return before;
}

void CounterState::Return(const Device& device,
                          std::vector<CommonGroups> groups_before) {
  PoolState& state = pools_[device.pool];
  for (const CounterUse& use : device.counters) {
    state.left[use.counter] += use.amount;
  }
  for (std::size_t i = device.groups.size(); i-- > 0;) {
    state.groups[device.groups[i].set] = std::move(groups_before[i]);
  }
}

Amount CounterState::Left(PoolNumber pool, const Counter& counter) const {
  const auto& counters = inventory_->pools()[pool].counters;
  return pools_[pool]
      .left[static_cast<std::size_t>(&counter - counters.data())];
}

}  // namespace devmgr::allocator
