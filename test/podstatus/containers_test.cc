// SPDX-License-Identifier: Apache-2.0
#include "podstatus/containers.h"

#include <gtest/gtest.h>

#include <string>

#include "podstatus/pod_facts.h"

namespace devmgr::podstatus {
namespace {

using Kind = ReportedContainerState::Kind;

ReportedContainerStatus App(KnownPod& known, std::size_t index = 0) {
  const auto status = known.Status();
  return status && status->containers.size() > index
             ? status->containers[index]
             : ReportedContainerStatus();
}

ReportedContainerStatus Init(KnownPod& known, std::size_t index = 0) {
  const auto status = known.Status();
  return status && status->init_containers.size() > index
             ? status->init_containers[index]
             : ReportedContainerStatus();
}

TEST(ContainerStatusTest, OneThatWasNotMadeYetWaits) {
  KnownPod known;
  const auto waiting = App(known);
  EXPECT_EQ(waiting.name, "c");
  EXPECT_EQ(waiting.image, "image-of-c");
  EXPECT_EQ(waiting.container_id, "");
  EXPECT_EQ(waiting.state.kind, Kind::kWaiting);
  EXPECT_EQ(waiting.state.reason, "ContainerCreating");
  EXPECT_FALSE(waiting.ready);
  known.pod.spec.init_containers = {NamedContainer("i")};
  EXPECT_EQ(App(known).state.reason, "PodInitializing");
}

TEST(ContainerStatusTest, OneThatRuns) {
  KnownPod known;
  known.run.containers = {RunningContainer("c", 2)};
  const auto running = App(known);
  EXPECT_EQ(running.state.kind, Kind::kRunning);
  EXPECT_EQ(running.state.started_at, At(10));
  EXPECT_EQ(running.restart_count, 2u);
  EXPECT_EQ(running.container_id, "containerd://c-2");
  EXPECT_EQ(running.image_id, "sha256:c");
  EXPECT_TRUE(running.ready);
  EXPECT_TRUE(running.started);
}

TEST(ContainerStatusTest, OneThatWasMadeAndNotStartedWaits) {
  KnownPod known;
  known.run.containers = {RunningContainer("c")};
  known.run.containers[0].state = RuntimeContainer::State::kCreated;
  EXPECT_EQ(App(known).state.kind, Kind::kWaiting);
  EXPECT_EQ(App(known).state.reason, "ContainerCreating");
  EXPECT_FALSE(App(known).ready);
}

TEST(ContainerStatusTest, OneThatHasExited) {
  KnownPod known;
  known.run.containers = {ExitedContainer("c", 0)};
  EXPECT_EQ(App(known).state.reason, "Completed");
  EXPECT_FALSE(App(known).ready);
  known.run.containers = {ExitedContainer("c", 5)};
  EXPECT_EQ(App(known).state.reason, "Error");
  known.run.containers[0].reason = "OOMKilled";
  known.run.containers[0].message = "out of memory";
  const auto ended = App(known).state;
  EXPECT_EQ(ended.kind, Kind::kTerminated);
  EXPECT_EQ(ended.reason, "OOMKilled");
  EXPECT_EQ(ended.message, "out of memory");
  EXPECT_EQ(ended.exit_code, 5);
  EXPECT_EQ(ended.started_at, At(10));
  EXPECT_EQ(ended.finished_at, At(20));
  EXPECT_EQ(ended.container_id, "containerd://c-0");
}

TEST(ContainerStatusTest, WhatRanBeforeIsTheLastState) {
  KnownPod known;
  known.run.containers = {RunningContainer("c", 1), ExitedContainer("c", 3, 0)};
  const auto running = App(known);
  EXPECT_EQ(running.state.kind, Kind::kRunning);
  EXPECT_EQ(running.last_state.kind, Kind::kTerminated);
  EXPECT_EQ(running.last_state.exit_code, 3);
  EXPECT_EQ(running.last_state.container_id, "containerd://c-0");
  // The runtime removes the old container: what became of it is known.
  known.former = known.Status();
  known.run.containers = {RunningContainer("c", 1)};
  EXPECT_EQ(App(known).last_state, running.last_state);
}

TEST(ContainerStatusTest, AnEndThatWasSeenOnceIsTheLastStateOfTheNext) {
  KnownPod known;
  known.run.containers = {ExitedContainer("c", 7)};
  known.former = known.Status();
  known.run.containers = {RunningContainer("c", 1)};
  EXPECT_EQ(App(known).last_state.exit_code, 7);
  EXPECT_EQ(App(known).last_state.kind, Kind::kTerminated);
}

TEST(ContainerStatusTest, OneThatEndedAndWasRemovedStaysAsItWas) {
  KnownPod known;
  known.run.containers = {ExitedContainer("c", 7)};
  known.former = known.Status();
  known.run.containers.clear();
  EXPECT_EQ(App(known), known.former->containers[0]);
}

TEST(ContainerStatusTest, OneThatRanAndIsNotThereAnyMoreWasLost) {
  KnownPod known;
  known.run.containers = {RunningContainer("c", 1)};
  known.former = known.Status();
  known.run.containers.clear();
  const auto lost = App(known);
  EXPECT_EQ(lost.state.kind, Kind::kWaiting);
  EXPECT_EQ(lost.last_state.reason, "ContainerStatusUnknown");
  EXPECT_EQ(lost.last_state.exit_code, 137);
  EXPECT_EQ(lost.restart_count, 2u);
  // It does not count up while nothing else happens.
  known.former = known.Status();
  EXPECT_EQ(App(known), lost);
}

TEST(ContainerStatusTest, OneOfWhichTheRuntimeKnowsNothingIsLost) {
  KnownPod known;
  known.run.containers = {RunningContainer("c")};
  known.former = known.Status();
  known.run.containers[0].state = RuntimeContainer::State::kUnknown;
  EXPECT_EQ(App(known).state.kind, Kind::kTerminated);
  EXPECT_EQ(App(known).state.reason, "ContainerStatusUnknown");
}

TEST(ContainerStatusTest, InitContainersAreReadyWhenTheyHaveSucceeded) {
  KnownPod known;
  known.pod.spec.init_containers = {NamedContainer("i"),
                                    NamedContainer("s", "Always")};
  known.run.containers = {RunningContainer("i")};
  EXPECT_FALSE(Init(known).ready);
  known.run.containers = {ExitedContainer("i", 1)};
  EXPECT_FALSE(Init(known).ready);
  known.run.containers = {ExitedContainer("i", 0), RunningContainer("s")};
  EXPECT_TRUE(Init(known).ready);
  EXPECT_FALSE(Init(known).started);
  EXPECT_TRUE(Init(known, 1).ready);
  EXPECT_TRUE(Init(known, 1).started);
}

TEST(ContainerStatusTest, HasTheHealthOfItsDevices) {
  KnownPod known;
  known.pod.spec.init_containers = {NamedContainer("s", "Always")};
  known.info.allocated_resources = {
      {"c",
       {{"claim:gpu/one",
         {{"d/p/gpu-1", DeviceHealth::kUnhealthy, "it is hot", At(5)}}},
        {"v.com/gpu", {{"gpu-7", DeviceHealth::kHealthy, "", At(6)}}}}},
      {"s", {{"v.com/gpu", {{"gpu-8", DeviceHealth::kUnknown, "", At(7)}}}}}};
  const auto resources = App(known).allocated_resources;
  ASSERT_EQ(resources.size(), 2u);
  EXPECT_EQ(resources[0].name, "claim:gpu/one");
  EXPECT_EQ(resources[0].resources[0].resource_id, "d/p/gpu-1");
  EXPECT_EQ(resources[0].resources[0].message, "it is hot");
  // Times are no part of it: nothing else has changed when they do.
  EXPECT_EQ(resources[0].resources[0].since, WallTime());
  ASSERT_EQ(Init(known).allocated_resources.size(), 1u);
  EXPECT_EQ(Init(known).allocated_resources[0].resources[0].resource_id,
            "gpu-8");
  // They are those of now, also of a container that has ended.
  known.run.containers = {ExitedContainer("c", 0)};
  known.former = known.Status();
  known.run.containers.clear();
  known.info.allocated_resources.clear();
  EXPECT_TRUE(App(known).allocated_resources.empty());
}

}  // namespace
}  // namespace devmgr::podstatus
