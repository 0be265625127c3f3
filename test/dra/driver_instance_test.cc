// SPDX-License-Identifier: Apache-2.0
#include "dra/driver_instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "support/builders.h"
#include "support/fake_connection.h"
#include "support/status_matchers.h"

namespace devmgr::dra {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DriverInstanceTest : public testing::Test {
 protected:
  void SetUp() override { Make({}); }

  void Make(InstanceOptions options) {
    instance_ = std::make_shared<DriverInstance>(
        executor_,
        [this](const auto& socket, auto on_hang_up) {
          return peer_.Dial(socket, std::move(on_hang_up));
        },
        options, kDriver, "/d.sock", ApiVersions().front(), WallTime(),
        [this] { ++changes_; });
  }

  void Call(const std::string& method = "/a.B/C",
            const std::string& request = "request") {
    instance_->Call(method, request,
                    [this](absl::StatusOr<std::string> answer) {
                      answers_.push_back(std::move(answer));
                    });
  }

  ManualExecutor executor_;
  FakePeer peer_;
  std::shared_ptr<DriverInstance> instance_;
  int changes_ = 0;  ///< Connections made and lost.
  std::vector<absl::StatusOr<std::string>> answers_;
};

TEST_F(DriverInstanceTest, ConnectsAtOnce) {
  EXPECT_EQ(instance_->state(), InstanceState::kConnecting);
  instance_->Start();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_THAT(peer_.dialed(), ElementsAre("/d.sock"));
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(executor_.timers(), 0u);
}

// DRA-024, DRA-027
TEST_F(DriverInstanceTest, CallsOverTheOneConnectionWithTheLimit) {
  Make({milliseconds(1'234), 64});
  instance_->Start();
  Call("/a.B/C", "one");
  Call("/a.B/D", "two");
  ASSERT_EQ(peer_.calls().size(), 2u);
  EXPECT_EQ(peer_.calls()[0].method, "/a.B/C");
  EXPECT_EQ(peer_.calls()[0].request, "one");
  EXPECT_EQ(peer_.calls()[0].timeout, milliseconds(1'234));
  EXPECT_EQ(peer_.calls()[1].method, "/a.B/D");
  EXPECT_EQ(peer_.dialed().size(), 1u);

  peer_.Answer(1, "second");
  EXPECT_THAT(answers_, IsEmpty());  // only on the executor
  executor_.RunPending();
  peer_.Answer(0, DeadlineExceededError("late"));
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 2u);
  ASSERT_THAT(answers_[0], IsOk());
  EXPECT_EQ(*answers_[0], "second");
  EXPECT_THAT(answers_[1],
              StatusIs(absl::StatusCode::kDeadlineExceeded, "late"));
  EXPECT_EQ(instance_->Info().last_error, "late");
}

TEST_F(DriverInstanceTest, DialsAgainWithABackOffThatDoublesTo30Seconds) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  instance_->Start();
  EXPECT_EQ(instance_->state(), InstanceState::kBackingOff);
  EXPECT_EQ(instance_->Info().last_error, "nobody listens");
  std::size_t dials = 1;
  for (const int delay : {50, 100, 200, 400, 800, 1'600, 3'200, 6'400, 12'800,
                          25'600, 30'000, 30'000, 30'000}) {
    EXPECT_EQ(executor_.timers(), 1u);
    executor_.Advance(milliseconds(delay - 1));
    EXPECT_EQ(peer_.dialed().size(), dials) << delay;
    executor_.Advance(milliseconds(1));
    EXPECT_EQ(peer_.dialed().size(), ++dials) << delay;
  }
  EXPECT_EQ(changes_, 0);
}

TEST_F(DriverInstanceTest, AConnectionStartsTheBackOffAnew) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  instance_->Start();
  executor_.Advance(milliseconds(50 + 100));
  peer_.set_dial_status(absl::OkStatus());
  executor_.Advance(milliseconds(200));
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(instance_->Info().last_error, "");
  EXPECT_EQ(executor_.timers(), 0u);

  peer_.set_dial_status(UnavailableError("gone"));
  peer_.HangUp(0);
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kBackingOff);
  executor_.Advance(milliseconds(49));
  EXPECT_EQ(peer_.dialed().size(), 4u);
  executor_.Advance(milliseconds(1));
  EXPECT_EQ(peer_.dialed().size(), 5u);
}

// Each call used to double the delay, up to 30 s without a dial of our own.
TEST_F(DriverInstanceTest, CallsThatCannotConnectDoNotPutOffTheNextDial) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  instance_->Start();
  for (int i = 0; i < 10; ++i) Call();
  executor_.RunPending();
  EXPECT_EQ(peer_.dialed().size(), 11u);
  EXPECT_EQ(executor_.timers(), 1u);
  executor_.Advance(milliseconds(49));
  EXPECT_EQ(peer_.dialed().size(), 11u);
  executor_.Advance(milliseconds(1));
  EXPECT_EQ(peer_.dialed().size(), 12u);
  Call();
  executor_.Advance(milliseconds(99));
  EXPECT_EQ(peer_.dialed().size(), 13u);
  executor_.Advance(milliseconds(1));
  EXPECT_EQ(peer_.dialed().size(), 14u);
}

TEST_F(DriverInstanceTest, DialsAgainAfterAHangUp) {
  instance_->Start();
  peer_.HangUp(0);
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);  // not told yet
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kBackingOff);
  EXPECT_EQ(instance_->Info().last_error, "the driver hung up");
  EXPECT_EQ(peer_.open(), 0);
  executor_.Advance(milliseconds(50));
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(changes_, 3);
  EXPECT_EQ(peer_.open(), 1);
}

