// SPDX-License-Identifier: Apache-2.0
//
// The table of instance_machine.h walked by the real instance: every state,
// everything that can happen there, over several connections, whose late news
// must change nothing.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "dra/driver_instance.h"
#include "support/builders.h"
#include "support/fake_connection.h"
#include "support/random_lives.h"

namespace devmgr::dra {
namespace {

using std::chrono::milliseconds;

/// What can be done to an instance. Events of dialling follow from it.
const std::vector<InstanceEvent> kDone = {
    InstanceEvent::kHungUp, InstanceEvent::kRetryDue, InstanceEvent::kCalled,
    InstanceEvent::kDeregistered};

/// An instance and its far end.
class InstanceWalk {
 public:
  InstanceWalk()
      : instance_(std::make_shared<DriverInstance>(
            executor_,
            [this](const auto& socket, auto on_hang_up) {
              auto connection = peer_.Dial(socket, std::move(on_hang_up));
              if (connection.ok()) ++lines_;
              return connection;
            },
            InstanceOptions(), kDriver, "/d.sock", ApiVersions().front(),
            WallTime(),
            std::make_shared<peer::FlapGuard>(peer::FlapOptions{
                1'000'000, milliseconds(1), milliseconds(1), milliseconds(1)}),
            [this](DriverInstance::Change change) {
              changes_.push_back(change);
            })) {
    SetAnswering(true);
  }

  /// Whether who listens answers from now on.
  void SetAnswering(bool answering) {
    answering_ = answering;
    answering ? peer_.AnswerProbes("") : peer_.RecordProbes();
  }

  /// Whether dials succeed from now on.
  void SetListening(bool listening) {
    listening_ = listening;
    peer_.set_dial_status(listening ? absl::OkStatus()
                                    : UnavailableError("nobody listens"));
  }

  void Start() {
    expected_ = AfterDial();
    instance_->Start();
    executor_.RunPending();
    Check("start");
  }

  /// Does `event` to the instance, and moves on in the table.
  void Do(InstanceEvent event) {
    const InstanceState before = expected_;
    const bool had_line = peer_.open() > 0;
    // Without a connection nobody can hang up.
    if (event != InstanceEvent::kHungUp || had_line) {
      expected_ = Next(before, event);
    }
    const bool dials = before == InstanceState::kBackingOff &&
                       expected_ == InstanceState::kConnecting;
    if (dials) expected_ = AfterDial();
    Perform(event);
    const std::string step = std::string(InstanceStateName(before)) + " x " +
                             std::string(InstanceEventName(event));
    Check(step);
    TellOldNews();
    Check("old news after " + step);
  }

  InstanceState state() const { return expected_; }
  int lines() const { return lines_; }

 private:
  InstanceState AfterDial() const {
    if (listening_ && !answering_) return InstanceState::kConnecting;
    return Next(InstanceState::kConnecting, listening_
                                                ? InstanceEvent::kAnswered
                                                : InstanceEvent::kDialFailed);
  }

  void Perform(InstanceEvent event) {
    switch (event) {
      case InstanceEvent::kHungUp:
        if (lines_ > 0) peer_.HangUp(lines_ - 1);
        break;
      case InstanceEvent::kRetryDue:
        executor_.Advance(DriverInstance::kLastRetry);
        break;
      case InstanceEvent::kCalled:
        executor_.Advance(DriverInstance::kCallDial);
        ++calls_;
        instance_->Call(
            "/a.B/C", std::string("request"),
            [this](const absl::StatusOr<std::string>&) { ++answers_; });
        break;
      case InstanceEvent::kDeregistered:
        instance_->Close();
        break;
      default:
        FAIL() << "follows from others";
    }
    executor_.RunPending();
  }

  /// What the connections before this one still have to say.
  void TellOldNews() {
    for (int line = 0; line + 1 < lines_; ++line) peer_.TellHangUp(line);
    executor_.RunPending();
  }

