// SPDX-License-Identifier: Apache-2.0
#include "peer/call_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/peer_status.h"
#include "common/status.h"
#include "support/fake_connection.h"
#include "support/status_matchers.h"

namespace devmgr::peer {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class CallLaneTest : public testing::Test {
 protected:
  CallLaneTest() { Connect(); }

  CallLane::Parts PartsOf() {
    CallLane::Parts parts;
    parts.peer = "plugin P";
    parts.when_gone = "endpoint <plugin P> has been stopped";
    parts.on_change = [this] { ++changes_; };
    parts.on_call = [this](const std::string& method,
                           const absl::Status& status, auto) {
      calls_.push_back(method + " " +
                       std::string(absl::StatusCodeToString(status.code())));
    };
    return parts;
  }
  /// The same, with a lane that can probe.
  void MakeProbing() {
    connection_.reset();
    CallLane::Parts parts = PartsOf();
    parts.probe = []() -> CallLane::Request {
      return {"/p/Probe", "", milliseconds(500), {}};
    };
    lane_ = std::make_shared<CallLane>(
        executor_,
        LaneOptions{2, 3, {3, milliseconds(10'000), milliseconds(30'000)}},
        parts);
    Connect();
  }
  /// Opens the breaker.
  void BeSilent() {
    for (int i = 0; i < 3; ++i) {
      Call();
      Answer(sent() - 1, DeadlineExceededError("late"));
    }
    EXPECT_EQ(lane_->breaker().state(), BreakerState::kOpen);
  }

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
  std::vector<std::string> calls_;  ///< That were sent and are over.
  std::shared_ptr<CallLane> lane_ = std::make_shared<CallLane>(
      executor_,
      LaneOptions{2, 3, {3, milliseconds(10'000), milliseconds(30'000)}},
      PartsOf());
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
                               HasSubstr("deadline of 300 ms; it was not "
                                         "sent")));
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
  EXPECT_THAT(Last(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("deadline, the last one of 1 s; it gets "
                                 "no calls for 10 s")));
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
  EXPECT_THAT(Last(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the last one of 1 s; one call is sent")));
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
  EXPECT_FALSE(IsFromPeer(Last()));
}

TEST_F(CallLaneTest, APeerThatBreaksTheProtocolGaveNoAnswer) {
  Call();
  peer_.HangUpSilently(0);
  Answer(0, InternalError("bad frame"));
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kAborted));
}

// gRPC has the same codes for calls that got lost.
TEST_F(CallLaneTest, WhatThePeerAnswersIsItsAnswer) {
  for (const absl::Status& word :
       {UnavailableError("no card"), ResourceExhaustedError("no memory"),
        DeadlineExceededError("the bus is slow"), CancelledError("reset"),
        AbortedError("conflict")}) {
    for (int i = 0; i < 3; ++i) {
      Call();
      Answer(sent() - 1, FromPeer(word));
      EXPECT_EQ(Last(), FromPeer(word));
    }
    EXPECT_EQ(lane_->breaker().state(), BreakerState::kClosed) << word;
  }
  // Also when it hangs up afterwards.
  Call();
  peer_.HangUpSilently(0);
  Answer(sent() - 1, FromPeer(UnavailableError("no card")));
  EXPECT_EQ(Last(), FromPeer(UnavailableError("no card")));
}

// No call of somebody has to run into its deadline to find out.
TEST_F(CallLaneTest, AProbeTriesAPeerThatWasLeftAlone) {
  MakeProbing();
  BeSilent();
  executor_.Advance(milliseconds(10'000));
  ASSERT_EQ(sent(), 4u);
  EXPECT_EQ(peer_.calls()[3].method, "/p/Probe");
  EXPECT_EQ(peer_.calls()[3].timeout, milliseconds(500));
  Call();
  EXPECT_THAT(Last(), StatusIs(absl::StatusCode::kUnavailable));
  Answer(3, DeadlineExceededError("late"));
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kOpen);
  EXPECT_THAT(MessageOf(lane_->CheckCall()),
              HasSubstr("the last one of 500 ms; it gets no calls for 20 s"));
  executor_.Advance(milliseconds(20'000));
  ASSERT_EQ(sent(), 5u);
  Answer(4, UnimplementedError("no such method"));
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kClosed);
  Call();
  Answer(5, "x");
  EXPECT_THAT(Last(), IsOk());
  EXPECT_EQ(lane_->calls(), 0);
  EXPECT_EQ(calls_.size(), 4u) << "probes are no calls";
}

TEST_F(CallLaneTest, APeerThatAnswersProbesAloneGetsFewCalls) {
  MakeProbing();
  BeSilent();
  executor_.Advance(milliseconds(10'000));
  Answer(3, "");
  Call();
  Answer(4, DeadlineExceededError("late"));
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kOpen);
  EXPECT_EQ(lane_->breaker().pause(), milliseconds(20'000));
}

TEST_F(CallLaneTest, AProbeThatGoesWithItsConnectionDecidesNothing) {
  MakeProbing();
  BeSilent();
  executor_.Advance(milliseconds(10'000));
  Disconnect();
  executor_.RunPending();
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kHalfOpen);
  Connect();
  absl::Status probed;
  lane_->Probe([&](const absl::Status& status) { probed = status; });
  Answer(sent() - 1, "");
  EXPECT_THAT(probed, IsOk());
  EXPECT_EQ(lane_->breaker().state(), BreakerState::kClosed);
}

TEST_F(CallLaneTest, TellsOfCallsThatWereSent) {
  Call();
  Answer(0, DataLossError("x"));
  Disconnect();
  Call();
  executor_.RunPending();
  EXPECT_THAT(calls_, testing::ElementsAre("/p/Allocate DATA_LOSS"));
}

}  // namespace
}  // namespace devmgr::peer
