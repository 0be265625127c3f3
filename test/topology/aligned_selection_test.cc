// SPDX-License-Identifier: Apache-2.0
//
// Hints, their merge, and the choice of devices by it, together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/devices.h"
#include "device/selection.h"
#include "support/random_lives.h"
#include "topology/masks.h"
#include "topology/provider_hints.h"
#include "topology/resource_hints.h"

namespace devmgr::topology {
namespace {

using device::Held;
using device::Inventory;
using device::Live;
using device::ReservationTable;
using device::TableOf;

/// Some devices on some nodes, some of them held by another pod.
struct RandomResource {
  Inventory inventory;
  ReservationTable reservations;

  RandomResource(Luck& luck, int nodes, const std::string& name) {
    std::vector<device::Device> devices;
    std::vector<DeviceId> held;
    const int count = 1 + luck.Below(8);
    for (int i = 0; i < count; ++i) {
      device::Device one = device::Healthy("d" + std::to_string(i));
      if (luck.Chance(90)) one.numa_nodes = {luck.Below(nodes)};
      if (luck.Chance(10)) one.health = device::Health::kUnhealthy;
      if (luck.Chance(25)) held.push_back(one.id);
      devices.push_back(std::move(one));
    }
    inventory = Live(devices);
    if (!held.empty()) {
      reservations = TableOf({Held("other", "app", held, name)});
    }
  }
};

void SelectAligned(const RandomResource& resource, const std::string& name,
                   std::int64_t count, const TopologyHint& hint) {
  const std::vector<std::int64_t> nodes =
      hint.nodes.value_or(NumaMask()).Nodes();
  const device::IdSet none;
  const auto selection =
      device::Select({.inventory = resource.inventory,
                      .held = resource.reservations.Held(name),
                      .pod = {"P"},
                      .count = count,
                      .reusable = none,
                      .planned = none,
                      .mask = hint.nodes ? &nodes : nullptr});
  if (selection.shortage) {
    ASSERT_TRUE(selection.devices.empty());
    return;
  }
  ASSERT_EQ(selection.devices.size(), static_cast<std::size_t>(count));
  if (!hint.preferred || !hint.nodes) return;
  for (const auto& chosen : selection.devices) {
    ASSERT_TRUE(chosen.numa_nodes.empty() ||
                hint.nodes->Contains(chosen.numa_nodes.front()))
        << chosen.id.value;
  }
}

TEST(AlignedSelectionTest, NeverPicksMoreThanAskedNorLeavesThePreferredNodes) {
  LiveEach({1, 1'000}, [](Luck& luck) {
    const int nodes = luck.Chance(80) ? 1 + luck.Below(4) : 12;
    const NumaMachine machine{FirstNodes(nodes)};
    const std::string names[] = {"r0", "r1"};
    const RandomResource resources[] = {{luck, nodes, names[0]},
                                        {luck, nodes, names[1]}};
    std::vector<ResourceHints> lists;
    std::vector<std::int64_t> counts;
    for (std::size_t i = 0; i < 2; ++i) {
      counts.push_back(1 + luck.Below(3));
      lists.push_back(ToResourceHints(
          kDeviceProvider, names[i],
          HintsOf(resources[i].inventory, resources[i].reservations,
                  {.pod = {"P"},
                   .container = "app",
                   .resource = names[i],
                   .count = counts[i]},
                  machine.nodes.Nodes())));
    }
    const auto merged = Merge({.policy = Policy::kRestricted}, machine, lists);
    for (std::size_t i = 0; i < 2; ++i) {
      SelectAligned(resources[i], names[i], counts[i], merged.hint);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

}  // namespace
}  // namespace devmgr::topology
