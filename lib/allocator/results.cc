// SPDX-License-Identifier: Apache-2.0
#include "allocator/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "allocator/capacity.h"
#include "allocator/node_selection.h"

namespace devmgr::allocator {
namespace {

std::uint64_t Hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 0xCBF29CE484222325U ^ seed;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  hash ^= hash >> 32;
  return hash * 0x9E3779B97F4A7C15U;
}

/// A UUID of version 8, which follows from what is shared by which claim.
std::string DerivedShareId(const ResourceClaim& claim, const Request& request,
                           const PoolDeviceView& device) {
  const std::string text = claim.metadata.uid + '\n' +
                           claim.metadata.FullName().ToString() + '\n' +
                           request.name + '\n' + device.Text();
  const std::uint64_t high = Hash(text, 1);
  const std::uint64_t low = Hash(text, 2);
  return fmt::format("{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}", high >> 32,
                     (high >> 16) & 0xFFFF, high & 0xFFF,
                     ((low >> 48) & 0x3FFF) | 0x8000, low & 0xFFFF'FFFF'FFFFU);
}

/// The alternatives that the requests of a claim got.
std::vector<const Request*> ChosenRequests(const Requests& requests,
                                           const Claim& claim,
                                           const Search& search) {
  std::vector<const Request*> chosen;
  for (const MainRequest& main : claim.requests) {
    chosen.push_back(&requests.requests[search.AlternativeOf(main)]);
  }
  return chosen;
}

bool Names(const std::vector<std::string>& names, const Request& request) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == request.main_name || name == request.name;
  });
}

std::vector<DeviceAllocationConfiguration> ClassConfig(
    const std::vector<const Request*>& requests) {
  std::vector<DeviceAllocationConfiguration> config;
  std::map<std::string, std::pair<std::size_t, std::size_t>> ranges;
  for (const Request* request : requests) {
    const DeviceClass& used = *request->device_class;
    if (used.config.empty()) continue;
    const auto [range, is_new] = ranges.try_emplace(
        used.metadata.name, config.size(), config.size() + used.config.size());
    for (std::size_t i = range->second.first; i < range->second.second; ++i) {
      if (is_new) {
        config.push_back(
            {"FromClass", {}, used.config[i - range->second.first]});
      }
      config[i].requests.push_back(request->name);
    }
  }
  return config;
}

std::vector<DeviceAllocationConfiguration> MakeConfig(
    const ResourceClaim& claim, const std::vector<const Request*>& requests) {
  std::vector<DeviceAllocationConfiguration> config = ClassConfig(requests);
  for (const DeviceClaimConfiguration& each : claim.spec.config) {
    if (each.requests.empty() || std::any_of(requests.begin(), requests.end(),
                                             [&](const Request* request) {
                                               return Names(each.requests,
                                                            *request);
                                             })) {
      config.push_back({"FromClaim", each.requests, each.opaque});
    }
  }
  for (DeviceAllocationConfiguration& each : config) {
    if (std::all_of(requests.begin(), requests.end(),
                    [&](const Request* request) {
                      return Names(each.requests, *request);
                    })) {
      each.requests.clear();
    }
  }
  return config;
}

DeviceCharge CountersOf(const Device& device) {
  DeviceCharge charge;
  charge.device = device.id.Copy();
  for (const DeviceCounterConsumption& use : device.device->consumes_counters) {
    for (const auto& [counter, amount] : use.counters) {
      charge.counters[{use.counter_set.str(), counter.str()}] = amount;
    }
  }
  return charge;
}

SortedMap<Quantity> ConsumedCapacity(const Device& device,
                                     const Request& request,
                                     const std::vector<Amount>& charges) {
  SortedMap<Quantity> consumed;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Capacity& capacity = device.capacity[i];
    consumed.emplace(
        capacity.name,
        ChargedQuantity(capacity,
                        request.spec->capacity_requests.Find(capacity.name),
                        charges[i]));
  }
  return consumed;
}

}  // namespace

std::vector<Allocation> MakeAllocations(
    const Inventory& inventory, const Requests& requests,
    const Eligibility& eligibility, const Search& search, const Trial& trial,
    const std::function<std::string()>& new_share_id) {
  std::vector<Allocation> allocations(requests.claims.size());
  std::vector<NodeSelection> nodes(
      requests.claims.size(), NodeSelection(inventory.node().metadata.name));
  for (const Chosen& chosen : trial.chosen()) {
    const Request& request = requests.requests[chosen.request];
    const Device& device = inventory.devices()[chosen.device];
    const ResourceClaim& claim = *requests.claims[request.claim].claim;
    Allocation& allocation = allocations[request.claim];

    DeviceRequestAllocationResult& result =
        allocation.allocation.results.emplace_back();
    result.request = request.name;
    result.driver = device.id.driver;
    result.pool = device.id.pool;
    result.device = device.id.device;
    result.admin_access = request.has_admin_access;
    result.tolerations = request.spec->tolerations;
    result.skip_node_operations = device.slice->skip_node_operations;
    result.binding_conditions = device.device->binding_conditions.vector();
    result.binding_failure_conditions =
        device.device->binding_failure_conditions.vector();
    if (device.is_shareable) {
      result.share_id = new_share_id
                            ? new_share_id()
                            : DerivedShareId(claim, request, device.id);
      result.consumed_capacity = ConsumedCapacity(
          device, request, eligibility.Charges(chosen.request, chosen.device));
    }
    nodes[request.claim].Add(*device.slice, *device.device);
    if (!request.has_admin_access && !device.counters.empty()) {
      allocation.charges.push_back(CountersOf(device));
    }
  }
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    AllocationResult& allocation = allocations[i].allocation;
    const Claim& claim = requests.claims[i];
    allocation.config =
        MakeConfig(*claim.claim, ChosenRequests(requests, claim, search));
    allocation.node_selector = nodes[i].Selector();
    allocation.many_nodes =
        allocation.node_selector.has_value() && !nodes[i].IsOneNode();
  }
  return allocations;
}

}  // namespace devmgr::allocator
