// SPDX-License-Identifier: Apache-2.0
#include "device/reservation_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "device/devices.h"
#include "device/reservation.h"
#include "support/status_matchers.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(ReservationTableTest, KnowsWhoHoldsWhat) {
  const ReservationTable table =
      TableOf({Held("P", "app", {"b", "a"}), Held("Q", "app", {"c"}, "other")});
  ASSERT_NE(table.HolderOf(kResource, "a"), nullptr);
  EXPECT_EQ(table.HolderOf(kResource, "a")->pod, PodUid{"P"});
  EXPECT_EQ(table.HolderOf(kResource, "c"), nullptr);
  EXPECT_EQ(table.HolderOf("other", "c")->pod, PodUid{"Q"});
  EXPECT_EQ(table.HolderOf("none", "c"), nullptr);
  EXPECT_THAT(table.Held(kResource), SizeIs(2));
  ASSERT_NE(table.Find({"P"}, "app", kResource), nullptr);
  EXPECT_THAT(IdsOf(table.Find({"P"}, "app", kResource)->devices),
              ElementsAre("a", "b"));
  EXPECT_EQ(table.Find({"P"}, "app", "other"), nullptr);
  EXPECT_THAT(table.OfPod({"R"}), IsEmpty());
}

TEST(ReservationTableTest, NeverGivesADeviceToTwoPods) {
  ReservationTable table = TableOf({Held("P", "app", {"a"})});
  const absl::Status status = table.Add(Held("Q", "app", {"b", "a"}));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("device 'a'")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("pod 'P'")));
  EXPECT_EQ(table.HolderOf(kResource, "b"), nullptr) << "nothing is changed";
  EXPECT_THAT(table.OfPod({"Q"}), IsEmpty());
}

TEST(ReservationTableTest, RefusesWhatWouldCountTwice) {
  ReservationTable table = TableOf({Held("P", "app", {"a"})});
  EXPECT_THAT(
      table.Add(Held("P", "app", {"b"})),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("already")));
  EXPECT_THAT(table.Add(Held("P", "other", {"c", "c"})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
  EXPECT_EQ(table.HolderOf(kResource, "c"), nullptr);
}

TEST(ReservationTableTest, ADeviceIsFreeWhenItsLastContainerLetsGo) {
  ReservationTable table =
      TableOf({Held("P", "init", {"a", "b"}), Held("P", "app", {"a"})});
  EXPECT_THAT(table.ReleaseContainer({"P"}, "init"),
              ElementsAre(FreedDevices{kResource, {"b"}}));
  EXPECT_THAT(table.ReleaseContainer({"P"}, "init"), IsEmpty());
  EXPECT_NE(table.HolderOf(kResource, "a"), nullptr);
  EXPECT_THAT(table.ReleaseContainer({"P"}, "app"),
              ElementsAre(FreedDevices{kResource, {"a"}}));
  EXPECT_THAT(table.resources(), IsEmpty());
}

TEST(ReservationTableTest, APodGivesBackAllItHas) {  // W-12
  ReservationTable table =
      TableOf({Held("P", "app", {"d10", "d9"}), Held("P", "x", {"n"}, "nic"),
               Held("Q", "app", {"d1"})});
  EXPECT_THAT(table.ReleasePod({"P"}),
              ElementsAre(FreedDevices{kResource, {"d9", "d10"}},
                          FreedDevices{"nic", {"n"}}));
  EXPECT_THAT(table.ReleasePod({"P"}), IsEmpty());
  EXPECT_THAT(table.Held(kResource), SizeIs(1));
  EXPECT_TRUE(table.Add(Held("R", "app", {"d9"})).ok());
}

TEST(ReservationTableTest, CommitsAllOfAPod) {
  ReservationTable table = TableOf(
      {Held("P", "a", {"1"}), Held("P", "b", {"2"}), Held("Q", "a", {"3"})});
  table.Commit({"P"});
  table.Commit({"none"});
  for (const Reservation& reservation : table.OfPod({"P"})) {
    EXPECT_EQ(reservation.phase, ReservationPhase::kCommitted);
  }
  EXPECT_EQ(table.OfPod({"Q"})[0].phase, ReservationPhase::kReserved);
}

}  // namespace
}  // namespace devmgr::device
