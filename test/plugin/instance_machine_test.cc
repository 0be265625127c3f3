// SPDX-License-Identifier: Apache-2.0
#include "plugin/instance_machine.h"

#include <devmgr/status_types.h>
#include <gtest/gtest.h>

#include "support/state_table.h"

namespace devmgr::plugin {
namespace {

TEST(PluginInstanceMachineTest, MovesAsTheTableInTheReadmeSays) {
  const StateTable table("lib/plugin/README.md");
  const auto states = AllNamed<InstanceState>(InstanceStateName);
  const auto events = AllNamed<InstanceEvent>(InstanceEventName);
  ASSERT_EQ(states.size(), 6u);
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(table.size(), states.size() * events.size());
  for (const InstanceState state : states) {
    for (const InstanceEvent event : events) {
      EXPECT_EQ(InstanceStateName(Next(state, event)),
                table.At(InstanceStateName(state), InstanceEventName(event)))
          << InstanceStateName(state) << " x " << InstanceEventName(event);
    }
  }
}

TEST(PluginInstanceMachineTest, StatesAreShownByTheirNames) {
  for (const InstanceState state : AllNamed<InstanceState>(InstanceStateName)) {
    EXPECT_EQ(PluginStateName(PublicOf(state)), InstanceStateName(state));
  }
}

}  // namespace
}  // namespace devmgr::plugin
