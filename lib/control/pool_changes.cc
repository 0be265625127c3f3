// SPDX-License-Identifier: Apache-2.0
#include "control/pool_changes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "allocator/features.h"
#include "allocator/node_selection.h"
#include "allocator/pools.h"

namespace devmgr::control {
namespace {

using allocator::GatheredPool;
using Kind = WaitingFor::Kind;
using PoolName = std::pair<std::string_view, std::string_view>;
using Pools = std::map<PoolName, GatheredPool>;

bool IsUsable(const GatheredPool* pool) {
  return pool != nullptr && pool->state == GatheredPool::State::kUsable;
}

void Add(Kind kind, const std::string& driver, std::set<WaitingFor>* changed) {
  changed->insert({kind, driver});
  changed->insert({kind, WaitingFor::kAnyDriver});
}

void AddTaint(const ResourceSlice& slice, const SliceDevice& device,
              std::set<WaitingFor>* changed) {
  Add(Kind::kTaint, slice.driver, changed);
  changed->insert(
      {Kind::kTaint, slice.driver + "/" + slice.pool + "/" + device.name});
}

Node NodeNamed(const ObjectSnapshot& objects, const std::string& name) {
  const auto* found = objects.nodes.Find(ObjectName{"", name});
  if (found != nullptr) return **found;
  Node node;
  node.metadata.name = name;
  return node;
}

/// What decides which devices a node reaches, and may have.
bool SeesTheSame(const Node& a, const Node& b) {
  return a.metadata.labels == b.metadata.labels &&
         a.declared_features == b.declared_features;
}

struct DevicePlace {
  const ResourceSlice* slice = nullptr;
  const SliceDevice* device = nullptr;
};

/// Those that the node reaches.
std::map<std::string_view, DevicePlace> DevicesOf(const GatheredPool& pool,
                                                  const Node& node) {
  std::map<std::string_view, DevicePlace> devices;
  for (const ResourceSlice* slice : pool.slices) {
    for (const SliceDevice& device : slice->devices) {
      if (!allocator::Reaches(*slice, device, node)) continue;
      devices.emplace(device.name, DevicePlace{slice, &device});
    }
  }
  return devices;
}

std::vector<const CounterSet*> CountersOf(const GatheredPool& pool) {
  std::vector<const CounterSet*> sets;
  for (const auto* slices : {&pool.slices, &pool.elsewhere}) {
    for (const ResourceSlice* slice : *slices) {
      for (const CounterSet& set : slice->shared_counters) {
        sets.push_back(&set);
      }
    }
  }
  std::sort(sets.begin(), sets.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  return sets;
}

bool HasTheSameCounters(const GatheredPool& a, const GatheredPool& b) {
  const auto of_a = CountersOf(a);
  const auto of_b = CountersOf(b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [](const auto* x, const auto* y) { return *x == *y; });
}

/// What a claim could have of it, taints aside.
bool OffersTheSame(const DevicePlace& was, const DevicePlace& is) {
  const auto side = [](const ResourceSlice& slice) {
    return std::tie(slice.node_name, slice.node_selector, slice.all_nodes,
                    slice.partition_type_attribute);
  };
  if (side(*was.slice) != side(*is.slice)) return false;
  if (was.device->taints == is.device->taints) return *was.device == *is.device;
  SliceDevice device = *was.device;
  device.taints = is.device->taints;
  return device == *is.device;
}

bool IsBlocking(const DeviceTaint& taint) {
  return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
}

/// Tolerations look at key, value and effect.
bool KeepsOffTheSame(const DeviceTaint& a, const DeviceTaint& b) {
  return a.key == b.key && a.value == b.value && a.effect == b.effect;
}

/// One of its own taints is not there any more, or is another one.
bool LostTaint(const SliceDevice& was, const SliceDevice& is) {
  return std::any_of(
      was.taints.begin(), was.taints.end(), [&](const DeviceTaint& taint) {
        return IsBlocking(taint) &&
               std::none_of(is.taints.begin(), is.taints.end(),
                            [&](const DeviceTaint& other) {
                              return KeepsOffTheSame(taint, other);
                            });
      });
}

class Comparison {
 public:
  Comparison(const Node& before, const Node& after,
             std::set<WaitingFor>* changed)
      : before_(before), after_(after), changed_(*changed) {}

  /// Null: there is no such pool.
  void Compare(const std::string& driver, const GatheredPool* was,
               const GatheredPool* is) {
    if (is == nullptr) {
      Add(Kind::kFewerDevices, driver, &changed_);
      return;
    }
    if (!IsUsable(is)) return;
    if (!IsUsable(was) || !HasTheSameCounters(*was, *is)) {
      Add(Kind::kDevices, driver, &changed_);
      Add(Kind::kFewerDevices, driver, &changed_);
      return;
    }
    CompareDevices(driver, *was, *is);
  }

 private:
  void CompareDevices(const std::string& driver, const GatheredPool& was,
                      const GatheredPool& is) {
    const auto before = DevicesOf(was, before_);
    const auto after = DevicesOf(is, after_);
    for (const auto& [name, place] : after) {
      const auto old = before.find(name);
      if (old == before.end() || !OffersTheSame(old->second, place)) {
        Add(Kind::kDevices, driver, &changed_);
      } else if (LostTaint(*old->second.device, *place.device)) {
        AddTaint(*place.slice, *place.device, &changed_);
      }
    }
    for (const auto& [name, place] : before) {
      if (after.count(name) == 0) Add(Kind::kFewerDevices, driver, &changed_);
    }
  }

  const Node& before_;
  const Node& after_;
  std::set<WaitingFor>& changed_;
};

/// The pools that these slices touch, in order of driver and name.
Pools PoolsOf(const ObjectSnapshot& objects, const Node& node,
              const std::set<PoolName>* touched,
              const allocator::Features& features) {
  std::vector<const ResourceSlice*> slices;
  for (const auto& [name, slice] : objects.resource_slices) {
    if (touched == nullptr ||
        touched->count(PoolName{slice->driver, slice->pool}) != 0) {
      slices.push_back(slice.get());
    }
  }
  Pools pools;
  for (GatheredPool& pool :
       allocator::GatherPools(slices, node, features).pools) {
    const ResourceSlice& any = *pool.slices.front();
    pools.emplace(PoolName{any.driver, any.pool}, std::move(pool));
  }
  return pools;
}

bool Selects(const DeviceTaintRule& rule, const ResourceSlice& slice,
             const SliceDevice& device) {
  return rule.device_selector.has_value() &&
         rule.device_selector->driver.value_or(slice.driver) == slice.driver &&
         rule.device_selector->pool.value_or(slice.pool) == slice.pool &&
         rule.device_selector->device.value_or(device.name) == device.name;
}

/// The devices that the rule kept claims off, and does not in the same way any
/// more. `is` may be null.
void AddEndOfRule(const DeviceTaintRule& was, const DeviceTaintRule* is,
                  const ObjectSnapshot& after, std::set<WaitingFor>* changed) {
  if (!IsBlocking(was.taint)) return;
  const bool same_taint =
      is != nullptr && KeepsOffTheSame(was.taint, is->taint);
  if (same_taint && was.device_selector == is->device_selector) return;
  for (const auto& [name, slice] : after.resource_slices) {
    for (const SliceDevice& device : slice->devices) {
      if (!Selects(was, *slice, device)) continue;
      if (same_taint && Selects(*is, *slice, device)) continue;
      AddTaint(*slice, device, changed);
    }
  }
}

}  // namespace

std::set<WaitingFor> ChangedPools(const ObjectSnapshot& before,
                                  const ObjectSnapshot& after,
                                  const std::string& node_name,
                                  const std::map<std::string, bool>& gates) {
  std::set<WaitingFor> changed;
  after.device_taint_rules.VisitChangesSince(
      before.device_taint_rules, [&](const auto* was, const auto* is) {
        if (was == nullptr) return;
        AddEndOfRule(*was->second, is != nullptr ? is->second.get() : nullptr,
                     after, &changed);
      });
  std::set<PoolName> touched;
  after.resource_slices.VisitChangesSince(
      before.resource_slices, [&](const auto* was, const auto* is) {
        for (const auto* item : {was, is}) {
          if (item == nullptr) continue;
          touched.emplace(item->second->driver, item->second->pool);
        }
      });
  const Node node_before = NodeNamed(before, node_name);
  const Node node_after = NodeNamed(after, node_name);
  const bool all = !SeesTheSame(node_before, node_after);
  if (!all && touched.empty()) return changed;
  const std::set<PoolName>* const only = all ? nullptr : &touched;
  const allocator::Features features = allocator::FeaturesOf(gates);
  const Pools old_pools = PoolsOf(before, node_before, only, features);
  const Pools new_pools = PoolsOf(after, node_after, only, features);
  Comparison comparison(node_before, node_after, &changed);
  for (const auto& [name, pool] : new_pools) {
    const auto old = old_pools.find(name);
    comparison.Compare(pool.id.driver,
                       old != old_pools.end() ? &old->second : nullptr, &pool);
  }
  for (const auto& [name, pool] : old_pools) {
    if (new_pools.count(name) != 0) continue;
    comparison.Compare(pool.id.driver, &pool, nullptr);
  }
  return changed;
}

std::map<std::pair<std::string, std::string>, std::string> InvalidPools(
    const ObjectSnapshot& objects, const std::string& node_name,
    const std::map<std::string, bool>& gates) {
  std::map<std::pair<std::string, std::string>, std::string> problems;
  for (auto& [name, pool] : PoolsOf(objects, NodeNamed(objects, node_name),
                                    nullptr, allocator::FeaturesOf(gates))) {
    if (pool.state != GatheredPool::State::kInvalid) continue;
    problems[{pool.id.driver, pool.id.pool}] = pool.problem;
  }
  return problems;
}

}  // namespace devmgr::control
