// SPDX-License-Identifier: Apache-2.0
#include "podstatus/pod_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "podstatus/pod_facts.h"

namespace devmgr::podstatus {
namespace {

using Kind = ReportedContainerState::Kind;

constexpr char kSomeTime[] = "2026-01-01T00:00:00Z";

TEST(PodStatusTest, BeginsWhenThePodWasSeen) {
  KnownPod known;
  EXPECT_EQ(known.Status()->start_time, At(0));
  known.former = known.Status();
  known.info.first_seen = At(50);
  EXPECT_EQ(known.Status()->start_time, At(0));
}

TEST(PodStatusTest, NothingIsInventedWhileTheRuntimeIsNotKnown) {
  KnownPod known;
  known.runtime.known = false;
  EXPECT_FALSE(known.Status().has_value());
  known.has_runtime = false;
  EXPECT_FALSE(known.Status().has_value());
  EXPECT_FALSE(known.Finished());
}

TEST(PodStatusTest, TheAddressesAreThoseOfTheSandboxThatIsReady) {
  KnownPod known;
  known.run.sandboxes = {{.id = "new", .ready = true, .ips = {"10.0.0.2"}},
                         {.id = "old", .ready = false, .ips = {"10.0.0.1"}}};
  known.run.containers = {RunningContainer("c")};
  EXPECT_EQ(known.Status()->pod_ips, std::vector<std::string>{"10.0.0.2"});
  // What was said of it stays.
  known.run.sandboxes[0].ready = false;
  EXPECT_TRUE(known.Status()->pod_ips.empty());
}

TEST(PodStatusTest, NothingIsSaidOfAPodThatTheLedgerDoesNotKnow) {
  KnownPod known;
  known.in_ledger = false;
  EXPECT_FALSE(known.Status().has_value());
}

TEST(PodStatusTest, WhatHasEndedDoesNotBeginAgain) {
  for (const char* phase : {"Succeeded", "Failed"}) {
    KnownPod known;
    known.pod.status.phase = phase;
    known.run.containers = {RunningContainer("c")};
    EXPECT_FALSE(known.Status().has_value()) << phase;
  }
}

TEST(PodStatusTest, ARejectedPodHasFailed) {
  KnownPod known;
  known.info.state = PodState::kRejected;
  known.info.reason = "UnexpectedAdmissionError";
  known.info.message = "Allocate failed due to no devices, which is unexpected";
  for (const bool has_runtime : {true, false}) {
    known.has_runtime = has_runtime;
    const auto status = known.Status();
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(status->phase, "Failed");
    EXPECT_EQ(status->reason, "UnexpectedAdmissionError");
    EXPECT_EQ(status->message,
              "Pod was rejected: Allocate failed due to no devices, which is "
              "unexpected");
    EXPECT_TRUE(status->containers.empty());
    EXPECT_EQ(status->start_time, At(0));
    ASSERT_NE(FindCondition(*status, "Ready"), nullptr);
    EXPECT_EQ(FindCondition(*status, "Ready")->reason, "PodFailed");
    EXPECT_EQ(FindCondition(*status, "Initialized"), nullptr);
  }
}

TEST(PodStatusTest, ARejectedPodHasNotFailedWhileItRuns) {
  KnownPod known;
  known.info.state = PodState::kRejected;
  known.run.containers = {RunningContainer("c")};
  EXPECT_FALSE(known.Status().has_value());
  known.run.containers = {ExitedContainer("c", 0)};
  EXPECT_EQ(known.Status()->phase, "Failed");
}

TEST(PodStatusTest, APodThatIsRefusedOtherDevicesGoesOn) {
  KnownPod known;
  known.info.reason = "RequestChanged";
  known.run.containers = {RunningContainer("c")};
  EXPECT_EQ(known.Status()->phase, "Running");
  EXPECT_EQ(known.Status()->reason, "");
}

TEST(PodStatusTest, APodThatIsToFailFailsOnceNothingOfItRuns) {
  KnownPod known;
  known.failure = PodFailure{"DeviceUnhealthy", "gpu-1 is hot"};
  known.AddSandbox();
  known.run.containers = {RunningContainer("c")};
  EXPECT_EQ(known.Status()->phase, "Running");
  EXPECT_EQ(known.Status()->reason, "");
  known.run.containers = {ExitedContainer("c", 0)};
  EXPECT_EQ(known.Status()->phase, "Running");
  known.run.sandboxes[0].ready = false;
  EXPECT_EQ(known.Status()->phase, "Failed");
  EXPECT_EQ(known.Status()->reason, "DeviceUnhealthy");
  EXPECT_EQ(known.Status()->message, "gpu-1 is hot");
}

TEST(PodStatusTest, ADeletedPodHasNotEndedWhileASandboxIsReady) {
  KnownPod known;
  known.pod.metadata.deletion_timestamp = kSomeTime;
  known.AddSandbox();
  known.run.containers = {ExitedContainer("c", 0)};
  EXPECT_EQ(known.Status()->phase, "Running");
  known.run.sandboxes[0].ready = false;
  EXPECT_EQ(known.Status()->phase, "Succeeded");
}

TEST(PodStatusTest, ContainersOfADeletedPodThatAreNotThereWereLost) {
  KnownPod known;
  known.pod.metadata.deletion_timestamp = kSomeTime;
  const auto status = known.Status();
  EXPECT_EQ(status->phase, "Failed");
  EXPECT_EQ(status->containers[0].state.kind, Kind::kTerminated);
  EXPECT_EQ(status->containers[0].state.reason, "ContainerStatusUnknown");
  EXPECT_EQ(status->containers[0].state.exit_code, 137);
}

TEST(PodStatusTest, ContainersThatCannotHaveBegunWait) {
  KnownPod known;
  known.pod.metadata.deletion_timestamp = kSomeTime;
  known.pod.spec.init_containers = {NamedContainer("i"), NamedContainer("j"),
                                    NamedContainer("k")};
  known.run.containers = {ExitedContainer("j", 0)};
  const auto status = known.Status();
  EXPECT_EQ(status->phase, "Failed");
  // Before one that has begun.
  EXPECT_EQ(status->init_containers[0].state.kind, Kind::kTerminated);
  EXPECT_EQ(status->init_containers[0].state.exit_code, 137);
  EXPECT_EQ(status->init_containers[1].state.exit_code, 0);
  EXPECT_EQ(status->init_containers[2].state.kind, Kind::kWaiting);
  EXPECT_EQ(status->containers[0].state.kind, Kind::kWaiting);
}

TEST(PodStatusTest, ADeletedPodThatRunsSaysSo) {
  KnownPod known;
  known.pod.metadata.deletion_timestamp = kSomeTime;
  known.run.containers = {RunningContainer("c")};
  EXPECT_EQ(known.Status()->phase, "Running");
}

TEST(PodStatusTest, ItsObjectCanGoWhenAllOfItIsOver) {
  KnownPod known;
  known.pod.metadata.deletion_timestamp = kSomeTime;
  known.pod.status.phase = "Succeeded";
  known.in_ledger = false;
  EXPECT_TRUE(known.Finished());

  known.in_ledger = true;
  EXPECT_FALSE(known.Finished()) << "it holds devices";
  known.in_ledger = false;

  known.pod.metadata.deletion_timestamp = "";
  EXPECT_FALSE(known.Finished()) << "it is to stay";
  known.pod.metadata.deletion_timestamp = kSomeTime;

  known.pod.status.phase = "Running";
  EXPECT_FALSE(known.Finished()) << "the server does not know of its end";
  known.pod.status.phase = "Failed";

  known.AddSandbox();
  EXPECT_FALSE(known.Finished()) << "a sandbox is ready";
  known.run.sandboxes[0].ready = false;
  EXPECT_TRUE(known.Finished());

  known.runtime.known = false;
  EXPECT_FALSE(known.Finished()) << "what runs is not known";
  known.has_runtime = false;
  EXPECT_FALSE(known.Finished()) << "there is no runtime";
}

}  // namespace
}  // namespace devmgr::podstatus
