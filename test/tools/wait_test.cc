// SPDX-License-Identifier: Apache-2.0
//
// wait, prepare and release. Time passes only in waits and pauses.
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WaitTest : public CommandLineTest {
 protected:
  void SetUp() override {
    node_.on_wait = [this](milliseconds wait) { Pass(wait); };
  }

  /// The next wait ends soon, with the pod in this state.
  void BecomesNext(PodInfo pod) {
    node_.on_wait = [this, pod](milliseconds wait) {
      Pass(std::min<milliseconds>(wait, seconds(1)));
      node_.pods = {pod};
      ++node_.version;
    };
  }

  Result WaitFor(const std::string& condition,
                 const std::string& timeout = "20s") {
    return Run(
        {"wait", "pod", "p", "--for=" + condition, "--timeout", timeout});
  }

  milliseconds Elapsed() const {
    return std::chrono::duration_cast<milliseconds>(steady_now_ - start_);
  }

  const std::chrono::steady_clock::time_point start_ = steady_now_;
};

TEST_F(WaitTest, HoldsAtOnce) {
  const std::pair<const char*, PodState> table[] = {
      {"ready", PodState::kReady},
      {"waiting", PodState::kWaiting},
      {"rejected", PodState::kRejected}};
  for (const auto& [condition, state] : table) {
    node_.pods = {MakePod("default", "p", state)};
    const Result result = WaitFor(condition);
    EXPECT_EQ(result.code, 0) << condition << ": " << result.err;
    EXPECT_EQ(result.out,
              "pod 'default/p' is " + std::string(condition) + "\n");
  }
  node_.pods = {MakePod("default", "p", PodState::kWaiting)};
  node_.pods[0].reason = kFinishedReason;
  EXPECT_EQ(WaitFor("released").code, 0) << "its manifest may stay";
  node_.pods.clear();
  EXPECT_EQ(WaitFor("released").code, 0);
  EXPECT_EQ(Elapsed(), milliseconds(0));
}

TEST_F(WaitTest, PodNotKnownYetIsWaitedFor) {
  BecomesNext(MakePod("default", "p", PodState::kReady));
  const Result result = WaitFor("ready");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Elapsed(), seconds(1));
}

TEST_F(WaitTest, TimedOutSaysWhatTheStateIs) {
  PodInfo pod = MakePod("default", "p", PodState::kWaiting);
  pod.reason = "ClaimNotFound";
  node_.pods = {pod};
  const Result result = WaitFor("ready");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("timed out after 20s"),
                                HasSubstr("Waiting: ClaimNotFound")));
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_EQ(Elapsed(), seconds(20));
  node_.pods.clear();
  EXPECT_EQ(WaitFor("ready", "500ms").code, 1);
  node_.pods = {pod};
  EXPECT_EQ(WaitFor("released", "500ms").code, 1);
}

TEST_F(WaitTest, RejectionEndsTheWaitForReadyAtOnce) {
  PodInfo pod = MakePod("default", "p", PodState::kRejected);
  pod.reason = "InvalidPod";
  pod.message = "claim 'nope' is not declared";
  node_.pods = {pod};
  const Result result = WaitFor("ready");
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("Rejected: InvalidPod"), HasSubstr("'nope'")));
  EXPECT_EQ(Elapsed(), milliseconds(0));
}

TEST_F(WaitTest, ConnectingIsPartOfTheWait) {
  connect_error_ = absl::UnavailableError("nobody there");
  node_.pods = {MakePod("default", "p", PodState::kReady)};
  on_pause_ = [this] {
    if (Elapsed() >= seconds(3)) connect_error_ = absl::OkStatus();
  };
  EXPECT_EQ(WaitFor("ready").code, 0);
  EXPECT_EQ(Elapsed(), seconds(3));
}

TEST_F(WaitTest, NeverConnectedIsUnreachable) {
  connect_error_ = absl::UnavailableError("nobody there");
  const Result result = WaitFor("released", "5s");
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, AllOf(HasSubstr("5s"), HasSubstr("nobody there")));
  EXPECT_EQ(Elapsed(), seconds(5));
  for (const milliseconds timeout : timeouts_) {
    EXPECT_LE(timeout, seconds(2));
    EXPECT_GT(timeout, milliseconds(0));
  }
  // A daemon that accepts and stays silent was not reached either.
  connect_error_ = absl::OkStatus();
  node_.health = absl::DeadlineExceededError("silent");
  EXPECT_EQ(WaitFor("ready", "5s").code, 4);
}

