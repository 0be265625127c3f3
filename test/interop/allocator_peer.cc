// SPDX-License-Identifier: Apache-2.0
//
// Allocates for allocator/allocator_test.py: worlds come in, one a line, in the
// form of allocator/world.go, and the outcome of each goes out. With an
// argument, each world is run for so many milliseconds, and what one run took
// goes out, too.
#include <devmgr/manifests.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "allocator/allocated_state.h"
#include "allocator/allocator.h"
#include "api/field.h"
#include "api/parser.h"
#include "api/problems.h"
#include "api/quantity.h"
#include "api/resource.h"
#include "cel/selector_cache.h"

namespace devmgr::allocator {
namespace {

using nlohmann::json;

/// Objects as they were read.
struct Objects {
  Node node;
  std::vector<ResourceSlice> slices;
  std::vector<DeviceClass> classes;
  std::vector<ResourceClaim> claims;
  std::vector<ResourceClaim> allocated;
  std::vector<DeviceTaintRule> taint_rules;
  std::map<std::string, std::vector<DeviceCharge>> charges;  ///< By UID.
  Features features;
};

Features ReadFeatures(const api::Field& field) {
  const auto is_on = [&](const char* name) {
    return field[name].AsBool().value_or(false);
  };
  return {
      .admin_access = is_on("AdminAccess"),
      .compatibility_groups = is_on("CompatibilityGroups"),
      .consumable_capacity = is_on("ConsumableCapacity"),
      .derived_attributes = is_on("DerivedAttributes"),
      .device_binding_and_status = is_on("DeviceBindingAndStatus"),
      .device_taints = is_on("DeviceTaints"),
      .list_type_attributes = is_on("ListTypeAttributes"),
      .optional_node_operations = is_on("OptionalNodeOperations"),
      .partitionable_devices = is_on("PartitionableDevices"),
      .prioritized_list = is_on("PrioritizedList"),
  };
}

DeviceCharge ReadCharge(const api::Field& field) {
  DeviceCharge charge;
  charge.device = {field["driver"].StringOr(""), field["pool"].StringOr(""),
                   field["device"].StringOr("")};
  for (const auto& [set, counters] : field["counters"].Members()) {
    for (const auto& [counter, amount] : counters.Members()) {
      if (auto quantity = api::ParseQuantity(amount.StringOr(""));
          quantity.ok()) {
        charge.counters.emplace(CounterName(set, counter),
                                *std::move(quantity));
      }
    }
  }
  return charge;
}

Objects ReadObjects(const api::Field& world) {
  constexpr auto kVersion = api::ResourceVersion::kV1;
  Objects objects;
  objects.node = api::DecodeNode(world["node"]);
  for (const api::Field& each : world["slices"].Items()) {
    objects.slices.push_back(api::DecodeResourceSlice(each, kVersion, ""));
  }
  for (const api::Field& each : world["classes"].Items()) {
    objects.classes.push_back(api::DecodeDeviceClass(each));
  }
  for (const api::Field& each : world["claims"].Items()) {
    objects.claims.push_back(api::DecodeResourceClaim(each, kVersion));
  }
  for (const api::Field& each : world["allocated"].Items()) {
    objects.allocated.push_back(api::DecodeResourceClaim(each, kVersion));
  }
  for (const api::Field& each : world["taintRules"].Items()) {
    objects.taint_rules.push_back(api::DecodeDeviceTaintRule(each));
  }
  for (const auto& [uid, charges] : world["charges"].Members()) {
    for (const api::Field& each : charges.Items()) {
      objects.charges[uid].push_back(ReadCharge(each));
    }
  }
  objects.features = ReadFeatures(world["features"]);
  return objects;
}

template <typename T>
std::vector<const T*> Pointers(const std::vector<T>& objects) {
  std::vector<const T*> result;
  for (const T& each : objects) result.push_back(&each);
  return result;
}

/// The same objects as they are handed in: as pointers, as the official
/// allocator gets them.
struct Input {
  explicit Input(const Objects& objects)
      : classes(Pointers(objects.classes)), claims(Pointers(objects.claims)) {
    world.node = &objects.node;
    world.slices = Pointers(objects.slices);
    if (objects.features.device_taints) {
      world.taint_rules = Pointers(objects.taint_rules);
    }
  }

  World world;
  std::vector<const DeviceClass*> classes;
  std::vector<const ResourceClaim*> claims;
};

json AllocationOf(const AllocationResult& allocation) {
  ResourceClaim claim;
  claim.status.allocation = allocation;
  return json::parse(EncodeResourceClaim(claim))["status"]["allocation"];
}

const char* NameOf(Result result) {
  switch (result) {
    case Result::kSolved:
      return "solved";
    case Result::kNoSolution:
      return "none";
    case Result::kHereNotNow:
      return "here-not-now";
    case Result::kBadInput:
      return "error";
    case Result::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

/// Objects, ready for searches.
struct Ready {
  std::shared_ptr<const Inventory> inventory;
  AllocatedState held;
};

Ready MakeReady(const Objects& objects, const Input& input) {
  Ready ready{TakeInventory(input.world, objects.features), {}};
  for (const ResourceClaim& claim : objects.allocated) {
    const auto charges = objects.charges.find(claim.metadata.uid);
    ready.held.Add(
        claim, charges == objects.charges.end() ? nullptr : &charges->second);
  }
  return ready;
}

Outcome Search(const Input& input, const Ready& ready,
               cel::SelectorCache& selectors) {
  Options options;
  options.limits.steps = 200'000;
  options.selectors = &selectors;
  return Allocate(*ready.inventory, input.classes, ready.held, input.claims,
                  options);
}

/// What one run takes, in nanoseconds: the mean of those of so long.
template <typename Run>
std::int64_t Timed(std::chrono::milliseconds duration, Run run) {
  const auto start = std::chrono::steady_clock::now();
  std::chrono::nanoseconds took{0};
  std::int64_t runs = 0;
  for (; took < duration; ++runs) {
    run();
    took = std::chrono::steady_clock::now() - start;
  }
  return took.count() / runs;
}

json Answer(const std::string& line, std::chrono::milliseconds duration,
            cel::SelectorCache& selectors) {
  bool is_syntax_error = false;
  const api::ParsedText text = api::ParseJson(line, is_syntax_error);
  if (text.documents.size() != 1) {
    return {{"result", "unreadable"}, {"error", text.error}};
  }
  api::Problems problems("world");
  const Objects objects =
      ReadObjects(api::Field(*text.documents.front(), "", problems));
  if (problems.error_count() > 0) {
    return {{"result", "unreadable"},
            {"error", problems.TakeErrors().front().ToString()}};
  }
  const Input input(objects);
  const Ready ready = MakeReady(objects, input);
  const Outcome outcome = Search(input, ready, selectors);
  json answer = {{"result", NameOf(outcome.result)},
                 {"error", outcome.message},
                 {"steps", outcome.steps}};
  for (const Allocation& each : outcome.allocations) {
    answer["allocations"].push_back(AllocationOf(each.allocation));
  }
  if (duration.count() > 0) {
    answer["all"] = Timed(
        duration, [&] { Search(input, MakeReady(objects, input), selectors); });
    answer["search"] =
        Timed(duration, [&] { Search(input, ready, selectors); });
  }
  return answer;
}

}  // namespace
}  // namespace devmgr::allocator

int main(int argc, char** argv) {
  const std::chrono::milliseconds duration(argc > 1 ? std::atoi(argv[1]) : 0);
  devmgr::cel::SelectorCache selectors(1000);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << devmgr::allocator::Answer(line, duration, selectors).dump()
              << std::endl;
  }
  return 0;
}
