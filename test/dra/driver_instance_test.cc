// SPDX-License-Identifier: Apache-2.0
#include "dra/driver_instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/peer_status.h"
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

using Change = DriverInstance::Change;

class DriverInstanceTest : public testing::Test {
 protected:
  void SetUp() override {
    Make({});
    peer_.AnswerProbes("");
  }

  void Make(InstanceOptions options) {
    instance_ = std::make_shared<DriverInstance>(
        executor_,
        [this](const auto& socket, auto on_hang_up) {
          return peer_.Dial(socket, std::move(on_hang_up));
        },
        options, kDriver, "/d.sock", ApiVersions().front(), WallTime(), guard_,
        [this](DriverInstance::Change change) { changes_.push_back(change); });
  }
  void Start() {
    Info();  // What is shown before does not stay.
    instance_->Start();
    executor_.RunPending();
  }
  PluginInfo Info() { return *instance_->Shown(WallTime(), false); }
  /// The driver goes away `times` times after it has answered, and is back as
  /// soon as it is looked for.
  void Flap(int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(instance_->state(), InstanceState::kConnected) << i;
      peer_.HangUp(lines() - 1);
      executor_.RunPending();
      WaitForDial();
    }
  }
  /// Until the next dial of the instance's own; how long that took.
  milliseconds WaitForDial() {
    const std::size_t before = peer_.dialed().size();
    milliseconds waited(0);
    for (; peer_.dialed().size() == before; ++waited) {
      executor_.Advance(milliseconds(1));
      if (waited > DriverInstance::kLastRetry) return waited;
    }
    executor_.RunPending();
    return waited;
  }
  /// Connections made, where each dial was taken.
  std::size_t lines() const { return peer_.dialed().size(); }

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
  const std::shared_ptr<peer::FlapGuard> guard_ =
      std::make_shared<peer::FlapGuard>(peer::FlapOptions());
  std::vector<DriverInstance::Change> changes_;
  std::vector<absl::StatusOr<std::string>> answers_;
};

TEST_F(DriverInstanceTest, ConnectsAtOnce) {
  EXPECT_EQ(instance_->state(), InstanceState::kConnecting);
  Start();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_THAT(peer_.dialed(), ElementsAre("/d.sock"));
  EXPECT_THAT(changes_, ElementsAre(Change::kGained));
  EXPECT_EQ(executor_.timers(), 0u);
}

// DRA-024, DRA-027
TEST_F(DriverInstanceTest, CallsOverTheOneConnectionWithTheLimit) {
  Make({milliseconds(1'234), 64});
  Start();
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
  EXPECT_EQ(Info().last_error, "late");
}

TEST_F(DriverInstanceTest, DialsAgainWithABackOffThatDoublesTo30Seconds) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  Start();
  EXPECT_EQ(instance_->state(), InstanceState::kBackingOff);
  EXPECT_EQ(Info().last_error, "nobody listens");
  std::size_t dials = 1;
  for (const int delay : {50, 100, 200, 400, 800, 1'600, 3'200, 6'400, 12'800,
                          25'600, 30'000, 30'000, 30'000}) {
    EXPECT_EQ(executor_.timers(), 1u);
    executor_.Advance(milliseconds(delay - 1));
    EXPECT_EQ(peer_.dialed().size(), dials) << delay;
    executor_.Advance(milliseconds(1));
    EXPECT_EQ(peer_.dialed().size(), ++dials) << delay;
  }
  EXPECT_THAT(changes_, IsEmpty());
}

TEST_F(DriverInstanceTest, AnAnswerStartsTheBackOffAnew) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  Start();
  executor_.Advance(milliseconds(50 + 100));
  peer_.set_dial_status(absl::OkStatus());
  executor_.Advance(milliseconds(200));
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(Info().last_error, "");
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

// Each call used to dial, and at first to double the delay as well.
TEST_F(DriverInstanceTest, CallsDialOnceASecondWhereNobodyAnswers) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  Start();
  executor_.Advance(milliseconds(12'750));
  const std::size_t dials = peer_.dialed().size();
  for (int i = 0; i < 100; ++i) {
    Call();
    executor_.Advance(milliseconds(50));
  }
  EXPECT_EQ(peer_.dialed().size(), dials + 4);
  EXPECT_EQ(answers_.size(), 100u);
  // The instance's own next attempt is neither put off nor brought forward.
  EXPECT_EQ(WaitForDial(), milliseconds(12'800 - 5'000));
}

TEST_F(DriverInstanceTest, DialsAgainAfterAHangUp) {
  Start();
  peer_.HangUp(0);
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);  // not told yet
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kBackingOff);
  EXPECT_EQ(Info().last_error, "the driver hung up");
  EXPECT_EQ(peer_.open(), 0);
  executor_.Advance(milliseconds(50));
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_THAT(changes_,
              ElementsAre(Change::kGained, Change::kLost, Change::kGained));
  EXPECT_EQ(peer_.open(), 1);
}

TEST_F(DriverInstanceTest, ACallDoesNotWaitForTheBackOff) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  Start();
  executor_.Advance(milliseconds(10'000));
  peer_.set_dial_status(absl::OkStatus());
  Call();
  EXPECT_EQ(peer_.calls().size(), 1u);
  peer_.Answer(0, "fine");
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(executor_.timers(), 0u);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0], IsOk());
}