  void Check(const std::string& step) {
    using enum InstanceState;
    ASSERT_EQ(InstanceStateName(instance_->state()),
              InstanceStateName(expected_))
        << step;
    const bool connected = expected_ == kConnected;
    const bool open = connected || expected_ == kConnecting;
    EXPECT_EQ(peer_.open(), open ? 1 : 0) << step;
    EXPECT_EQ(instance_->connection() != nullptr, open) << step;
    if (expected_ == kBackingOff) {
      EXPECT_EQ(executor_.timers(), 1u) << step;
    } else if (expected_ != kConnecting) {
      EXPECT_EQ(executor_.timers(), 0u) << step;
    }
    // Told of each connection that was answered, and of its end; its end by us
    // tells nobody.
    if (expected_ != kClosed) {
      const bool gained = !changes_.empty() &&
                          changes_.back() == DriverInstance::Change::kGained;
      EXPECT_EQ(gained, connected) << step;
    }
    // Only what was sent over a connection that is there is still open.
    if (!open) {
      EXPECT_EQ(answers_, calls_) << step;
    }
  }

  ManualExecutor executor_;
  FakePeer peer_;
  std::shared_ptr<DriverInstance> instance_;
  bool listening_ = true;
  bool answering_ = true;
  int lines_ = 0;  ///< Connections made.
  std::vector<DriverInstance::Change> changes_;
  int calls_ = 0;
  int answers_ = 0;
  InstanceState expected_ = InstanceState::kConnecting;
};

/// Brings an instance to a state, on its third connection or attempt.
void BringTo(InstanceState state, InstanceWalk* walk) {
  walk->Start();
  for (int i = 0; i < 2; ++i) {
    walk->Do(InstanceEvent::kHungUp);
    walk->Do(InstanceEvent::kRetryDue);
  }
  if (state == InstanceState::kBackingOff) walk->Do(InstanceEvent::kHungUp);
  if (state == InstanceState::kConnecting) {
    walk->SetAnswering(false);
    walk->Do(InstanceEvent::kHungUp);
    walk->Do(InstanceEvent::kRetryDue);
  }
  if (state == InstanceState::kClosed) walk->Do(InstanceEvent::kDeregistered);
  ASSERT_EQ(walk->state(), state);
}

TEST(InstanceWalkTest, EverythingThatCanHappenInEveryStateFollowsTheTable) {
  for (const InstanceState state :
       {InstanceState::kConnecting, InstanceState::kConnected,
        InstanceState::kBackingOff, InstanceState::kClosed}) {
    for (const InstanceEvent event : kDone) {
      for (const bool listening : {true, false}) {
        InstanceWalk walk;
        BringTo(state, &walk);
        walk.SetListening(listening);
        walk.Do(event);
        // And goes on as if nothing had been.
        walk.SetListening(true);
        walk.SetAnswering(true);
        walk.Do(InstanceEvent::kRetryDue);
        walk.Do(InstanceEvent::kCalled);
      }
    }
  }
}

TEST(InstanceWalkTest, TheFirstDialMayFail) {
  InstanceWalk walk;
  walk.SetListening(false);
  walk.Start();
  EXPECT_EQ(walk.state(), InstanceState::kBackingOff);
  walk.SetListening(true);
  walk.Do(InstanceEvent::kRetryDue);
  EXPECT_EQ(walk.state(), InstanceState::kConnected);
}

TEST(InstanceWalkTest, LongWalksFollowTheTableThroughManyConnections) {
  int connections = 0;
  const bool whole = LiveEach({20'261, 50}, [&](Luck& luck) {
    InstanceWalk walk;
    walk.Start();
    const auto step = [&](InstanceEvent event) {
      return RandomStep(InstanceEventName(event), 1, [&, event] {
        walk.SetListening(luck.Below(3) != 0);
        walk.SetAnswering(luck.Below(3) != 0);
        walk.Do(event);
      });
    };
    TakeSteps(60, luck,
              {step(InstanceEvent::kHungUp), step(InstanceEvent::kRetryDue),
               step(InstanceEvent::kCalled)});
    connections += walk.lines();
    walk.Do(InstanceEvent::kDeregistered);
    for (const InstanceEvent event : kDone) walk.Do(event);
  });
  if (whole) {
    EXPECT_GT(connections, 500);
  }
}

}  // namespace
}  // namespace devmgr::dra
