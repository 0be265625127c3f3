// SPDX-License-Identifier: Apache-2.0
#include "allocator/random_bed.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "allocator/counters.h"
#include "allocator/inventory.h"
#include "allocator/taints.h"

namespace devmgr::allocator {
namespace {

Dev RandomDevice(Luck& luck, const std::string& name, bool has_counters) {
  Dev device(name);
  device.Int("numa", luck.Below(2));
  if (luck.Chance(80)) device.Text("model", luck.Chance(50) ? "x" : "y");
  if (luck.Chance(60)) {
    device.Ints("links", luck.Chance(50)
                             ? std::vector<std::int64_t>{luck.Below(3)}
                             : std::vector<std::int64_t>{0, luck.Below(3) + 1});
  }
  device.Cap("memory", fmt::format("{}", 1 + luck.Below(3)));
  if (luck.Chance(25)) {
    device.Shared();
    if (luck.Chance(50)) {
      CapacityRequestPolicy policy;
      policy.default_value = Q("1");
      policy.valid_range.emplace().min = Q("500m");
      policy.valid_range->step = Q("500m");
      device.Policy("memory", policy);
    }
  }
  if (luck.Chance(10)) device.Taint("t", "NoSchedule");
  if (luck.Chance(5)) device.Binds("IsPrepared", "BindingFailed");
  if (has_counters && luck.Chance(70)) {
    std::vector<SharedText> groups;
    if (luck.Chance(30)) groups.emplace_back(luck.Chance(50) ? "mig" : "vgpu");
    device.Uses("set",
                {{"slots", fmt::format("{}", 1 + luck.Below(2))},
                 {luck.Chance(50) ? "one" : "two", "500m"}},
                groups);
  }
  return device;
}

Ask RandomAsk(Luck& luck, bool may_want_all, bool may_fail) {
  const std::string wanted = luck.Chance(80) ? "A" : "B";
  Ask ask(wanted, 1 + luck.Below(3));
  if (may_want_all && luck.Chance(8)) ask = Ask::All(wanted);
  const std::string driver = wanted == "A" ? "a" : "b";
  if (luck.Chance(20)) {
    ask.If("device.attributes['" + driver + "'].numa == 1");
  }
  if (luck.Chance(20)) {
    ask.If("device.attributes['" + driver + "'].?model.orValue('') == 'x'");
  }
  if (may_fail && luck.Chance(15)) {
    ask.If("device.attributes['" + driver + "'].model == 'x'");
  }
  if (luck.Chance(30)) {
    ask.Cap("memory", luck.Chance(50) ? "700m" : "2");
  }
  if (luck.Chance(30)) {
    DeviceToleration toleration;
    toleration.op = "Exists";
    ask.Tolerate(toleration);
  }
  return ask;
}

const DeviceSubRequest& SpecOf(const ResourceClaim& claim,
                               const std::string& name) {
  for (const DeviceRequest& request : claim.spec.requests) {
    if (request.exactly && request.name == name) return *request.exactly;
    for (const DeviceSubRequest& each : request.first_available) {
      if (request.name + '/' + each.name == name) return each;
    }
  }
  throw std::out_of_range(name);
}

const Device* Find(const Inventory& inventory,
                   const DeviceRequestAllocationResult& result) {
  for (const Device& device : inventory.devices()) {
    if (device.id == PoolDevice{result.driver, result.pool, result.device}) {
      return &device;
    }
  }
  return nullptr;
}

}  // namespace

Bed RandomBed(Luck& luck) {
  Bed bed;
  const int pools = 1 + luck.Below(3);
  for (int i = 0; i < pools; ++i) {
    const std::string pool = fmt::format("p{}", i);
    const std::string driver = luck.Chance(75) ? "a" : "b";
    const bool has_counters = luck.Chance(40);
    if (has_counters) {
      bed.Counters(pool, "set",
                   {{"slots", fmt::format("{}", 1 + luck.Below(4))},
                    {"one", "1"},
                    {"two", "1"}},
                   driver);
    }
    const int slices = 1 + luck.Below(2);
    for (int j = 0; j < slices; ++j) {
      std::vector<SliceDevice> devices;
      const int count = 1 + luck.Below(4);
      for (int k = 0; k < count; ++k) {
        devices.push_back(
            RandomDevice(luck, fmt::format("d{}{}", j, k), has_counters));
      }
      const bool is_elsewhere = luck.Chance(15);
      bed.Slice(is_elsewhere ? "n2" : "n1", pool, devices, driver);
    }
  }
  return bed;
}

std::vector<ResourceClaim> RandomClaims(Luck& luck, bool may_want_all,
                                        bool may_fail) {
  std::vector<ResourceClaim> claims;
  const int count = 1 + luck.Below(2);
  static int name = 0;
  for (int i = 0; i < count; ++i) {
    Want claim(fmt::format("claim-{}", name++));
    const int requests = 1 + luck.Below(3);
    for (int j = 0; j < requests; ++j) {
      if (luck.Chance(30)) {
        claim.First({RandomAsk(luck, may_want_all, may_fail),
                     RandomAsk(luck, may_want_all, may_fail)});
      } else {
        Ask ask = RandomAsk(luck, may_want_all, may_fail);
        if (luck.Chance(25)) ask.Admin();
        claim.One(ask);
      }
    }
    if (luck.Chance(30)) claim.Match("a/numa");
    if (luck.Chance(15)) claim.Match("a/links", {"q0"});
    if (luck.Chance(15)) claim.Distinct("a/links");
    claims.push_back(claim);
  }
  return claims;
}

void Commit(Bed& bed, const std::vector<ResourceClaim>& claims) {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Allocation& allocation = bed.outcome.allocations[i];
    bed.held.Add(claims[i].metadata, allocation.allocation,
                 &allocation.charges);
  }
}

