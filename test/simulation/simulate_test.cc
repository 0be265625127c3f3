// SPDX-License-Identifier: Apache-2.0
#include "simulation/simulate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "simulation/moment_bed.h"

namespace devmgr::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using SimulateTest = SimulationTest;

TEST_F(SimulateTest, SaysWhatAPodWouldGetOfBothKinds) {
  Add(std::string(kClass) + Slice("n1", 3));
  AddPlugin(kNic, 2);
  const SimulatedPod pod =
      TryOne(PodText("p", "example.com/gpu: 2, example.com/nic: 1"));
  ASSERT_EQ(pod.verdict.kind, kAdmit) << pod.verdict.message;
  EXPECT_THAT(DevicesOf(pod), ElementsAre("n1/g0", "n1/g1"));
  ASSERT_THAT(pod.containers, SizeIs(1));
  EXPECT_EQ(pod.containers[0].container, ContainerName("c"));
  EXPECT_THAT(
      pod.containers[0].devices,
      ElementsAre(Pair(ResourceName(kNic), ElementsAre(DeviceId("0")))));
  EXPECT_GT(pod.steps, 0U);
}

TEST_F(SimulateTest, EachPodStandsOnThoseBeforeItOrByItself) {
  Add(std::string(kClass) + Slice("n1", 3));
  const std::string pods = GpuPod("a", 2) + GpuPod("b", 2);
  auto together = Try(pods);
  ASSERT_TRUE(together.ok()) << together.status();
  ASSERT_THAT(together->pods, SizeIs(2));
  EXPECT_EQ(together->pods[0].verdict.kind, kAdmit);
  EXPECT_EQ(together->pods[1].verdict.kind, kWait);
  // The third one is found, and does not do.
  EXPECT_THAT(Counts(together->pods[1]),
              ElementsAre(Pair("taken-in-this-run", 2)));
  EXPECT_EQ(together->pods[1].refusals[0].found, 1);
  EXPECT_FALSE(together->AllAdmitted());
  ASSERT_THAT(together->figures.drivers, SizeIs(1));
  EXPECT_EQ(together->figures.drivers[0].free, 1);
  EXPECT_EQ(together->figures.drivers[0].held, 2);

  request_.independent = true;
  auto alone = Try(pods);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_TRUE(alone->AllAdmitted());
  EXPECT_THAT(DevicesOf(alone->pods[1]), ElementsAre("n1/g0", "n1/g1"));
  EXPECT_EQ(alone->figures.drivers[0].free, 3);
}