TEST_F(DriverInstanceTest, ACallFailsAtOnceWhenTheDialFails) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  Start();
  executor_.Advance(milliseconds(1'600));
  const std::size_t dials = peer_.dialed().size();
  Call();
  EXPECT_EQ(peer_.dialed().size(), dials);
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
  Start();
  peer_.HangUpSilently(0);
  Call();
  ASSERT_EQ(peer_.calls().size(), 1u);
  EXPECT_EQ(peer_.calls()[0].connection, 1u);
  executor_.RunPending();
  EXPECT_THAT(changes_,
              ElementsAre(Change::kGained, Change::kLost, Change::kGained));
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(DriverInstanceTest, AHangUpOfAnOlderConnectionIsIgnored) {
  Start();
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
  Start();
  Call();
  peer_.HangUp(0);
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0],
              StatusIs(absl::StatusCode::kUnavailable,
                       "DRA driver d.example.com at '/d.sock' went away during "
                       "the call; it may or may not have acted"));
  EXPECT_EQ(Info().last_error, "the driver hung up");
}

TEST_F(DriverInstanceTest, ALateEndOfALostCallDoesNotBlemishTheNewConnection) {
  Start();
  Call();
  peer_.HangUpSilently(0);
  Call();
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0],
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("went away")));
  EXPECT_EQ(Info().last_error, "");
  EXPECT_EQ(Info().state, PluginState::kConnected);
}

TEST_F(DriverInstanceTest, MoreCallsThanTheLimitWaitForTheOthers) {
  Make({milliseconds(1'000), 2});
  Start();
  for (int i = 0; i < 2 + 256 + 1; ++i) Call();
  executor_.RunPending();
  EXPECT_EQ(peer_.calls().size(), 2u);
  EXPECT_EQ(Info().calls, 2);
  EXPECT_EQ(Info().queued, 256);
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0],
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(kDriver), HasSubstr("2 calls"))));
  peer_.Answer(0, "fine");
  executor_.RunPending();
  EXPECT_EQ(peer_.calls().size(), 3u);
}

