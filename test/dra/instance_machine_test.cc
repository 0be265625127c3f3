// SPDX-License-Identifier: Apache-2.0
#include "dra/instance_machine.h"

#include <devmgr/status_types.h>
#include <gtest/gtest.h>

#include "support/state_table.h"

namespace devmgr::dra {
namespace {

TEST(InstanceMachineTest, MovesAsTheTableInTheReadmeSays) {
  const StateTable table("lib/dra/README.md");
  const auto states = AllNamed<InstanceState>(InstanceStateName);
  const auto events = AllNamed<InstanceEvent>(InstanceEventName);
  ASSERT_EQ(states.size(), 4u);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(table.size(), states.size() * events.size());
  for (const InstanceState state : states) {
    for (const InstanceEvent event : events) {
      EXPECT_EQ(InstanceStateName(Next(state, event)),
                table.At(InstanceStateName(state), InstanceEventName(event)))
          << InstanceStateName(state) << " x " << InstanceEventName(event);
    }
  }
}

TEST(InstanceMachineTest, ADeregisteredInstanceStaysClosed) {
  for (const InstanceState state : AllNamed<InstanceState>(InstanceStateName)) {
    EXPECT_EQ(Next(state, InstanceEvent::kDeregistered),
              InstanceState::kClosed);
  }
  for (const InstanceEvent event : AllNamed<InstanceEvent>(InstanceEventName)) {
    EXPECT_EQ(Next(InstanceState::kClosed, event), InstanceState::kClosed);
  }
}

TEST(InstanceMachineTest, StatesAreShownByTheirNames) {
  for (const InstanceState state : AllNamed<InstanceState>(InstanceStateName)) {
    EXPECT_EQ(PluginStateName(PublicOf(state)), InstanceStateName(state));
  }
}

}  // namespace
}  // namespace devmgr::dra
