// SPDX-License-Identifier: Apache-2.0
#include "podstatus/conditions.h"

#include <gtest/gtest.h>

#include <string>

#include "podstatus/pod_facts.h"

namespace devmgr::podstatus {
namespace {

/// `True`, or `False reason: message`.
std::string Said(KnownPod& known, const std::string& type) {
  const auto status = known.Status();
  if (!status) return "no status";
  const Condition* found = FindCondition(*status, type);
  if (found == nullptr) return "nothing";
  std::string text = found->status;
  if (!found->reason.empty()) text += " " + found->reason;
  if (!found->message.empty()) text += ": " + found->message;
  return text;
}

TEST(PodConditionsTest, ASandboxIsThereOrNot) {
  KnownPod known;
  EXPECT_EQ(Said(known, "PodReadyToStartContainers"), "False");
  known.AddSandbox();
  EXPECT_EQ(Said(known, "PodReadyToStartContainers"), "True");
  // The newest counts.
  known.run.sandboxes.insert(known.run.sandboxes.begin(), SandboxRun{});
  EXPECT_EQ(Said(known, "PodReadyToStartContainers"), "False");
}

TEST(PodConditionsTest, InitializedOnceInitContainersHaveEnded) {
  KnownPod known;
  known.AddSandbox();
  EXPECT_EQ(Said(known, "Initialized"), "True");
  known.pod.spec.init_containers = {NamedContainer("i"),
                                    NamedContainer("s", "Always")};
  EXPECT_EQ(Said(known, "Initialized"),
            "False ContainersNotInitialized: containers with incomplete "
            "status: [i s]");
  known.run.containers = {ExitedContainer("i", 0)};
  EXPECT_EQ(Said(known, "Initialized"),
            "False ContainersNotInitialized: containers with incomplete "
            "status: [s]");
  known.run.containers.push_back(RunningContainer("s"));
  EXPECT_EQ(Said(known, "Initialized"), "True");
  // A container has run since: it stays so though the sidecar ends.
  known.run.containers = {ExitedContainer("i", 0), ExitedContainer("s", 1),
                          RunningContainer("c")};
  EXPECT_EQ(Said(known, "Initialized"), "True");
}

TEST(PodConditionsTest, InitContainersThatFailedAreIncomplete) {
  KnownPod known;
  known.AddSandbox();
  known.pod.spec.init_containers = {NamedContainer("i")};
  known.run.containers = {ExitedContainer("i", 1)};
  EXPECT_EQ(Said(known, "Initialized"),
            "False ContainersNotInitialized: containers with incomplete "
            "status: [i]");
}

TEST(PodConditionsTest, ContainersAreReadyWhileAllOfThemRun) {
  KnownPod known;
  known.pod.spec.containers.push_back(NamedContainer("d"));
  known.pod.spec.init_containers = {NamedContainer("i"),
                                    NamedContainer("s", "Always")};
  known.run.containers = {ExitedContainer("i", 0), RunningContainer("c")};
  EXPECT_EQ(Said(known, "ContainersReady"),
            "False ContainersNotReady: containers with unready status: [s d]");
  EXPECT_EQ(Said(known, "Ready"),
            "False ContainersNotReady: containers with unready status: [s d]");
  known.run.containers.push_back(RunningContainer("d"));
  known.run.containers.push_back(RunningContainer("s"));
  EXPECT_EQ(Said(known, "ContainersReady"), "True");
  EXPECT_EQ(Said(known, "Ready"), "True");
}

TEST(PodConditionsTest, AtTheEndOfAPodTheySayHowItEnded) {
  KnownPod known;
  known.pod.spec.restart_policy = "Never";
  known.run.containers = {ExitedContainer("c", 0)};
  EXPECT_EQ(Said(known, "Initialized"), "True PodCompleted");
  EXPECT_EQ(Said(known, "ContainersReady"), "False PodCompleted");
  EXPECT_EQ(Said(known, "Ready"), "False PodCompleted");
  known.run.containers = {ExitedContainer("c", 3)};
  EXPECT_EQ(Said(known, "ContainersReady"), "False PodFailed");
  EXPECT_EQ(Said(known, "Ready"), "False PodFailed");
}

TEST(PodConditionsTest, ReadinessGatesCount) {
  KnownPod known;
  known.run.containers = {RunningContainer("c")};
  known.pod.spec.readiness_gates = {"example.com/a", "example.com/b"};
  known.pod.status.gate_conditions["example.com/b"] = "False";
  EXPECT_EQ(Said(known, "ContainersReady"), "True");
  EXPECT_EQ(Said(known, "Ready"),
            "False ReadinessGatesNotReady: corresponding condition of pod "
            "readiness gate \"example.com/a\" does not exist., the status of "
            "pod readiness gate \"example.com/b\" is not \"True\", but False");
  known.pod.status.gate_conditions = {{"example.com/a", "True"},
                                      {"example.com/b", "True"}};
  EXPECT_EQ(Said(known, "Ready"), "True");
}

TEST(PodConditionsTest, AreNoneOfOthers) {
  KnownPod known;
  EXPECT_EQ(Said(known, "PodScheduled"), "nothing");
  EXPECT_EQ(known.Status()->conditions.size(), 4u);
}

TEST(PodConditionsTest, KeepTheirTimesWhileTheyStayTheSame) {
  KnownPod known;
  known.AddSandbox();
  known.former = known.Status();
  known.now = At(200);
  known.run.containers = {RunningContainer("c")};
  const auto status = known.Status();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(FindCondition(*status, "Initialized")->last_transition_time,
            "2023-11-14T22:15:00Z");
  EXPECT_EQ(FindCondition(*status, "Ready")->last_transition_time,
            "2023-11-14T22:16:40Z");
  EXPECT_EQ(FindCondition(*status, "ContainersReady")->last_transition_time,
            "2023-11-14T22:16:40Z");
}

TEST(PodConditionsTest, NameTheGenerationWhereTheServerHasOne) {
  KnownPod known;
  EXPECT_EQ(known.Status()->observed_generation, 0);
  EXPECT_EQ(known.Status()->conditions.front().observed_generation, 0);
  known.pod.generation = 3;
  EXPECT_EQ(known.Status()->observed_generation, 3);
  EXPECT_EQ(known.Status()->conditions.front().observed_generation, 3);
}

}  // namespace
}  // namespace devmgr::podstatus