TEST_F(DriverInstanceTest, CallsOfALostConnectionDoNotCountForEver) {
  Make({milliseconds(1'000), 1});
  Start();
  for (int i = 0; i < 3; ++i) {
    Call();
    EXPECT_EQ(peer_.calls().size(), std::size_t(i) + 1);
    peer_.HangUp(i);
    executor_.Advance(milliseconds(50));
    EXPECT_EQ(instance_->state(), InstanceState::kConnected);
    EXPECT_EQ(Info().calls, 0);
  }
}

TEST_F(DriverInstanceTest, CloseEndsCallsAndIsFinal) {
  Start();
  Call();
  instance_->Close();
  EXPECT_EQ(instance_->state(), InstanceState::kClosed);
  EXPECT_EQ(peer_.open(), 0);
  executor_.RunPending();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0], StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("went away during")));
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
  Start();
  instance_->Close();
  EXPECT_EQ(executor_.timers(), 0u);
  executor_.Advance(milliseconds(1'000));
  EXPECT_EQ(peer_.dialed().size(), 1u);
}

TEST_F(DriverInstanceTest, CompletionsOutliveTheInstance) {
  Start();
  Call();
  instance_.reset();
  executor_.Advance(milliseconds(1'000));
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0], StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("went away during")));
  EXPECT_EQ(peer_.open(), 0);
}

TEST_F(DriverInstanceTest, TellsAboutItself) {
  Start();
  const PluginInfo info = Info();
  EXPECT_EQ(info.name, kDriver);
  EXPECT_EQ(info.kind, PluginKind::kDra);
  EXPECT_EQ(info.endpoint, "/d.sock");
  EXPECT_EQ(info.version, "v1.DRAPlugin");
  EXPECT_EQ(info.state, PluginState::kConnected);
  EXPECT_FALSE(info.serves);
  EXPECT_EQ(instance_->Shown(WallTime(), false),
            instance_->Shown(WallTime(), false));  // not made anew
  EXPECT_TRUE(instance_->Shown(WallTime(), true)->serves);
}

// A process that hangs, or is none of a driver, listens as well.
TEST_F(DriverInstanceTest, ASocketThatIsSilentIsNotConnected) {
  peer_.RecordProbes();
  Start();
  EXPECT_EQ(instance_->state(), InstanceState::kConnecting);
  EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kNotAnswered);
  EXPECT_TRUE(instance_->MayAnswer());  // For the time of a call.
  ASSERT_EQ(peer_.calls().size(), 1u);
  EXPECT_EQ(peer_.calls()[0].method,
            "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources");
  EXPECT_EQ(peer_.calls()[0].request, "");
  EXPECT_EQ(peer_.calls()[0].timeout, milliseconds(45'000));
  peer_.Answer(0, DeadlineExceededError("Deadline Exceeded"));
  executor_.RunPending();
  EXPECT_FALSE(instance_->MayAnswer());
  EXPECT_THAT(changes_, ElementsAre(Change::kLost));
  EXPECT_THAT(Info().last_error,
              HasSubstr("has not answered a call within 45 s"));
}

TEST_F(DriverInstanceTest, ASilentSocketIsProbedOverOneConnectionNowAndThen) {
  peer_.RecordProbes();
  Start();
  std::size_t answered = 0;
  for (int second = 0; second < 3'600; ++second) {
    for (; answered < peer_.calls().size(); ++answered) {
      peer_.Answer(answered, DeadlineExceededError("Deadline Exceeded"));
    }
    executor_.Advance(milliseconds(1'000));
  }
  EXPECT_EQ(peer_.dialed().size(), 1u);
  EXPECT_LT(answered, 20u);
  EXPECT_GT(answered, 10u);
  EXPECT_THAT(changes_, ElementsAre(Change::kLost));
  // Also then it is heard.
  executor_.Advance(milliseconds(300'000));
  ASSERT_GT(peer_.calls().size(), answered);
  peer_.Answer(answered, "");
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(Info().breaker, PluginBreaker::kClosed);
  EXPECT_EQ(changes_.back(), Change::kGained);
}

TEST_F(DriverInstanceTest, ADriverWhoseFirstAnswerTakesLongIsConnectedThen) {
  peer_.RecordProbes();
  Start();
  executor_.Advance(milliseconds(30'000));
  EXPECT_TRUE(instance_->MayAnswer());
  peer_.Answer(0, "");
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_THAT(changes_, ElementsAre(Change::kGained));
  EXPECT_EQ(Info().last_error, "");
}

TEST_F(DriverInstanceTest, AnyAnswerShowsThatADriverIsThere) {
  peer_.RecordProbes();
  Start();
  peer_.Answer(0, FromPeer(UnavailableError("still loading")));
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kTrusted);
}

TEST_F(DriverInstanceTest, SoDoesTheAnswerToAnotherCall) {
  peer_.RecordProbes();
  Start();
  Call();
  peer_.Answer(1, FromPeer(InternalError("no such claim")));
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
  EXPECT_EQ(Info().last_error, "no such claim");
  peer_.Answer(0, DeadlineExceededError("Deadline Exceeded"));
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kConnected);
}

// 621 connections a second, before.
TEST_F(DriverInstanceTest,
       ASocketThatHangsUpWithoutAnAnswerIsDialledLessAndLess) {
  peer_.RecordProbes();
  Start();
  for (const int delay : {50, 100, 200, 400, 800, 1'600, 3'200, 6'400, 12'800,
                          25'600, 30'000, 30'000}) {
    peer_.HangUp(lines() - 1);
    executor_.RunPending();
    EXPECT_EQ(instance_->state(), InstanceState::kBackingOff);
    EXPECT_EQ(WaitForDial(), milliseconds(delay));
  }
  EXPECT_THAT(changes_, ElementsAre(Change::kLost));
  EXPECT_THAT(Info().last_error, HasSubstr("hung up without an answer"));
}

TEST_F(DriverInstanceTest, NorDoCallsDialItMoreThanOnceASecond) {
  peer_.RecordProbes();
  Start();
  for (int i = 0; i < 1'000; ++i) {
    if (peer_.open() > 0) peer_.HangUp(lines() - 1);
    Call();
    executor_.Advance(milliseconds(10));
  }
  EXPECT_LT(lines(), 20u);
}

// gRPC gives up on a peer that does not speak HTTP/2.
TEST_F(DriverInstanceTest, AConnectionThatIsOfNoUseIsDropped) {
  peer_.RecordProbes();
  Start();
  peer_.Answer(0, UnavailableError("bad frame"));
  executor_.RunPending();
  EXPECT_EQ(instance_->state(), InstanceState::kBackingOff);
  EXPECT_EQ(peer_.open(), 0);
  EXPECT_EQ(executor_.timers(), 1u);
}

TEST_F(DriverInstanceTest, ADriverThatRestartsIsBackAtOnceAndTrusted) {
  Start();
  for (int i = 0; i < 4; ++i) {
    peer_.HangUp(lines() - 1);
    executor_.RunPending();
    EXPECT_EQ(WaitForDial(), milliseconds(50));
    EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kTrusted);
  }
}

TEST_F(DriverInstanceTest,
       ADriverThatAnswersAndHangsUpTimeAndAgainIsQuarantined) {
  Start();
  Flap(5);
  EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kQuarantined);
  EXPECT_EQ(Info().quarantined_until, WallTime() + milliseconds(60'000 - 50));
  // It is called all the same, but its connections get fewer.
  Call();
  EXPECT_EQ(peer_.calls().size(), 1u);
  const std::size_t before = lines();
  const std::size_t changes = changes_.size();
  for (int i = 0; i < 600; ++i) {
    if (instance_->state() == InstanceState::kConnected) {
      peer_.HangUp(lines() - 1);
    }
    executor_.Advance(milliseconds(1'000));
  }
  EXPECT_LT(lines() - before, 30u);
  EXPECT_LT(changes_.size() - changes, 60u);
  // It holds out.
  while (instance_->state() != InstanceState::kConnected) WaitForDial();
  executor_.Advance(milliseconds(600'001));
  EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kTrusted);
  EXPECT_EQ(changes_.back(), Change::kGained);
  peer_.HangUp(lines() - 1);
  executor_.RunPending();
  EXPECT_EQ(WaitForDial(), milliseconds(50));
}

TEST_F(DriverInstanceTest, ADriverThatIsSilentIsLeftAlone) {
  Start();
  peer_.RecordProbes();
  for (std::size_t i = 0; i < 3; ++i) {
    Call();
    peer_.Answer(i, DeadlineExceededError("Deadline Exceeded"));
    executor_.RunPending();
  }
  EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kLeftAlone);
  EXPECT_EQ(Info().breaker, PluginBreaker::kOpen);
  EXPECT_EQ(changes_.back(), Change::kLost);
  Call();
  executor_.RunPending();
  EXPECT_THAT(answers_.back(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("deadline, the last one of 45 s; "
                                 "it gets no calls for 10 s")));
  // No claim has to wait for a deadline to find out that it is back.
  executor_.Advance(milliseconds(10'000));
  ASSERT_EQ(peer_.calls().size(), 4u);
  EXPECT_EQ(peer_.calls()[3].request, "");
  peer_.Answer(3, "");
  executor_.RunPending();
  EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kTrusted);
  EXPECT_EQ(changes_.back(), Change::kGained);
}

// A driver that gives calls up by itself was taken for one that is silent.
TEST_F(DriverInstanceTest, ADriverThatAnswersWithErrorsIsNotLeftAlone) {
  Start();
  const std::size_t before = changes_.size();
  peer_.RecordProbes();
  for (const absl::Status& own :
       {DeadlineExceededError("slow"), UnavailableError("loading"),
        ResourceExhaustedError("busy"), absl::AbortedError("interrupted")}) {
    for (int i = 0; i < 5; ++i) {
      Call();
      peer_.Answer(peer_.calls().size() - 1, FromPeer(own));
      executor_.RunPending();
      EXPECT_EQ(answers_.back().status(), FromPeer(own));
    }
    EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kTrusted);
    EXPECT_EQ(Info().breaker, PluginBreaker::kClosed);
    EXPECT_EQ(Info().last_error, own.message());
  }
  EXPECT_EQ(changes_.size(), before);
}

// It hung, and was restarted for that.
TEST_F(DriverInstanceTest, ARestartEndsThatAtOnce) {
  Start();
  for (std::size_t i = 0; i < 3; ++i) {
    Call();
    peer_.Answer(i, DeadlineExceededError("Deadline Exceeded"));
    executor_.RunPending();
  }
  peer_.HangUp(0);
  executor_.Advance(milliseconds(50));
  EXPECT_EQ(instance_->standing(), DriverInstance::Standing::kTrusted);
}

}  // namespace
}  // namespace devmgr::dra
