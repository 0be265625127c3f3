// SPDX-License-Identifier: Apache-2.0
#include "allocator/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "allocator/node_selection.h"

namespace devmgr::allocator {
namespace {

using Slices = std::vector<const ResourceSlice*>;
using PoolState = GatheredPool::State;

/// As PoolId, which orders alike.
using PoolName = std::pair<std::string_view, std::string_view>;

PoolName NameOf(const ResourceSlice& slice) {
  return {slice.driver, slice.pool};
}

bool HasGroups(const ResourceSlice& slice) {
  return std::any_of(
      slice.devices.begin(), slice.devices.end(), [](const SliceDevice& d) {
        return std::any_of(
            d.consumes_counters.begin(), d.consumes_counters.end(),
            [](const auto& use) { return !use.compatibility_groups.empty(); });
      });
}

bool IsPartitioned(const ResourceSlice& slice) {
  return slice.per_device_node_selection || !slice.shared_counters.empty();
}

/// Whether a feature that is off keeps the slice from use; its pool is then
/// incomplete in the case of groups.
bool IsFeatureOff(const ResourceSlice& slice, const Features& features) {
  return (!features.partitionable_devices && IsPartitioned(slice)) ||
         (!features.compatibility_groups && HasGroups(slice));
}

/// Keeps the slices of the newest generation.
void AddSlice(Slices& slices, const ResourceSlice* slice) {
  if (!slices.empty()) {
    const std::int64_t generation = slices.front()->pool_generation;
    if (slice->pool_generation < generation) return;
    if (slice->pool_generation > generation) slices.clear();
  }
  slices.push_back(slice);
}

/// `count` 0: slices that do not say how many they are.
bool IsComplete(const Slices& slices, std::int64_t count) {
  return count == 0 || static_cast<std::int64_t>(slices.size()) == count;
}

void SortByName(Slices& slices) {
  const auto before = [](const ResourceSlice* a, const ResourceSlice* b) {
    return a->metadata.name < b->metadata.name;
  };
  // It is most of the time, and a stable sort takes memory to find that out.
  if (std::is_sorted(slices.begin(), slices.end(), before)) return;
  std::stable_sort(slices.begin(), slices.end(), before);
}

// What makes a pool invalid; empty when nothing does.

std::string DuplicateDevice(const Slices& slices) {
  std::vector<std::string_view> names;
  for (const ResourceSlice* slice : slices) {
    names.reserve(names.size() + slice->devices.size());
    for (const SliceDevice& device : slice->devices) {
      names.push_back(device.name);
    }
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end()
             ? std::string()
             : fmt::format("duplicate device name '{}'", *twice);
}

using Sets = std::map<std::string_view, const CounterSet*>;

std::string CollectSets(const Slices& slices, Sets& sets) {
  for (const ResourceSlice* slice : slices) {
    for (const CounterSet& set : slice->shared_counters) {
      if (!sets.emplace(set.name, &set).second) {
        return fmt::format("duplicate counter set name '{}'", set.name);
      }
    }
  }
  return {};
}

std::string DanglingCounter(const SliceDevice& device, const Sets& sets) {
  for (const DeviceCounterConsumption& use : device.consumes_counters) {
    const auto set = sets.find(use.counter_set.view());
    if (set == sets.end()) {
      return fmt::format("device '{}' uses counter set '{}', which is missing",
                         device.name, use.counter_set.view());
    }
    for (const auto& [counter, amount] : use.counters) {
      if (set->second->counters.contains(counter.view())) continue;
      return fmt::format(
          "device '{}' uses counter '{}', which counter set '{}' lacks",
          device.name, counter.view(), set->first);
    }
  }
  return {};
}

std::string DanglingCounter(const Slices& slices, const Sets& sets) {
  for (const ResourceSlice* slice : slices) {
    for (const SliceDevice& device : slice->devices) {
      std::string problem = DanglingCounter(device, sets);
      if (!problem.empty()) return problem;
    }
  }
  return {};
}

std::string Problem(const GatheredPool& pool, const Features& features) {
  std::string problem = DuplicateDevice(pool.slices);
  if (!problem.empty() || !features.partitionable_devices) return problem;
  Sets sets;
  problem = CollectSets(pool.slices, sets);
  if (problem.empty()) problem = CollectSets(pool.elsewhere, sets);
  if (problem.empty()) problem = DanglingCounter(pool.slices, sets);
  if (problem.empty()) problem = DanglingCounter(pool.elsewhere, sets);
  return problem;
}

bool HasBindingConditions(const Slices& slices) {
  return std::any_of(
      slices.begin(), slices.end(), [](const ResourceSlice* slice) {
        return std::any_of(slice->devices.begin(), slice->devices.end(),
                           [](const auto& device) {
                             return !device.binding_conditions.empty();
                           });
      });
}

/// Slices by pool, made when a pool is first found to lack some.
class AllSlices {
 public:
  explicit AllSlices(const Slices& slices) : slices_(slices) {}

  const Slices& Of(const PoolName& pool) {
    if (!by_pool_) {
      by_pool_.emplace();
      for (const ResourceSlice* slice : slices_) {
        (*by_pool_)[NameOf(*slice)].push_back(slice);
      }
    }
    return (*by_pool_)[pool];
  }

 private:
  const Slices& slices_;
  std::optional<std::map<PoolName, Slices>> by_pool_;
};

/// All slices of the generation, on whatever nodes. Nothing when there is a
/// newer one.
std::optional<Slices> WholeGeneration(const Slices& pool,
                                      std::int64_t generation,
                                      const Features& features) {
  Slices whole;
  for (const ResourceSlice* slice : pool) {
    if (slice->pool_generation > generation) return std::nullopt;
    if (slice->pool_generation < generation) continue;
    if (!features.compatibility_groups && HasGroups(*slice)) continue;
    whole.push_back(slice);
  }
  return whole;
}

/// `slices` are those that the node reaches. Nothing: the pool is obsolete.
std::optional<GatheredPool> MakePool(const PoolName& name, Slices slices,
                                     AllSlices& all, const Features& features) {
  GatheredPool pool;
  pool.id = {std::string(name.first), std::string(name.second)};
  const std::int64_t count = slices.front()->pool_slice_count;
  if (!IsComplete(slices, count)) {
    const auto whole = WholeGeneration(
        all.Of(name), slices.front()->pool_generation, features);
    if (!whole) return std::nullopt;
    const std::set<const ResourceSlice*> here(slices.begin(), slices.end());
    for (const ResourceSlice* slice : *whole) {
      if (!here.contains(slice)) pool.elsewhere.push_back(slice);
    }
    if (!IsComplete(*whole, count)) {
      pool.state = PoolState::kIncomplete;
      pool.problem =
          fmt::format("{} of {} slices of generation {} are there",
                      whole->size(), count, slices.front()->pool_generation);
    }
  }
  SortByName(slices);
  SortByName(pool.elsewhere);
  pool.slices = std::move(slices);
  if (pool.state == PoolState::kUsable) {
    pool.problem = Problem(pool, features);
    if (!pool.problem.empty()) pool.state = PoolState::kInvalid;
  }
  // One from which nothing is taken has its place by name alone.
  pool.has_binding_conditions =
      pool.state == PoolState::kUsable && HasBindingConditions(pool.slices);
  return pool;
}

void LeaveOut(const GatheredPool& pool, std::vector<LeftOut>& left_out) {
  if (pool.state == PoolState::kUsable) return;
  for (const ResourceSlice* slice : pool.slices) {
    left_out.push_back({slice, nullptr,
                        pool.state == PoolState::kIncomplete
                            ? Refusal::kPoolIncomplete
                            : Refusal::kPoolInvalid,
                        pool.problem});
  }
}

}  // namespace

GatheredPools GatherPools(const Slices& slices, const Node& node,
                          const Features& features) {
  GatheredPools gathered;
  std::map<PoolName, Slices> here;
  for (const ResourceSlice* slice : slices) {
    if (!HasKnownSelection(*slice) || !Reaches(*slice, node)) {
      gathered.left_out.push_back({slice, nullptr, Refusal::kNotOnNode, ""});
    } else if (IsFeatureOff(*slice, features)) {
      gathered.left_out.push_back({slice, nullptr, Refusal::kFeatureOff, ""});
    } else {
      AddSlice(here[NameOf(*slice)], slice);
    }
  }
  AllSlices all(slices);
  for (auto& [name, own] : here) {
    std::optional<GatheredPool> pool =
        MakePool(name, std::move(own), all, features);
    if (!pool) continue;
    LeaveOut(*pool, gathered.left_out);
    gathered.pools.push_back(*std::move(pool));
  }
  std::stable_partition(
      gathered.pools.begin(), gathered.pools.end(),
      [](const GatheredPool& pool) { return !pool.has_binding_conditions; });
  return gathered;
}

}  // namespace devmgr::allocator
