// SPDX-License-Identifier: Apache-2.0
//
// The order of containers, restarts and ends, held against a runtime that is a
// few values.
#include <devmgr/pod_steps.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace devmgr {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = RuntimeContainer::State;

enum class Kind { kInit, kSidecar, kApp };
struct Planned {
  std::string name;
  Kind kind = Kind::kApp;
};

/// Carries out steps on values; containers end when the test says so.
class PodStepsTest : public ::testing::Test {
 protected:
  void Plan(const std::string& policy, const std::vector<Planned>& planned) {
    Pod pod;
    pod.spec.restart_policy = policy;
    for (const Planned& one : planned) {
      Container container;
      container.name = one.name;
      if (one.kind == Kind::kSidecar) container.restart_policy = "Always";
      auto& list = one.kind == Kind::kApp ? pod.spec.containers
                                          : pod.spec.init_containers;
      list.push_back(container);
    }
    steps_ = PodSteps(pod);
  }

  PodStep Next() { return steps_.Next(run_, now_); }

  /// Takes steps until there is nothing to do; what was done, in words.
  std::string Settle() {
    std::string done;
    for (int i = 0; i < 50; ++i) {
      const std::string phase = steps_.PhaseOf(run_);
      const PodStep step = Next();
      if (step.method.empty() && phase.empty()) return done;
      if (!done.empty()) done += " ";
      if (!phase.empty()) return done + phase;
      done += Take(step);
    }
    return done + " without end";
  }

  std::string Take(const PodStep& step) {
    if (step.method == "RunPodSandbox") {
      run_.sandboxes.push_back({"s" + std::to_string(sandboxes_++), 0, true});
      return run_.sandboxes.back().id;
    }
    if (step.method == "CreateContainer") {
      ContainerRun one;
      one.id = step.what + std::to_string(step.attempt);
      one.name = step.what;
      one.attempt = step.attempt;
      one.state = State::kRunning;
      one.started_at = now_;
      run_.containers.push_back(one);
      return one.id;
    }
    if (step.method == "RemoveContainer") {
      std::erase_if(run_.containers,
                    [&](const auto& one) { return one.id == step.what; });
      return "-" + step.what;
    }
    if (step.method == "RemovePodSandbox") {
      run_ = {};
      return "-" + step.what;
    }
    return "unexpected step " + step.method;
  }

  /// A machine that was off, or a sandbox that died.
  void LoseSandbox() {
    run_.sandboxes[0].ready = false;
    for (ContainerRun& one : run_.containers) {
      if (one.state == State::kRunning) Exit(one.name, 255);
    }
  }

  void Exit(const std::string& name, int code) {
    for (ContainerRun& one : run_.containers) {
      if (one.name != name || one.state != State::kRunning) continue;
      one.state = State::kExited;
      one.exit_code = code;
      one.finished_at = now_;
      return;
    }
    ADD_FAILURE() << name << " does not run";
  }

  PodSteps steps_ = PodSteps(Pod());
  PodRun run_;
  int sandboxes_ = 0;
  WallTime now_ = WallTime(1'000'000s);
};

TEST_F(PodStepsTest, ContainersStartInASandboxInTheirOrder) {
  Plan("Always", {{"a"}, {"b"}});
  EXPECT_EQ(Settle(), "s0 a0 b0");
  EXPECT_FALSE(Next().until.has_value());
}

TEST_F(PodStepsTest, InitContainersRunOneAfterTheOther) {
  Plan("Always", {{"i", Kind::kInit}, {"j", Kind::kInit}, {"a"}});
  EXPECT_EQ(Settle(), "s0 i0");
  Exit("i", 0);
  EXPECT_EQ(Settle(), "j0");
  Exit("j", 0);
  EXPECT_EQ(Settle(), "a0");
  EXPECT_EQ(Settle(), "");
}

TEST_F(PodStepsTest, ASidecarIsPassedOnceItRuns) {
  Plan("Always",
       {{"i", Kind::kInit}, {"s", Kind::kSidecar}, {"j", Kind::kInit}, {"a"}});
  EXPECT_EQ(Settle(), "s0 i0");
  Exit("i", 0);
  EXPECT_EQ(Settle(), "s0 j0");
  Exit("j", 0);
  EXPECT_EQ(Settle(), "a0");
}