TEST_F(DriverInstanceTest, ACallDoesNotWaitForTheBackOff) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  instance_->Start();
  executor_.Advance(milliseconds(10'000));
  peer_.set_dial_status(absl::OkStatus());
  Call();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(peer_.calls().size(), 1u);
  EXPECT_EQ(executor_.timers(), 0u);
  peer_.Answer(0, "fine");
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0], IsOk());
}

TEST_F(DriverInstanceTest, ACallFailsAtOnceWhenTheDialFails) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  instance_->Start();
  Call();
  EXPECT_EQ(peer_.dialed().size(), 2u);
  EXPECT_THAT(answers_, IsEmpty());  // later, as all completions
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0],
              StatusIs(absl::StatusCode::kUnavailable,
                       "DRA driver d.example.com is not connected at "
                       "'/d.sock': nobody listens"));
  EXPECT_EQ(executor_.timers(), 1u);
}

// A driver that restarted between two calls is not taken for a dead one.
TEST_F(DriverInstanceTest, ACallNoticesAHangUpThatWasNotToldYet) {
  instance_->Start();
  peer_.HangUpSilently(0);
  Call();
  EXPECT_EQ(changes_, 3);
  ASSERT_EQ(peer_.calls().size(), 1u);
  EXPECT_EQ(peer_.calls()[0].connection, 1u);
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(DriverInstanceTest, AHangUpOfAnOlderConnectionIsIgnored) {
  instance_->Start();
  peer_.HangUpSilently(0);
  Call();
  peer_.TellHangUp(0);
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(peer_.open(), 1);
  peer_.Answer(0, "fine");
  executor_.RunPending();
  EXPECT_THAT(answers_.at(0), IsOk());
}

// Calls that end with their connection were once told to be Cancelled, which
// their callers took for their own wish, and did not try again.
TEST_F(DriverInstanceTest, CallsUnderWayAtAHangUpMayWorkLater) {
  instance_->Start();
  Call();
  peer_.HangUp(0);
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0],
              StatusIs(absl::StatusCode::kUnavailable,
                       "DRA driver d.example.com hung up during the call; it "
                       "may or may not have acted"));
  EXPECT_EQ(instance_->Info().last_error, "the driver hung up");
}

TEST_F(DriverInstanceTest, ALateEndOfALostCallDoesNotBlemishTheNewConnection) {
  instance_->Start();
  Call();
  peer_.HangUpSilently(0);
  Call();
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0],
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("hung up")));
  EXPECT_EQ(instance_->Info().last_error, "");
  EXPECT_EQ(instance_->Info().state, "Connected");
}

TEST_F(DriverInstanceTest, MoreCallsThanTheLimitAreRefused) {
  Make({milliseconds(1'000), 2});
  instance_->Start();
  Call();
  Call();
  Call();
  executor_.RunPending();
  EXPECT_EQ(peer_.calls().size(), 2u);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0],
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(kDriver), HasSubstr("2 calls"))));
  peer_.Answer(0, "fine");
  executor_.RunPending();
  Call();
  EXPECT_EQ(peer_.calls().size(), 3u);
}

TEST_F(DriverInstanceTest, CallsOfALostConnectionDoNotCountForEver) {
  Make({milliseconds(1'000), 1});
  instance_->Start();
  for (int i = 0; i < 3; ++i) {
    Call();
    EXPECT_EQ(peer_.calls().size(), std::size_t(i) + 1);
    peer_.HangUp(i);
    executor_.Advance(milliseconds(50));
    EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  }
}

TEST_F(DriverInstanceTest, CloseEndsCallsAndIsFinal) {
  instance_->Start();
  Call();
  instance_->Close();
  EXPECT_EQ(instance_->state(), InstanceState::kClosed);
  EXPECT_EQ(peer_.open(), 0);
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0], StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("was deregistered during")));
  Call();
  peer_.TellHangUp(0);
  executor_.Advance(milliseconds(120'000));
  EXPECT_THAT(answers_.at(1), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(peer_.dialed().size(), 1u);
  EXPECT_EQ(executor_.timers(), 0u);
}

// DRA-028
TEST_F(DriverInstanceTest, CloseStopsTheBackOff) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  instance_->Start();
  instance_->Close();
  EXPECT_EQ(executor_.timers(), 0u);
  executor_.Advance(milliseconds(1'000));
  EXPECT_EQ(peer_.dialed().size(), 1u);
}

TEST_F(DriverInstanceTest, CompletionsOutliveTheInstance) {
  instance_->Start();
  Call();
  instance_.reset();
  executor_.Advance(milliseconds(1'000));
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0], StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("was deregistered during")));
  EXPECT_EQ(peer_.open(), 0);
}

TEST_F(DriverInstanceTest, TellsAboutItself) {
  instance_->Start();
  const PluginInfo info = instance_->Info();
  EXPECT_EQ(info.name, kDriver);
  EXPECT_EQ(info.kind, "dra");
  EXPECT_EQ(info.endpoint, "/d.sock");
  EXPECT_EQ(info.version, "v1.DRAPlugin");
  EXPECT_EQ(info.state, "Connected");
}

}  // namespace
}  // namespace devmgr::dra
