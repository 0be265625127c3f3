// SPDX-License-Identifier: Apache-2.0
#include "admission/release_hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace devmgr::admission {
namespace {

using ::testing::ElementsAre;
using State = RuntimeContainer::State;

constexpr char kSource[] = "runtime /r.sock";
const PodUid kPod{"u-p"};

WallTime At(int seconds) { return WallTime(std::chrono::seconds(seconds)); }

ContainerRun ContainerThat(const std::string& name, State state) {
  ContainerRun run;
  run.name = name;
  run.state = state;
  run.created_at = At(5);
  if (state != State::kCreated) run.started_at = At(10);
  return run;
}

RuntimeSnapshot Having(const PodRun& run) {
  RuntimeSnapshot snapshot;
  snapshot.known = true;
  snapshot.pods[kPod] = std::make_shared<const PodRun>(run);
  return snapshot;
}

std::string TextOf(const RuntimeSnapshot& snapshot) {
  const auto wait = WhyReleaseWaits(snapshot, kPod, kSource);
  if (!wait.has_value()) return "";
  EXPECT_EQ(wait->kind, Verdict::Kind::kWait);
  EXPECT_THAT(wait->waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kRuntime, "/r.sock"}));
  return wait->reason + ": " + wait->message;
}

TEST(ReleaseHoldTest, WhatRunsHoldsTheRelease) {
  const SandboxRun ready{"s", 0, true, At(3)};
  const SandboxRun stopped{"s", 0, false, At(3)};
  const struct {
    PodRun run;
    const char* text;
  } table[] = {
      {{}, ""},
      {{{}, {stopped}, {}}, ""},
      {{{}, {stopped}, {ContainerThat("a", State::kExited)}}, ""},
      {{{}, {}, {ContainerThat("a", State::kRunning)}},
       "ContainersRunning: waits until container 'a' of the pod has ended, "
       "which runs since 1970-01-01T00:00:10Z"},
      {{{}, {stopped}, {ContainerThat("a", State::kCreated)}},
       "ContainersRunning: waits until container 'a' of the pod has ended, "
       "which was created at 1970-01-01T00:00:05Z"},
      {{{}, {}, {ContainerThat("a", State::kUnknown)}},
       "ContainersRunning: waits until container 'a' of the pod has ended, "
       "which runs since 1970-01-01T00:00:10Z"},
      {{{}, {ready}, {ContainerThat("a", State::kExited)}},
       "ContainersRunning: waits until the sandbox of the pod has stopped, "
       "which was created at 1970-01-01T00:00:03Z"},
      {{{},
        {ready},
        {ContainerThat("a", State::kExited),
         ContainerThat("b", State::kRunning),
         ContainerThat("c", State::kRunning)}},
       "ContainersRunning: waits until containers 'b', 'c' of the pod have "
       "ended"},
      {{{},
        {},
        {ContainerThat("a", State::kRunning),
         ContainerThat("b", State::kRunning),
         ContainerThat("c", State::kRunning),
         ContainerThat("d", State::kRunning),
         ContainerThat("e", State::kRunning)}},
       "ContainersRunning: waits until containers 'a', 'b', 'c' and 2 more of "
       "the pod have ended"},
  };
  for (const auto& [run, text] : table) EXPECT_EQ(TextOf(Having(run)), text);
}

TEST(ReleaseHoldTest, WhatOtherPodsRunDoesNot) {
  RuntimeSnapshot snapshot;
  snapshot.known = true;
  EXPECT_EQ(TextOf(snapshot), "");
  PodRun other;
  other.containers = {ContainerThat("a", State::kRunning)};
  snapshot.pods[PodUid{"u-q"}] = std::make_shared<const PodRun>(other);
  EXPECT_EQ(TextOf(snapshot), "");
}

TEST(ReleaseHoldTest, NotToKnowHoldsItWhateverRanLast) {
  PodRun ended;
  ended.containers = {ContainerThat("a", State::kExited)};
  RuntimeSnapshot snapshot = Having(ended);
  snapshot.known = false;
  snapshot.since = At(20);
  snapshot.reason = "it has gone";
  const char* const text =
      "RuntimeUnknown: waits because it is not known what runtime /r.sock "
      "runs, since 1970-01-01T00:00:20Z: it has gone";
  EXPECT_EQ(TextOf(snapshot), text);
  snapshot.pods.clear();
  EXPECT_EQ(TextOf(snapshot), text);
}

TEST(ReleaseHoldTest, WhileTheRuntimeIsAskedItIsNamed) {
  const Verdict wait = WhyReleaseAsks(kSource, At(10));
  EXPECT_EQ(wait.kind, Verdict::Kind::kWait);
  EXPECT_EQ(wait.reason, "RuntimeUnknown");
  EXPECT_EQ(wait.message,
            "waits until runtime /r.sock has answered what it runs, for which "
            "it is asked since 1970-01-01T00:00:10Z");
  EXPECT_THAT(wait.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kRuntime, "/r.sock"}));
}

}  // namespace
}  // namespace devmgr::admission