std::string Broken(const Bed& bed, const std::vector<ResourceClaim>& claims) {
  Bed copy = bed;
  const auto inventory = TakeInventory(copy.MakeWorld(), bed.features);
  AllocatedState held = bed.held;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::map<std::string, std::int64_t> counts;
    std::set<std::string> own;
    const Allocation& allocation = bed.outcome.allocations[i];
    for (const auto& result : allocation.allocation.results) {
      ++counts[result.request];
      const Device* device = Find(*inventory, result);
      if (device == nullptr) return "no such device: " + result.device;
      const DeviceSubRequest& spec = SpecOf(claims[i], result.request);
      if (!own.insert(device->id.Text()).second && !device->is_shareable) {
        return "twice in a claim: " + device->id.Text();
      }
      if (Untolerated(device->taints, spec.tolerations) != nullptr) {
        return "tainted: " + device->id.Text();
      }
      const HeldDevice* holders = held.Find(device->id);
      if (holders != nullptr && !result.admin_access &&
          (!device->is_shareable || holders->IsHeldWhole())) {
        return "held: " + device->id.Text();
      }
      if (device->is_shareable != !result.share_id.empty()) {
        return "share: " + device->id.Text();
      }
    }
    for (const DeviceRequest& request : claims[i].spec.requests) {
      std::int64_t served = 0;
      for (const auto& [name, count] : counts) {
        if (name != request.name && !name.starts_with(request.name + '/')) {
          continue;
        }
        const DeviceSubRequest& spec = SpecOf(claims[i], name);
        if (spec.allocation_mode == "ExactCount" && spec.count != count) {
          return "count: " + name;
        }
        ++served;
      }
      if (served != 1) return "not served: " + request.name;
    }
    held.Add(claims[i].metadata, allocation.allocation, &allocation.charges);
  }
  for (const Device& device : inventory->devices()) {
    const HeldDevice* holders = held.Find(device.id);
    for (const Capacity& capacity : device.capacity) {
      if (holders == nullptr) continue;
      const auto consumed = holders->consumed.find(capacity.name);
      if (consumed == holders->consumed.end()) continue;
      if (consumed->second > capacity.value) {
        return "capacity: " + device.id.Text();
      }
    }
  }
  const CounterState counters(*inventory, held);
  for (PoolNumber i = 0; i < inventory->pools().size(); ++i) {
    for (const Counter& counter : inventory->pools()[i].counters) {
      if (counters.Left(i, counter) < 0)
        return "counter: " + counter.name.second;
    }
  }
  return "";
}

}  // namespace devmgr::allocator