TEST_F(WaitTest, ForbiddenSocketEndsTheWait) {
  connect_error_ = absl::PermissionDeniedError("not yours");
  EXPECT_EQ(WaitFor("ready").code, 5);
  EXPECT_EQ(Elapsed(), milliseconds(0));
}

TEST_F(WaitTest, SurvivesARestartOfTheDaemon) {
  node_.on_wait = [this](milliseconds) {
    Pass(seconds(1));
    node_.health = absl::UnavailableError("gone");
  };
  on_pause_ = [this] {
    node_.health = absl::OkStatus();
    node_.pods = {MakePod("default", "p", PodState::kReady)};
  };
  const Result result = WaitFor("ready");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(endpoints_.size(), 2u);
}

TEST_F(WaitTest, LostForGoodIsATimeOut) {
  node_.on_wait = [this](milliseconds) {
    Pass(seconds(1));
    node_.health = absl::UnavailableError("gone");
  };
  EXPECT_EQ(WaitFor("ready", "5s").code, 1);
}

TEST_F(WaitTest, DefaultIsThirtySecondsAndZeroIsNoLimit) {
  EXPECT_EQ(Run({"wait", "pod", "p", "--for=ready"}).code, 1);
  EXPECT_EQ(Elapsed(), seconds(30));
  int waits = 0;
  node_.on_wait = [&](milliseconds wait) {
    Pass(wait);
    if (++waits == 10) {
      node_.pods = {MakePod("default", "p", PodState::kReady)};
    }
  };
  EXPECT_EQ(WaitFor("ready", "0").code, 0);
  EXPECT_EQ(waits, 10);
}

TEST_F(WaitTest, PrepareAsksAndWaits) {
  std::vector<std::string> asked;
  node_.on_prepare = [&](const ObjectName& name) {
    asked.push_back(name.ToString());
    BecomesNext(MakePod("default", "p", PodState::kReady));
    return absl::OkStatus();
  };
  const Result result = Run({"prepare", "pod", "p"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(asked, ::testing::ElementsAre("default/p"));
  EXPECT_EQ(Elapsed(), seconds(1));
}

TEST_F(WaitTest, PrepareEndsWithARejection) {
  node_.on_prepare = [&](const ObjectName&) {
    BecomesNext(MakePod("default", "p", PodState::kRejected));
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"prepare", "pod", "p"}).code, 1);
}

TEST_F(WaitTest, PrepareTellsWhatTheDaemonSays) {
  node_.on_prepare = [](const ObjectName&) {
    return absl::FailedPreconditionError("start it with 'actuate: embedder'");
  };
  const Result refused = Run({"prepare", "pod", "p"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("actuate: embedder"));
  node_.on_prepare = [](const ObjectName&) {
    return absl::NotFoundError("not in the source");
  };
  EXPECT_EQ(Run({"prepare", "pod", "p"}).code, 3);
  connect_error_ = absl::UnavailableError("down");
  EXPECT_EQ(Run({"prepare", "pod", "p"}).code, 4);
  EXPECT_EQ(Elapsed(), milliseconds(0));
}

TEST_F(WaitTest, ReleaseEndsWhenTheLedgerForgot) {
  node_.pods = {MakePod("default", "p", PodState::kReady)};
  PodInfo left = MakePod("default", "p", PodState::kWaiting);
  left.reason = std::string(kNotRequestedReason);
  node_.on_release = [&](const ObjectName&) {
    // The source keeps the pod.
    BecomesNext(left);
    return absl::OkStatus();
  };
  EXPECT_EQ(Run({"release", "pod", "p"}).code, 0);
  EXPECT_EQ(Elapsed(), seconds(1));
  node_.pods.clear();
  EXPECT_EQ(Run({"release", "pod", "p"}).code, 3);
}

TEST_F(WaitTest, ReleaseThatDoesNotEndIsATimeOut) {
  node_.pods = {MakePod("default", "p", PodState::kReleasing)};
  node_.on_release = [](const ObjectName&) { return absl::OkStatus(); };
  const Result result = Run({"release", "pod", "p", "--timeout", "2s"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("Releasing"));
}

}  // namespace
}  // namespace devmgr::ctl
