// SPDX-License-Identifier: Apache-2.0
//
// Which pods are to fail for the health of devices that claims hold.
#include <chrono>

#include "manager/dra_health_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DraHealthPolicyTest : public DraHealthTest {
 protected:
  void SetUp() override {
    DraHealthTest::SetUp();
    node_.options.health.policies[kDriver] = HealthPolicy::kFail;
    node_.options.health.unhealthy_for = std::chrono::milliseconds(1);
    node_.act_on_pod = [this](const PodAction& action) {
      actions_.Put(action);
    };
  }

  /// Of three devices, the one of pod `p1`.
  void ReportOneBroken() {
    Report({Of("dev-0", kGood), Of("dev-1", kBad), Of("dev-2", kGood)});
  }
  /// Before it is broken for long; from the next start on it is at once.
  void KeepOneBroken() {
    node_.options.health.unhealthy_for = std::chrono::hours(1);
    Start(3);
    ReportOneBroken();
    ASSERT_TRUE(WaitForKept(::testing::SizeIs(3)));
    node_.options.health.unhealthy_for = std::chrono::milliseconds(1);
  }
  void ExpectThatItsPodFails() {
    const auto action = actions_.Take();
    ASSERT_TRUE(action.has_value());
    EXPECT_EQ(action->pod, PodUid{"u-p1"});
  }
  void ExpectThatNoPodFails() {
    Told();
    EXPECT_THAT(MessagesOf("DeviceUnhealthy"), IsEmpty());
    EXPECT_THAT(MessagesOf("PodToFail"), IsEmpty());
  }

  Mailbox<PodAction> actions_;
};

TEST_F(DraHealthPolicyTest, APodIsToFailWhenItsDeviceStaysBroken) {
  Start(3);
  ReportOneBroken();
  const auto action = actions_.Take();
  ASSERT_TRUE(action.has_value());
  EXPECT_EQ(action->pod, PodUid{"u-p1"});
  EXPECT_EQ(action->reason, "DeviceUnhealthy");
  EXPECT_THAT(action->message,
              AllOf(HasSubstr("'pool-1/dev-1'"), HasSubstr(kDriver)));
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p1"), "c"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("does not work")));
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p0"), "c"),
              IsOk());
}

TEST_F(DraHealthPolicyTest, ARestartForgetsNothing) {
  ASSERT_NO_FATAL_FAILURE(KeepOneBroken());
  Restart();
  ExpectThatItsPodFails();
}

// No driver is back yet: what one said in another boot condemns nobody.
TEST_F(DraHealthPolicyTest, WhatWasBrokenBeforeARebootFailsNobody) {
  ASSERT_NO_FATAL_FAILURE(KeepOneBroken());
  StopListening();
  node_.Reboot();
  Listen();
  ASSERT_TRUE(node_.WaitFor("p1", PodState::kReady));
  ExpectThatNoPodFails();
  EXPECT_THAT(StatusOf("p1"),
              ElementsAre(HasSubstr("Unknown: the driver has not reported it "
                                    "since the node booted")));
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p1"), "c"),
              IsOk());
  // What it says now does.
  ReportOneBroken();
  ExpectThatItsPodFails();
}

TEST_F(DraHealthPolicyTest, WhatRanOutWhileWeWereDownFailsNobody) {
  ASSERT_NO_FATAL_FAILURE(KeepOneBroken());
  StopListening();
  node_.Stop();
  ToldEarlier("dev-1", std::chrono::milliseconds(61'000));
  node_.Start();
  Listen();
  ExpectThatNoPodFails();
  EXPECT_THAT(StatusOf("p0"), ElementsAre(HasSubstr("Healthy")));
}

TEST_F(DraHealthPolicyTest, WhenMostAreBrokenNobodyFails) {
  Start(2);
  Report({Of("dev-0", kBad), Of("dev-1", kBad)});
  ASSERT_TRUE(node_.WaitUntil("it is held back", [&] {
    return !MessagesOf("HealthActionsHeldBack").empty();
  }));
  Told();
  EXPECT_THAT(MessagesOf("PodToFail"), IsEmpty());
}

TEST_F(DraHealthPolicyTest, UnknownIsNotUnhealthy) {
  Start(1);
  Report({Of("dev-0", device::Health::kUnknown)});
  Told();
  EXPECT_THAT(MessagesOf("DeviceUnhealthy"), IsEmpty());
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p0"), "c"),
              IsOk());
}

}  // namespace
}  // namespace devmgr
