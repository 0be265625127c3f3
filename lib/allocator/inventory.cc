// SPDX-License-Identifier: Apache-2.0
#include "allocator/inventory.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "allocator/node_selection.h"
#include "allocator/taints.h"
#include "cel/device.h"

namespace devmgr::allocator {
namespace {

constexpr std::string_view kNodeOperations = "DRAOptionalNodeOperations";

bool HasNoValue(const DeviceAttribute& attribute) {
  return std::visit(
      [](const auto& value) {
        if constexpr (requires { value.vector(); }) {
          return value.empty();
        } else {
          return false;
        }
      },
      attribute);
}

/// Numbers for the counters and sets of a pool.
class CounterNumbers {
 public:
  void Add(const CounterSet& set, Pool& pool) {
    sets_[set.name] = static_cast<std::uint32_t>(pool.sets.size());
    pool.sets.push_back(set.name);
    for (const auto& [counter, total] : set.counters) {
      const CounterName name{set.name, counter.str()};
      counters_[name] = static_cast<std::uint32_t>(pool.counters.size());
      pool.counters.push_back({name, AmountOf(total)});
    }
  }

  std::vector<CounterUse> Uses(const SliceDevice& device) const {
    std::map<std::uint32_t, Amount> amounts;
    for (const DeviceCounterConsumption& use : device.consumes_counters) {
      for (const auto& [counter, amount] : use.counters) {
        amounts[counters_.at({use.counter_set.str(), counter.str()})] +=
            AmountOf(amount);
      }
    }
    std::vector<CounterUse> uses;
    for (const auto& [counter, amount] : amounts) {
      uses.push_back({counter, amount});
    }
    return uses;
  }

  std::vector<GroupUse> Groups(const SliceDevice& device) const {
    std::vector<GroupUse> uses;
    for (const DeviceCounterConsumption& use : device.consumes_counters) {
      GroupUse& group = uses.emplace_back();
      group.set = sets_.at(use.counter_set.str());
      for (const SharedText& name : use.compatibility_groups) {
        group.groups.push_back(name.str());
      }
      std::sort(group.groups.begin(), group.groups.end());
    }
    return uses;
  }

 private:
  std::map<std::string, std::uint32_t> sets_;
  std::map<CounterName, std::uint32_t> counters_;
};

}  // namespace

const cel::Value& SelectorValue::Of(const SliceDevice& device,
                                    std::string_view driver) const {
  const cel::Value* known = value_.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto made =
      std::make_unique<const cel::Value>(cel::MakeDevice(driver, device));
  // Another thread may have been quicker.
  if (value_.compare_exchange_strong(known, made.get(),
                                     std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *known;
}

Inventory::Inventory(const World& world, const Features& features)
    : features_(features), node_(world.node) {
  GatheredPools gathered = GatherPools(world.slices, *node_, features_);
  left_out_ = std::move(gathered.left_out);
  std::size_t devices = 0;
  for (const GatheredPool& pool : gathered.pools) {
    for (const ResourceSlice* slice : pool.slices) {
      devices += slice->devices.size();
    }
  }
  devices_.reserve(devices);
  pools_.reserve(gathered.pools.size());
  for (GatheredPool& pool : gathered.pools) AddPool(std::move(pool), world);
}

void Inventory::AddPool(GatheredPool gathered, const World& world) {
  const auto number = static_cast<PoolNumber>(pools_.size());
  Pool& pool = pools_.emplace_back();
  pool.id = std::move(gathered.id);
  pool.state = gathered.state;
  pool.problem = std::move(gathered.problem);
  if (gathered.state != GatheredPool::State::kUsable) return;
  CounterNumbers numbers;
  if (features_.partitionable_devices) {
    for (const auto* slices : {&gathered.slices, &gathered.elsewhere}) {
      for (const ResourceSlice* slice : *slices) {
        for (const CounterSet& set : slice->shared_counters) {
          numbers.Add(set, pool);
        }
      }
    }
    for (const auto* slices : {&gathered.slices, &gathered.elsewhere}) {
      for (const ResourceSlice* slice : *slices) {
        for (const SliceDevice& device : slice->devices) {
          if (device.consumes_counters.empty()) continue;
          pool.users.push_back({{slice->driver, slice->pool, device.name},
                                numbers.Uses(device),
                                numbers.Groups(device)});
        }
      }
    }
  }
  AddDevices(gathered, number, world);
}

void Inventory::AddDevices(const GatheredPool& gathered, PoolNumber pool,
                           const World& world) {
  std::map<std::string_view, const CounterUser*> users;
  for (const CounterUser& user : pools_[pool].users) {
    users.emplace(user.id.device, &user);  // Those here come first.
  }
  for (const ResourceSlice* slice : gathered.slices) {
    for (const SliceDevice& device : slice->devices) {
      if (!Reaches(*slice, device, *node_)) {
        left_out_.push_back({slice, &device, Refusal::kNotOnNode, ""});
        continue;
      }
      Device& made = devices_.emplace_back();
      Describe(*slice, device, pool, made);
      if (features_.device_taints) {
        made.taints = BlockingTaints(*slice, device, world.taint_rules);
      }
      const auto user = users.find(device.name);
      if (user == users.end()) continue;
      made.counters = user->second->counters;
      if (features_.compatibility_groups) made.groups = user->second->groups;
    }
  }
}

void Inventory::Describe(const ResourceSlice& slice, const SliceDevice& device,
                         PoolNumber pool, Device& made) const {
  made.id = {slice.driver, slice.pool, device.name};
  made.pool = pool;
  made.slice = &slice;
  made.device = &device;
  made.is_shareable =
      features_.consumable_capacity && device.allow_multiple_allocations;
  made.is_hidden = !features_.device_binding_and_status &&
                   !device.binding_conditions.empty();
  made.feature_off = FeatureOff(slice, device);
  made.has_bad_attribute =
      std::any_of(device.attributes.begin(), device.attributes.end(),
                  [](const auto& entry) { return HasNoValue(entry.second); });
  if (features_.consumable_capacity) made.capacity = CapacitiesOf(device);
}

std::string_view Inventory::FeatureOff(const ResourceSlice& slice,
                                       const SliceDevice& device) const {
  if (!slice.skip_node_operations.empty()) {
    const auto& declared = node_->declared_features;
    if (!features_.optional_node_operations ||
        std::find(declared.begin(), declared.end(), kNodeOperations) ==
            declared.end()) {
      return kNodeOperations;
    }
  }
  if (!features_.partitionable_devices && !device.consumes_counters.empty()) {
    return "DRAPartitionableDevices";
  }
  return {};
}

std::shared_ptr<const Inventory> TakeInventory(const World& world,
                                               const Features& features) {
  return std::make_shared<const Inventory>(world, features);
}

}  // namespace devmgr::allocator
