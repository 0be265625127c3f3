// SPDX-License-Identifier: Apache-2.0
#include "device/node_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/devices.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(NodeFitTest, WhatIsHeldFits) {  // DP-080
  const ReservationTable table =
      TableOf({Held("P", "app", {"a"}, "r1"), Held("P", "app", {"a"}, "r2")});
  EXPECT_THAT(AllocatableForFit({{"cpu", 4}, {"r2", 2}}, table, {"P"}),
              ElementsAre(Pair("cpu", 4), Pair("r1", 1), Pair("r2", 2)));
  EXPECT_THAT(AllocatableForFit({{"cpu", 4}, {"r2", 2}}, table, {"Q"}),
              ElementsAre(Pair("cpu", 4), Pair("r2", 2)));
}

TEST(NodeFitTest, ADeviceHandedOnCountsOnce) {
  Reservation init = Held("P", "init", {"a", "b"});
  init.kind = ContainerKind::kInit;
  const ReservationTable table = TableOf({init, Held("P", "app", {"a", "b"})});
  EXPECT_THAT(AllocatableForFit({{kResource, 0}}, table, {"P"}),
              ElementsAre(Pair(kResource, 2)));
}

}  // namespace
}  // namespace devmgr::device
