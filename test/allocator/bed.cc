// SPDX-License-Identifier: Apache-2.0
#include "allocator/bed.h"

#include <fmt/format.h>

#include "api/quantity.h"

namespace devmgr::allocator {

Quantity Q(const std::string& text) { return *api::ParseQuantity(text); }

std::string AtLeast(const std::string& amount) {
  return "device.capacity['a'].memory.compareTo(quantity('" + amount +
         "')) >= 0";
}

std::vector<SliceDevice> Devices(int count) {
  std::vector<SliceDevice> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(Dev(fmt::format("d{}", i)));
  }
  return devices;
}

Want::Want(const std::string& name) {
  metadata.ns = "ns";
  metadata.name = name;
  metadata.uid = "uid-" + name;
}

Want& Want::One(const Ask& ask) {
  DeviceRequest& request = spec.requests.emplace_back();
  request.name = fmt::format("q{}", spec.requests.size() - 1);
  request.admin_access = request.says_admin_access = ask.is_admin;
  request.exactly = ask;
  request.exactly->name = request.name;
  return *this;
}

Want& Want::First(std::initializer_list<Ask> alternatives) {
  DeviceRequest& request = spec.requests.emplace_back();
  request.name = fmt::format("q{}", spec.requests.size() - 1);
  for (const Ask& ask : alternatives) {
    request.first_available.push_back(ask);
    request.first_available.back().name =
        fmt::format("s{}", request.first_available.size() - 1);
  }
  return *this;
}

Want& Want::Match(const std::string& attribute,
                  std::vector<std::string> requests) {
  spec.constraints.push_back({std::move(requests), attribute, ""});
  return *this;
}

Want& Want::Distinct(const std::string& attribute,
                     std::vector<std::string> requests) {
  spec.constraints.push_back({std::move(requests), "", attribute});
  return *this;
}

Want& Want::Config(const std::string& driver,
                   std::vector<std::string> requests) {
  spec.config.push_back({std::move(requests), {driver, "{}"}});
  return *this;
}

Bed::Bed() {
  static cel::SelectorCache selectors(256);
  options.selectors = &selectors;
  node.metadata.name = "n1";
  node.metadata.labels["region"] = "r1";
  Class("A", {R"(device.driver == "a")"});
  Class("B", {R"(device.driver == "b")"});
}

ResourceSlice& Bed::Slice(const std::string& on, const std::string& pool,
                          std::vector<SliceDevice> devices,
                          const std::string& driver) {
  ResourceSlice& slice = slices.emplace_back();
  slice.metadata.name = fmt::format("s{:03}", slices.size());
  slice.driver = driver;
  slice.pool = pool;
  slice.pool_generation = 1;
  slice.node_name = on;
  slice.devices = std::move(devices);
  return slice;
}

ResourceSlice& Bed::Counters(const std::string& pool, const std::string& set,
                             const std::map<std::string, std::string>& amounts,
                             const std::string& driver) {
  ResourceSlice& slice = Slice("n1", pool, {}, driver);
  CounterSet& counters = slice.shared_counters.emplace_back();
  counters.name = set;
  for (const auto& [name, amount] : amounts) {
    counters.counters.emplace(name, Q(amount));
  }
  return slice;
}

DeviceClass& Bed::Class(const std::string& name,
                        std::vector<std::string> selectors) {
  DeviceClass& made = classes.emplace_back();
  made.metadata.name = name;
  made.selectors = std::move(selectors);
  return made;
}

Bed& Bed::Held(const std::string& device, const std::string& pool,
               const std::string& driver) {
  Want claim(fmt::format("held-{}", held_claims_++));
  claim.status.allocation.emplace().results.push_back(
      {.request = "q", .driver = driver, .pool = pool, .device = device});
  held.Add(claim);
  return *this;
}

Bed& Bed::HeldShare(const std::string& device,
                    const std::map<std::string, std::string>& consumed,
                    const std::string& pool, const std::string& driver) {
  Want claim(fmt::format("held-{}", held_claims_++));
  auto& result = claim.status.allocation.emplace().results.emplace_back();
  result.driver = driver;
  result.pool = pool;
  result.device = device;
  result.share_id = fmt::format("share-{}", held_claims_);
  for (const auto& [name, amount] : consumed) {
    result.consumed_capacity.emplace(name, Q(amount));
  }
  held.Add(claim);
  return *this;
}

World Bed::MakeWorld() {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (const ResourceSlice& slice : slices) {
    ++counts[{slice.driver, slice.pool}];
  }
  World world;
  world.node = &node;
  for (ResourceSlice& slice : slices) {
    if (slice.pool_slice_count == 0) {
      slice.pool_slice_count = counts[{slice.driver, slice.pool}];
    }
    world.slices.push_back(&slice);
  }
  for (const DeviceTaintRule& rule : rules) world.taint_rules.push_back(&rule);
  return world;
}

const Outcome& Bed::Run(const std::vector<ResourceClaim>& wanted) {
  std::vector<const DeviceClass*> known;
  for (const DeviceClass& each : classes) known.push_back(&each);
  std::vector<const ResourceClaim*> claims;
  for (const ResourceClaim& each : wanted) claims.push_back(&each);
  const auto inventory = TakeInventory(MakeWorld(), features);
  outcome = Allocate(*inventory, known, held, claims, options);
  return outcome;
}

std::string Bed::Solve(const std::vector<ResourceClaim>& wanted) {
  return TextOf(Run(wanted));
}

std::string Bed::Verdict(const std::vector<ResourceClaim>& wanted) {
  return std::string(ResultName(Run(wanted).result));
}

std::string TextOf(const Outcome& outcome) {
  if (outcome.result != Result::kSolved) {
    return fmt::format("{}{}{}", ResultName(outcome.result),
                       outcome.message.empty() ? "" : ": ", outcome.message);
  }
  std::string text;
  for (std::size_t i = 0; i < outcome.allocations.size(); ++i) {
    if (i > 0) text += " | ";
    const auto& results = outcome.allocations[i].allocation.results;
    for (std::size_t j = 0; j < results.size(); ++j) {
      text += fmt::format("{}{}={}/{}{}", j > 0 ? " " : "", results[j].request,
                          results[j].pool, results[j].device,
                          results[j].admin_access ? "!" : "");
    }
  }
  return text;
}

std::string ConfigText(const AllocationResult& allocation) {
  std::string text;
  for (const DeviceAllocationConfiguration& each : allocation.config) {
    text += fmt::format("{}{}[{}]:{}", text.empty() ? "" : " ", each.source,
                        fmt::join(each.requests, ","), each.opaque.driver);
  }
  return text;
}

std::string NodesText(const AllocationResult& allocation) {
  if (!allocation.node_selector) return "-";
  std::string text;
  for (const NodeSelectorTerm& term : allocation.node_selector->terms) {
    for (const auto* requirements :
         {&term.match_fields, &term.match_expressions}) {
      for (const NodeSelectorRequirement& each : *requirements) {
        text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", each.key,
                            each.op, fmt::join(each.values, " "));
      }
    }
  }
  return text;
}

}  // namespace devmgr::allocator
