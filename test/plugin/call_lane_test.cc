// SPDX-License-Identifier: Apache-2.0
#include "plugin/call_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "support/fake_connection.h"
#include "support/status_matchers.h"

namespace devmgr::plugin {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class CallLaneTest : public testing::Test {
 protected:
  CallLaneTest() { Connect(); }

  void Connect() {
    connection_ = *peer_.Dial("/p.sock", [] {});
    lane_->Connect(*connection_);
  }
  /// As its owner does it.
  void Disconnect() {
    lane_->Disconnect("the plugin hung up");
    connection_.reset();
  }

  void Call(int timeout_ms = 1'000) {
    lane_->Call({"/p/Allocate", "r", milliseconds(timeout_ms), {}},
                [this](absl::StatusOr<std::string> answer) {
                  answers_.push_back(std::move(answer));
                });
  }
  void Calls(int count) {
    for (int i = 0; i < count; ++i) Call();
  }
  void Answer(std::size_t call, absl::StatusOr<std::string> answer) {
    peer_.Answer(call, std::move(answer));
    executor_.RunPending();
  }
  absl::Status Last() {
    executor_.RunPending();
    return answers_.empty() ? InternalError("no answer")
                            : answers_.back().status();
  }
  std::size_t sent() const { return peer_.calls().size(); }

  ManualExecutor executor_;
  FakePeer peer_;
  int changes_ = 0;
  const std::shared_ptr<CallLane> lane_ = std::make_shared<CallLane>(
      executor_,
      LaneOptions{2, 3, {3, milliseconds(10'000), milliseconds(30'000)}},
      "plugin P", [this] { ++changes_; });
  std::unique_ptr<rpc::Connection> connection_;
  std::vector<absl::StatusOr<std::string>> answers_;
};

TEST_F(CallLaneTest, SendsSoManyAtOnceAndTheRestInOrder) {
  Calls(5);
  EXPECT_EQ(sent(), 2u);
  EXPECT_EQ(lane_->calls(), 2);
  EXPECT_EQ(lane_->queued(), 3);
  Answer(1, "b");
  EXPECT_EQ(sent(), 3u);
  EXPECT_EQ(lane_->queued(), 2);
  for (const std::size_t call : {0u, 2u, 3u, 4u}) Answer(call, "x");
  EXPECT_EQ(answers_.size(), 5u);
  EXPECT_EQ(lane_->calls(), 0);
}

TEST_F(CallLaneTest, RefusesWhatDoesNotFitTheQueue) {
  Calls(6);
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("2 calls under way and 3 waiting")));
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(CallLaneTest, TimeInTheQueueCounts) {
  Calls(2);
  Call(700);
  Call(300);
  executor_.Advance(milliseconds(400));
  Answer(0, "x");
  ASSERT_EQ(sent(), 3u);
  EXPECT_EQ(peer_.calls()[2].timeout, milliseconds(300));
  Answer(1, "x");
  EXPECT_EQ(sent(), 3u);
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("not sent")));
}

TEST_F(CallLaneTest, AHungPluginOpensTheBreakerAndEmptiesTheQueue) {
  Calls(5);
  Answer(0, DeadlineExceededError("late"));
  Answer(1, DeadlineExceededError("late"));
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kClosed);
  EXPECT_EQ(sent(), 4u);
  Answer(2, DeadlineExceededError("late"));
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kOpen);
  EXPECT_EQ(sent(), 4u);
  EXPECT_EQ(changes_, 1);
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("left alone for 10000 ms")));
  EXPECT_EQ(answers_.size(), 4u);
  Call();
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(sent(), 4u);
}

TEST_F(CallLaneTest, OneTrialDecidesAfterThePause) {
  Calls(3);
  for (const std::size_t call : {0u, 1u, 2u}) {
    Answer(call, DeadlineExceededError("late"));
  }
  executor_.Advance(milliseconds(9'999));
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kOpen);
  executor_.Advance(milliseconds(1));
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kHalfOpen);
  EXPECT_EQ(changes_, 2);
  Calls(2);
  EXPECT_EQ(sent(), 4u);
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("one call tries it")));
  Answer(3, DeadlineExceededError("late"));
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kOpen);
  executor_.Advance(milliseconds(20'000));
  Call();
  Answer(4, InvalidArgumentError("no such device"));  // It speaks.
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kClosed);
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(CallLaneTest, TheEndOfTheConnectionEndsAllCalls) {
  Calls(3);
  Disconnect();
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 3u);
  int unknown = 0;
  for (const auto& answer : answers_) {
    if (absl::IsAborted(answer.status())) ++unknown;
  }
  EXPECT_EQ(unknown, 2);  // Those that were sent.
  Call();
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("endpoint <plugin P> has been "
                                         "stopped: the plugin hung up")));
}

TEST_F(CallLaneTest, ALateEndDoesNotTouchTheNextConnection) {
  Calls(2);
  Disconnect();
  Connect();
  Calls(2);
  executor_.RunPending();
  EXPECT_EQ(lane_->calls(), 2);
  Answer(2, "x");
  Answer(3, "x");
  EXPECT_EQ(lane_->calls(), 0);
  EXPECT_EQ(answers_.size(), 4u);
}

TEST_F(CallLaneTest, AHangUpThatGrpcNoticedFirstIsNoAnswer) {
  Call();
  peer_.HangUpSilently(0);
  Answer(0, UnavailableError("Socket closed"));
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kAborted,
                               HasSubstr("may or may not have acted")));
  // The plugin's own word is one.
  Disconnect();
  Connect();
  Call();
  Answer(1, UnavailableError("driver is loading"));
  EXPECT_THAT(Last(),
              StatusIs(absl::StatusCode::kUnavailable, "driver is loading"));
}

}  // namespace
}  // namespace devmgr::plugin
