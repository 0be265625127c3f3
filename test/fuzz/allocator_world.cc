// SPDX-License-Identifier: Apache-2.0
#include "fuzz/allocator_world.h"

#include <fmt/format.h>

#include <string>

#include "allocator/random_bed.h"

namespace devmgr::allocator {
namespace {

NodeSelector RandomSelector(Luck& luck) {
  NodeSelector selector;
  std::vector<NodeSelectorTerm> terms(luck.Chance(90) ? 1 : luck.Below(3));
  for (NodeSelectorTerm& term : terms) {
    const char* const ops[] = {"In",           "NotIn", "Exists",
                               "DoesNotExist", "Gt",    "Odd"};
    NodeSelectorRequirement requirement{luck.Chance(80) ? "region" : "planet",
                                        luck.Chance(70) ? "In" : luck.Pick(ops),
                                        {luck.Chance(70) ? "r1" : "2"}};
    (luck.Chance(80) ? term.match_expressions : term.match_fields)
        .push_back(requirement);
  }
  for (NodeSelectorTerm& term : terms) selector.terms.push_back(term);
  return selector;
}

void PlaceDevices(ResourceSlice& slice, Luck& luck) {
  slice.node_name.clear();
  slice.per_device_node_selection = true;
  for (SliceDevice& device : slice.devices) {
    const int where = luck.Below(10);
    if (where < 5) device.node_name = where < 4 ? "n1" : "n2";
    if (where == 5 || where == 6) device.all_nodes = true;
    if (where > 6) device.node_selector = RandomSelector(luck);
  }
}

void PlaceSlice(ResourceSlice& slice, Luck& luck) {
  switch (luck.Below(8)) {
    case 0:
      slice.node_name.clear();
      slice.all_nodes = true;
      break;
    case 1:
      slice.node_name.clear();
      slice.node_selector = RandomSelector(luck);
      break;
    case 2:
      PlaceDevices(slice, luck);
      break;
    case 3:
      slice.node_name.clear();
      break;
    default:
      break;
  }
}

void TwistDevice(SliceDevice& device, Luck& luck) {
  static const char* const kOperations[] = {"NodePrepareResources", "*"};
  switch (luck.Below(12)) {
    case 0:
      device.binds_to_node = true;
      break;
    case 1:
      device.taints.push_back(
          {"other", "v", luck.Chance(50) ? "NoExecute" : "None", ""});
      break;
    case 2:
      device.capacity["memory"].value =
          Q(luck.Chance(50) ? "9223372036854775807" : "1n");
      break;
    case 3:
      device.attributes["a/links"] = RareVector<std::int64_t>({1, 2, 3});
      break;
    case 4:
      device.attributes["links"] = SharedText("text");
      break;
    case 5:
      device.consumes_counters.push_back(
          {luck.Pick(kOperations), {{"slots", Q("1")}}, {}});
      break;
    default:
      break;
  }
}

/// What drivers and administrators may publish besides.
void TwistSlices(Bed& bed, Luck& luck) {
  for (ResourceSlice& slice : bed.slices) {
    if (!luck.Chance(40)) continue;
    PlaceSlice(slice, luck);
    switch (luck.Below(8)) {
      case 0:
        slice.pool_generation = 1 + luck.Below(3);
        break;
      case 1:
        slice.pool_slice_count = 1 + luck.Below(4);
        break;
      case 2:
        if (!slice.devices.empty()) {
          slice.devices.push_back(slice.devices.front());
        }
        break;
      case 3:
        slice.skip_node_operations = {"NodePrepareResources"};
        break;
      default:
        break;
    }
    for (SliceDevice& device : slice.devices) TwistDevice(device, luck);
  }
}

void AddRules(Bed& bed, Luck& luck) {
  for (int i = luck.Below(3); i > 0; --i) {
    DeviceTaintRule& rule = bed.rules.emplace_back();
    rule.metadata.name = fmt::format("rule-{}", i);
    rule.taint = {"t", "", luck.Chance(50) ? "NoSchedule" : "None", ""};
    if (luck.Chance(20)) continue;
    DeviceTaintSelector& selector = rule.device_selector.emplace();
    if (luck.Chance(50)) selector.driver = luck.Chance(70) ? "a" : "b";
    if (luck.Chance(50)) selector.pool = fmt::format("p{}", luck.Below(3));
    if (luck.Chance(50)) selector.device = fmt::format("d0{}", luck.Below(3));
  }
}

void TurnGatesOff(Features& gates, Luck& luck) {
  for (bool* gate :
       {&gates.admin_access, &gates.compatibility_groups,
        &gates.consumable_capacity, &gates.device_binding_and_status,
        &gates.device_taints, &gates.list_type_attributes,
        &gates.optional_node_operations, &gates.partitionable_devices,
        &gates.prioritized_list}) {
    *gate = !luck.Chance(10);
  }
}

/// Claims that hold devices as no allocation of this world would.
void AddHolders(Bed& bed, Luck& luck) {
  for (int i = luck.Below(4); i > 0; --i) {
    const std::string pool = fmt::format("p{}", luck.Below(3));
    const std::string device = fmt::format("d{}{}", luck.Below(3), i);
    const std::string driver = luck.Chance(70) ? "a" : "b";
    if (luck.Chance(50)) {
      bed.Held(device, pool, driver);
    } else {
      bed.HeldShare(device, {{luck.Chance(80) ? "memory" : "gone", "1500m"}},
                    pool, driver);
    }
  }
}

void TwistAsk(DeviceSubRequest& ask, Luck& luck) {
  // The names of the API are in small letters.
  ask.device_class_name = ask.device_class_name == "A" ? "ca" : "cb";
  static const char* const kSelectors[] = {
      "device.attributes['a'].links.exists(x, x == 1)",
      "device.attributes['a'].links[0] == 1",
      "device.capacity['a'].memory.isGreaterThan(quantity('1'))",
      "device.allowMultipleAllocations",
      "device.attributes['a'].model in ['x', 'z']",
      "'b' in device.attributes",
      "1 / device.attributes['a'].numa == 1",
      "device.driver",
      "((",
  };
  switch (luck.Below(16)) {
    case 0:
      ask.selectors.emplace_back(luck.Pick(kSelectors));
      break;
    case 1:
      if (ask.allocation_mode == "ExactCount") ask.count = 1 + luck.Below(40);
      break;
    case 2:
      ask.capacity_requests[luck.Chance(50) ? "memory" : "gone"] = Q("1e-3");
      break;
    case 3:
      ask.device_class_name = "gone";
      break;
    case 4:
      ask.derived_attributes.push_back({luck.Chance(50) ? "a/numa" : "x.y/z",
                                        "device.attributes['a'].numa"});
      break;
    default:
      break;
  }
}

void TwistClaim(ResourceClaim& claim, Luck& luck) {
  for (DeviceRequest& request : claim.spec.requests) {
    if (request.exactly) TwistAsk(*request.exactly, luck);
    for (DeviceSubRequest& each : request.first_available) {
      TwistAsk(each, luck);
    }
  }
  if (luck.Chance(20)) {
    claim.spec.config.push_back({{"q0"}, {"a", R"({"x":1})"}});
  }
  if (luck.Chance(10)) claim.spec.constraints.push_back({{"q9"}, "", "a/numa"});
}

}  // namespace

FuzzedWorld MakeFuzzedWorld(Luck& luck) {
  FuzzedWorld world;
  world.bed = RandomBed(luck);
  Bed& bed = world.bed;
  bed.Class("ca", {R"(device.driver == "a")"}).config = {{"a", "{}"}};
  bed.Class("cb", {R"(device.driver == "b")"});
  if (luck.Chance(50)) TwistSlices(bed, luck);
  if (luck.Chance(20)) AddRules(bed, luck);
  if (luck.Chance(15)) TurnGatesOff(bed.features, luck);
  bed.features.derived_attributes = luck.Chance(10);
  if (luck.Chance(20)) {
    AddHolders(bed, luck);
    world.is_sound = false;
  }
  if (luck.Chance(30))
    bed.node.declared_features = {"DRAOptionalNodeOperations"};
  for (int i = 1 + luck.Below(3); i > 0; --i) {
    auto& claims = world.rounds.emplace_back(RandomClaims(luck, true, true));
    for (std::size_t j = 0; j < claims.size(); ++j) {
      claims[j].metadata.name = fmt::format("claim-{}-{}", i, j);
      claims[j].metadata.uid = "uid-" + claims[j].metadata.name;
      TwistClaim(claims[j], luck);
    }
  }
  return world;
}

}  // namespace devmgr::allocator