TEST_F(PodStepsTest, ASidecarThatEndsIsStartedAgainWhateverThePolicy) {
  Plan("Never", {{"s", Kind::kSidecar}, {"i", Kind::kInit}, {"a"}});
  EXPECT_EQ(Settle(), "s0 s0 i0");
  Exit("s", 0);
  EXPECT_EQ(Settle(), "s1 -s0");  // While the init container runs.
  Exit("s", 1);
  Exit("i", 0);
  EXPECT_EQ(Settle(), "a0");  // Init containers have ended, as for a kubelet.
  EXPECT_EQ(Next().until, now_ + 10s);
  now_ += 10s;
  EXPECT_EQ(Settle(), "s2 -s1");
}

TEST_F(PodStepsTest, ASidecarThatDoesNotRunHoldsUpWhatHasNotBegun) {
  Plan("Never", {{"s", Kind::kSidecar}, {"i", Kind::kInit}, {"a"}});
  Take(Next());
  EXPECT_EQ(Take(Next()), "s0");
  Exit("s", 1);
  EXPECT_EQ(Take(Next()), "s1");
  EXPECT_EQ(Take(Next()), "-s0");
  Exit("s", 1);
  EXPECT_EQ(Settle(), "");
  now_ += 10s;
  EXPECT_EQ(Settle(), "s2 -s1 i0");
}

TEST_F(PodStepsTest, WithNeverAnInitContainerThatFailsIsTheEnd) {
  Plan("Never", {{"i", Kind::kInit}, {"a"}});
  EXPECT_EQ(Settle(), "s0 i0");
  Exit("i", 3);
  EXPECT_EQ(Settle(), "Failed");
}

TEST_F(PodStepsTest, AnInitContainerThatFailsIsRepeatedWithBackOff) {
  Plan("OnFailure", {{"i", Kind::kInit}, {"a"}});
  EXPECT_EQ(Settle(), "s0 i0");
  Exit("i", 3);
  EXPECT_EQ(Settle(), "i1 -i0");  // The first time at once.
  Exit("i", 3);
  EXPECT_EQ(Settle(), "");
  EXPECT_EQ(Next().until, now_ + 10s);
  now_ += 10s;
  EXPECT_EQ(Settle(), "i2 -i1");
  Exit("i", 0);
  EXPECT_EQ(Settle(), "a0");
}

TEST_F(PodStepsTest, BackOffDoublesUpToItsLimitAndIsForgottenAfterALongRun) {
  Plan("Always", {{"a"}});
  EXPECT_EQ(Settle(), "s0 a0");
  for (const auto delay : {0s, 10s, 20s, 40s, 80s, 160s, 300s, 300s}) {
    now_ += 1s;
    Exit("a", 1);
    if (delay > 0s) {
      EXPECT_EQ(Settle(), "");
      EXPECT_EQ(Next().until, now_ + delay);
      now_ += delay - 1ms;
      EXPECT_EQ(Settle(), "");
      now_ += 1ms;
    }
    EXPECT_NE(Settle(), "");
  }
  now_ += 600s;  // Not longer than ten minutes.
  Exit("a", 1);
  EXPECT_EQ(Next().until, now_ + 300s);
  now_ += 300s;
  EXPECT_NE(Settle(), "");
  now_ += 601s;
  Exit("a", 1);
  EXPECT_NE(Settle(), "");
  Exit("a", 1);
  EXPECT_EQ(Next().until, now_ + 10s);
}

TEST_F(PodStepsTest, AClockThatWasSetBackHoldsNothingUp) {
  Plan("Always", {{"a"}});
  Settle();
  Exit("a", 1);
  Settle();
  Exit("a", 1);
  ASSERT_TRUE(Next().until.has_value());
  now_ -= 24h;
  EXPECT_NE(Settle(), "");
}

TEST_F(PodStepsTest, RestartPoliciesDecideAboutTheEnd) {
  struct Case {
    const char* policy;
    int code;
    const char* expected;
  };
  for (const Case& c : {Case{"Always", 0, "a1 -a0"},
                        {"Always", 1, "a1 -a0"},
                        {"OnFailure", 0, "Succeeded"},
                        {"OnFailure", 1, "a1 -a0"},
                        {"Never", 0, "Succeeded"},
                        {"Never", 1, "Failed"}}) {
    run_ = {};
    sandboxes_ = 0;
    Plan(c.policy, {{"a"}});
    Settle();
    Exit("a", c.code);
    EXPECT_EQ(Settle(), c.expected) << c.policy << " " << c.code;
  }
}

