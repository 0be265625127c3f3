// SPDX-License-Identifier: Apache-2.0
#include "device/endpoint_machine.h"

#include <devmgr/status_types.h>
#include <gtest/gtest.h>

#include "support/state_table.h"

namespace devmgr::device {
namespace {

TEST(EndpointMachineTest, MovesAsTheTableInTheReadmeSays) {
  const StateTable table("lib/device/README.md");
  const auto states = AllNamed<EndpointState>(EndpointStateName);
  const auto events = AllNamed<EndpointEvent>(EndpointEventName);
  ASSERT_EQ(states.size(), 6u);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(table.size(), states.size() * events.size());
  for (const EndpointState state : states) {
    for (const EndpointEvent event : events) {
      EXPECT_EQ(EndpointStateName(Next(state, event)),
                table.At(EndpointStateName(state), EndpointEventName(event)))
          << EndpointStateName(state) << " x " << EndpointEventName(event);
    }
  }
}

TEST(EndpointMachineTest, StatesAreShownByTheirNames) {
  for (const EndpointState state : AllNamed<EndpointState>(EndpointStateName)) {
    EXPECT_EQ(ResourceStateName(PublicOf(state)), EndpointStateName(state));
  }
}

}  // namespace
}  // namespace devmgr::device
