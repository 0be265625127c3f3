// SPDX-License-Identifier: Apache-2.0
//
// Devices are given on the newest list that has come, not on the one that was
// taken in last.
#include <devmgr/testing.h>

#include <chrono>
#include <thread>

#include "manager/device_fixture.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Two devices, of which the one with this ID works.
std::vector<device::Device> OnlyWorks(const std::string& id) {
  std::vector<device::Device> devices = HealthyDevices(2);
  for (device::Device& device : devices) {
    if (device.id != id) device.health = device::Health::kUnhealthy;
  }
  return devices;
}

bool WaitUntil(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class NewestListTest : public DeviceNodeTest {
 protected:
  void Start() {
    node_.Start();
    node_.plugins.Serve(kGpu, 2);
    node_.Publish(DevicePod("first", {{kGpu, 1}}));
    ASSERT_TRUE(node_.WaitFor("first", PodState::kReady));
    node_.Publish("");
    ASSERT_TRUE(node_.WaitUntilGone("first"));
    calls_ = node_.plugins.calls().size();
  }

  /// Calls since Start.
  std::vector<FakePlugins::Call> Calls() const {
    auto calls = node_.plugins.calls();
    calls.erase(calls.begin(),
                calls.begin() + static_cast<std::ptrdiff_t>(calls_));
    return calls;
  }
  bool WaitUntilItWaitsForLists() {
    return WaitUntil([&] { return node_.plugins.waiting_for_lists() == 1; });
  }

  std::size_t calls_ = 0;
};

TEST_F(NewestListTest, NothingIsPlannedBeforeTheNewestListIsTakenIn) {
  Start();
  node_.plugins.HoldLists(kGpu);
  node_.plugins.Report(kGpu, OnlyWorks("1"));
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(WaitUntilItWaitsForLists());
  EXPECT_THAT(Held("p", kGpu), IsEmpty());
  node_.plugins.LetLists(kGpu);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Calls(), ElementsAre(Allocate(kGpu, {"1"}, "p")));
}

TEST_F(NewestListTest, WhatFailedDuringAllocateIsNotKept) {
  Start();
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(calls_ + 1));
  node_.plugins.HoldLists(kGpu);
  node_.plugins.Report(kGpu, OnlyWorks("1"));
  node_.plugins.Let(kGpu);
  ASSERT_TRUE(WaitUntilItWaitsForLists());
  EXPECT_NE(node_.PodNamed("p").state, PodState::kReady);
  node_.plugins.LetLists(kGpu);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
  EXPECT_THAT(Calls(), ElementsAre(Allocate(kGpu, {"0"}, "p"),
                                   Allocate(kGpu, {"1"}, "p")));
}

// The plugin is asked for its preference, and a device fails meanwhile: it is
// not even asked for.
TEST_F(NewestListTest, WhatFailedWhileThePluginWasAskedIsNotAllocated) {
  node_.Start();
  node_.plugins.Serve(kGpu, 2, {.preferred_allocation = true});
  node_.plugins.Hold(kGpu);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  node_.plugins.HoldLists(kGpu);
  node_.plugins.Report(kGpu, OnlyWorks("1"));
  node_.plugins.Let(kGpu);
  ASSERT_TRUE(WaitUntilItWaitsForLists());
  node_.plugins.LetLists(kGpu);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kGpu), ElementsAre("1"));
  EXPECT_THAT(node_.plugins.calls(), Contains(Allocate(kGpu, {"1"}, "p")));
}

TEST_F(NewestListTest, APodOfAnotherResourceDoesNotWait) {
  Start();
  node_.plugins.Serve(kNic, 1);
  node_.plugins.HoldLists(kGpu);
  node_.plugins.Report(kGpu, OnlyWorks("1"));
  node_.Publish(DevicePod("p", {{kNic, 1}}));
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// A plugin that sends lists faster than they are taken in gets no pods.
TEST_F(NewestListTest, AFloodOfListsIsWhatThePodWaitsFor) {
  Start();
  node_.plugins.HoldLists(kGpu);
  node_.plugins.Report(kGpu, OnlyWorks("1"));
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(WaitUntilItWaitsForLists());
  node_.plugins.GiveUpOnLists(kGpu);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  EXPECT_THAT(node_.PodNamed("p").waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kResource, kGpu}));
  EXPECT_THAT(Calls(), IsEmpty());
  node_.plugins.LetLists(kGpu);
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

// With a real socket between: 64 devices fail in 64 lists at once.
TEST(ListBurstNodeTest, NoneOf64DevicesThatFailAtOnceIsGiven) {
  constexpr int kDevices = 64;
  const TempFolder folder;
  DeviceManagerOptions options;
  options.state_dir = folder.path() / "state";
  options.device_plugin_dir = folder.path() / "device-plugins";
  auto manager = DeviceManager::Open(options);
  ASSERT_THAT(manager.status(), IsOk());
  testing::FakeDevicePluginOptions fake;
  fake.resource = kGpu;
  fake.root = folder.path();
  fake.devices = kDevices;
  auto plugin = testing::FakeDevicePlugin::Start(fake);
  ASSERT_THAT(plugin.status(), IsOk());
  const auto healthy = [&] {
    for (const ResourceInfo& info : (*manager)->View()->Resources()) {
      if (info.name == kGpu) return info.allocatable;
    }
    return std::int64_t{-1};
  };
  ASSERT_TRUE(WaitUntil([&] { return healthy() == kDevices; }));
  for (const auto& device : (*plugin)->Devices()) {
    ASSERT_TRUE((*plugin)->SetHealth(device.id, "Unhealthy"));
  }
  ASSERT_TRUE(WaitUntil([&] { return healthy() == 0; }));
  Pod pod;
  pod.metadata = {.name = "p", .ns = "default", .uid = "u-p"};
  pod.spec.containers.emplace_back().name = "c";
  pod.spec.containers[0].resources.limits[kGpu] = {1, 0, "1"};
  const auto verdict = (*manager)->AdmitPod(pod);
  ASSERT_THAT(verdict.status(), IsOk());
  EXPECT_EQ(verdict->kind, Verdict::Kind::kWait);
  for (const auto& call : (*plugin)->Calls()) {
    EXPECT_NE(call.method, "Allocate");
  }
}

}  // namespace
}  // namespace devmgr