TEST_F(SimulateTest, AL181EachDeviceIsRefusedOnceForItsFirstReason) {
  Add("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
      "gpu}\nspec: {extendedResourceName: example.com/gpu}\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
      "s}\nspec:\n  driver: d.example.com\n  nodeName: n1\n  pool: {name: n1, "
      "generation: 1, resourceSliceCount: 1}\n  devices:\n"
      "  - {name: held, attributes: {model: {string: a}}}\n"
      "  - {name: wrong, attributes: {model: {string: b}}}\n"
      "  - {name: tainted, attributes: {model: {string: a}}, taints: [{key: "
      "example.com/broken, effect: NoSchedule}]}\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "c, uid: u-c}\nspec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: gpu, selectors: [{cel: {expression: "
      "'device.attributes[\"d.example.com\"].model == \"a\"'}}]}}]}}\n---\n");
  Run(GpuPod("x", 1));
  const SimulatedPod pod = TryOne(PodText("p", "", "c"));
  ASSERT_EQ(pod.verdict.kind, kWait);
  EXPECT_EQ(pod.verdict.reason, "CannotAllocateClaims");
  ASSERT_THAT(pod.refusals, SizeIs(1));
  EXPECT_EQ(pod.refusals[0].claim, "default/c");
  EXPECT_EQ(pod.refusals[0].request, "r");
  std::vector<std::string> rows;
  for (const RefusedDevice& device : pod.refusals[0].devices) {
    rows.push_back(device.device + " " + device.reason + " " + device.detail);
  }
  EXPECT_THAT(rows, UnorderedElementsAre(
                        "held busy pod default/x",
                        "wrong request-selector "
                        "device.attributes[\"d.example.com\"].model == \"a\"",
                        "tainted taint example.com/broken:NoSchedule"));
}

TEST_F(SimulateTest, AL181FiveThousandDevicesAreOneThousandRowsAndCounts) {
  std::string slices = kClass;
  for (int i = 0; i < 50; ++i) {
    std::string slice = Slice(fmt::format("pool{}", i), 100);
    slices += slice;
  }
  Add(slices);
  Add(Claim("c"));
  moment_.drivers = {kDriver};
  // More than there may be of one claim, so that all devices are looked at.
  Add("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
      "none}\nspec: {selectors: [{cel: {expression: 'device.driver == "
      "\"x\"'}}]}\n---\n"
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "d, uid: u-d}\nspec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: none}}]}}\n---\n");
  const SimulatedPod pod = TryOne(PodText("p", "", "d"));
  ASSERT_EQ(pod.verdict.kind, kWait);
  ASSERT_THAT(pod.refusals, SizeIs(1));
  EXPECT_THAT(pod.refusals[0].devices, SizeIs(1'000));
  EXPECT_THAT(Counts(pod), ElementsAre(Pair("class-selector", 5'000)));
}

TEST_F(SimulateTest, AL181DevicesOfAPluginAreRefusedInTheSameWords) {
  AddPlugin(kNic, {Device("0"), Device("1", device::Health::kUnhealthy),
                   Device("2")});
  Run(PodText("x", "example.com/nic: 1"));
  const SimulatedPod pod = TryOne(PodText("p", "example.com/nic: 2"));
  ASSERT_EQ(pod.verdict.kind, kWait);
  EXPECT_EQ(pod.verdict.reason, "NotEnoughFreeDevices");
  ASSERT_THAT(pod.refusals, SizeIs(1));
  EXPECT_EQ(pod.refusals[0].request, "c/example.com/nic");
  std::vector<std::string> rows;
  for (const RefusedDevice& device : pod.refusals[0].devices) {
    rows.push_back(device.device + " " + device.reason + " " + device.detail);
  }
  EXPECT_THAT(rows, ElementsAre("0 busy pod default/x",
                                HasSubstr("1 unhealthy"), "2 none "));
}

TEST_F(SimulateTest, AL183CountsHowManyCopiesFit) {
  Add(std::string(kClass) + Slice("n1", 8));
  Run(GpuPod("holder", 1));
  request_.count_fits = true;
  auto result = Try(GpuPod("p", 2));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->fit.has_value());
  EXPECT_EQ(result->fit->copies, 3U);
  EXPECT_EQ(result->fit->ended_by, "taken-in-this-run");
  ASSERT_THAT(result->pods, SizeIs(2));
  EXPECT_EQ(result->pods[0].verdict.kind, kAdmit);
  EXPECT_EQ(result->pods[1].verdict.kind, kWait);

  request_.view.minus = {{"default", "holder"}};
  result = Try(GpuPod("p", 2));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->fit->copies, 4U);
}

TEST_F(SimulateTest, AL183CopiesOfPluginDevicesAreCountedToo) {
  AddPlugin(kNic, 5);
  request_.count_fits = true;
  auto result = Try(PodText("p", "example.com/nic: 2"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->fit->copies, 2U);
  EXPECT_EQ(result->fit->ended_by, "taken-in-this-run");
  EXPECT_FALSE(Try(PodText("p", "") + PodText("q", "")).ok());
}

TEST_F(SimulateTest, AL183MoreRoomIsNeverFewerCopies) {
  Add(std::string(kClass) + Slice("n1", 9));
  AddPlugin(kNic, 7);
  const std::string pod =
      PodText("p", "example.com/gpu: 2, example.com/nic: 1");
  for (const char* holder : {"a", "b", "c"}) {
    Run(PodText(holder, "example.com/gpu: 1, example.com/nic: 1"));
  }
  request_.count_fits = true;
  std::uint64_t before = 0;
  for (const char* holder : {"", "a", "b", "c"}) {
    if (*holder != '\0') {
      request_.view.minus.push_back({"default", holder});
    }
    auto result = Try(pod);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GE(result->fit->copies, before);
    before = result->fit->copies;
  }
  EXPECT_EQ(before, 4U);
}

TEST_F(SimulateTest, AL184SpentStepsAreNoVerdict) {
  Add(std::string(kClass) + Slice("n1", 8));
  request_.steps = 3;
  auto result = Try(GpuPod("p", 4) + GpuPod("q", 1));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->interrupted);
  for (const SimulatedPod& pod : result->pods) {
    EXPECT_EQ(pod.verdict.kind, kWait);
    EXPECT_EQ(pod.verdict.reason, kInterruptedReason);
    EXPECT_THAT(pod.refusals, IsEmpty());
  }
}

TEST_F(SimulateTest, AL184IsEndedFromOutside) {
  Add(std::string(kClass) + Slice("n1", 8));
  request_.stop = std::make_shared<std::atomic<bool>>(true);
  auto result = Try(GpuPod("p", 1));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->interrupted);
  EXPECT_EQ(result->pods[0].verdict.reason, kInterruptedReason);
}

TEST_F(SimulateTest, MayPauseBeforeEachPodAndEachStepOfASearch) {
  Add(std::string(kClass) + Slice("n1", 3));
  std::uint64_t pauses = 0;
  moment_.pause = [&] { ++pauses; };
  const auto result = Try(GpuPod("a", 1) + GpuPod("b", 3));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(pauses, 2 + result->pods[0].steps + result->pods[1].steps);
}

TEST_F(SimulateTest, AQuotaIsNamedByItsKey) {
  Add(std::string(kClass) + Slice("n1", 8) +
      "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: "
      "default}\nspec: {hard: {requests.example.com/gpu: 3}}\n---\n");
  auto result = Try(GpuPod("a", 2) + GpuPod("b", 2));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->pods[0].verdict.kind, kAdmit);
  const SimulatedPod& second = result->pods[1];
  EXPECT_EQ(second.verdict.reason, "ExceededQuota");
  ASSERT_THAT(second.refusals, SizeIs(1));
  EXPECT_EQ(second.refusals[0].request, "requests.example.com/gpu");
  EXPECT_EQ(second.refusals[0].wanted, 2);
  EXPECT_EQ(second.refusals[0].found, 1);
  EXPECT_THAT(Counts(second), ElementsAre(Pair("quota", 1)));
}

TEST_F(SimulateTest, ABrokenPodIsRejectedAndABrokenRequestRefused) {
  Pod pod = OnePod(PodText("p", ""));
  pod.spec.containers.push_back(pod.spec.containers.front());
  request_.pods = {pod};
  auto result = Simulate(moment_, request_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->pods[0].verdict.kind, kReject);
  EXPECT_EQ(result->pods[0].verdict.reason, "InvalidPod");

  request_.pods = {Pod()};
  EXPECT_EQ(Simulate(moment_, request_).status().code(),
            absl::StatusCode::kInvalidArgument);
  request_ = {};
  request_.view.minus = {{"default", "nowhere"}};
  EXPECT_EQ(Simulate(moment_, request_).status().code(),
            absl::StatusCode::kNotFound);
  request_ = {};
  request_.view.plugins = {{ResourceName(kNic), -1, {}}};
  EXPECT_EQ(Simulate(moment_, request_).status().code(),
            absl::StatusCode::kInvalidArgument);
  request_ = {};
  request_.view.base = SimulationBase::kLikeNode;
  EXPECT_EQ(Simulate(moment_, request_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SimulateTest, APodOfTheNodeIsAnsweredForByTheLedger) {
  Add(std::string(kClass) + Slice("n1", 1));
  Run(GpuPod("x", 1));
  const SimulatedPod pod = TryOne(GpuPod("x", 1));
  EXPECT_EQ(pod.verdict.kind, kAdmit);
  EXPECT_THAT(DevicesOf(pod), ElementsAre("n1/g0"));
}

TEST_F(SimulateTest, BelowASchedulerNothingIsAllocated) {
  Add(std::string(kClass) + Slice("n1", 2));
  moment_.allocates = false;
  moment_.policy.authority = Authority::kScheduler;
  const SimulatedPod pod = TryOne(GpuPod("p", 1));
  EXPECT_EQ(pod.verdict.kind, kWait);
  EXPECT_EQ(pod.verdict.reason, "ExtendedResourceNotMapped");
}

TEST_F(SimulateTest, ADocumentSaysAllOfIt) {
  Add(std::string(kClass) + Slice("n1", 1));
  AddPlugin(kNic, 1);
  auto result = Try(PodText("a", "example.com/gpu: 1, example.com/nic: 1") +
                    GpuPod("b", 1));
  ASSERT_TRUE(result.ok()) << result.status();
  const auto document = nlohmann::json::parse(EncodeSimulation(*result));
  EXPECT_EQ(document["view"]["base"], "present");
  EXPECT_EQ(document["view"]["node"], "n1");
  EXPECT_EQ(document["interrupted"], false);
  const auto& first = document["pods"][0];
  EXPECT_EQ(first["verdict"], "admit");
  EXPECT_EQ(first["claims"][0]["status"]["allocation"]["devices"]["results"][0]
                 ["device"],
            "g0");
  EXPECT_EQ(first["containers"][0]["devices"][kNic][0], "0");
  const auto& second = document["pods"][1];
  EXPECT_EQ(second["verdict"], "wait");
  EXPECT_EQ(second["refusals"][0]["counts"]["taken-in-this-run"], 1);
  EXPECT_FALSE(second["waitsOn"].empty());
  EXPECT_EQ(document["figures"]["drivers"][0]["held"], 1);
  EXPECT_EQ(document["figures"]["resources"][0]["free"], 0);
}

}  // namespace
}  // namespace devmgr::simulation