TEST_F(PodStepsTest, APodIsOverWhenItsLastContainerIsWhateverSidecarsDo) {
  Plan("Never", {{"s", Kind::kSidecar}, {"a"}, {"b"}});
  EXPECT_EQ(Settle(), "s0 s0 a0 b0");
  Exit("a", 1);
  EXPECT_EQ(Settle(), "");
  Exit("b", 0);
  EXPECT_EQ(Settle(), "Failed");
}

TEST_F(PodStepsTest, ALostSandboxIsReplacedAndInitContainersRunAgain) {
  Plan("Always", {{"i", Kind::kInit}, {"a"}});
  Settle();
  Exit("i", 0);
  EXPECT_EQ(Settle(), "a0");
  LoseSandbox();
  EXPECT_EQ(Settle(), "-s0 s1 i0");
  Exit("i", 0);
  EXPECT_EQ(Settle(), "a0");
}

TEST_F(PodStepsTest, AfterALostSandboxAllBeginsAnewUnlessAllHasSucceeded) {
  Plan("OnFailure", {{"a"}, {"b"}});
  Settle();
  Exit("a", 0);
  LoseSandbox();
  EXPECT_EQ(Settle(), "-s0 s1 a0 b0");
  Exit("a", 0);
  Exit("b", 0);
  LoseSandbox();
  EXPECT_EQ(Settle(), "Succeeded");
}

TEST_F(PodStepsTest, WithNeverALostSandboxIsTheEnd) {
  Plan("Never", {{"a"}, {"b"}});
  EXPECT_EQ(Take(Next()), "s0");
  EXPECT_EQ(Take(Next()), "a0");
  LoseSandbox();
  EXPECT_EQ(Settle(), "Failed");
}

TEST_F(PodStepsTest, WhatWasCreatedAndNotStartedIsMadeAnew) {
  Plan("Always", {{"a"}});
  Settle();
  run_.containers[0].state = State::kCreated;
  EXPECT_EQ(Settle(), "-a0 a0");
}

TEST_F(PodStepsTest, WhatTheRuntimeLostSightOfIsStoppedFirst) {
  Plan("Always", {{"a"}});
  Settle();
  run_.containers[0].state = State::kUnknown;
  EXPECT_EQ(Next().method, "StopContainer");
  EXPECT_EQ(Next().what, "a0");
  run_.sandboxes[0].ready = false;
  EXPECT_EQ(Next().method, "RemovePodSandbox");
}

TEST_F(PodStepsTest, AnEndThatIsNotKnownYetIsWaitedFor) {
  Plan("Never", {{"a"}});
  Settle();
  Exit("a", 1);
  run_.containers[0].finished_at.reset();
  EXPECT_EQ(Settle(), "");
  run_.containers[0].finished_at = now_;
  EXPECT_EQ(Settle(), "Failed");
}

TEST_F(PodStepsTest, AdoptionStartsNothingTwice) {
  Plan("Always", {{"i", Kind::kInit}, {"s", Kind::kSidecar}, {"a"}});
  Settle();
  Exit("i", 0);
  Settle();
  // Another process sees what the runtime has, and nothing else.
  const PodRun before = run_;
  EXPECT_EQ(Settle(), "");
  EXPECT_EQ(before.containers.size(), 3u);
}

TEST_F(PodStepsTest, InitContainersAreDoneWithBeforeTheFirstOther) {
  Plan("Always", {{"i", Kind::kInit}, {"s", Kind::kSidecar}, {"a"}, {"b"}});
  Take(Next());
  for (const char* name : {"i", "s"}) {
    EXPECT_EQ(Next().what, name);
    EXPECT_FALSE(Next().is_initialized);
    Take(Next());
    if (name[0] == 'i') Exit(name, 0);
  }
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(Next().what, name);
    EXPECT_TRUE(Next().is_initialized);
    Take(Next());
  }
}

TEST_F(PodStepsTest, SidecarsStopAfterTheOthersTheLastOneFirst) {
  Plan("Always", {{"s", Kind::kSidecar},
                  {"i", Kind::kInit},
                  {"t", Kind::kSidecar},
                  {"a"},
                  {"b"}});
  EXPECT_THAT(steps_.StopOrder(run_), ElementsAre(IsEmpty()));
  Settle();
  Exit("i", 0);
  EXPECT_EQ(Settle(), "t0 a0 b0");
  Exit("a", 1);
  Take(Next());  // Of two attempts the newest runs.
  EXPECT_THAT(steps_.StopOrder(run_),
              ElementsAre(ElementsAre("i0", "a1", "b0"), ElementsAre("t0"),
                          ElementsAre("s0")));
}

}  // namespace
}  // namespace devmgr
