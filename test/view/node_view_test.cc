// SPDX-License-Identifier: Apache-2.0
#include "view/node_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/devices.h"
#include "state/views.h"
#include "view/moment_fixture.h"

namespace devmgr::view {
namespace {

using state::PodPhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodeViewTest : public MomentTest {
 protected:
  std::shared_ptr<const NodeView> View() const {
    return NodeViewOf(moment_, around_);
  }
  void Put(const std::shared_ptr<state::PodRecord>& pod) {
    moment_.state.Put(std::shared_ptr<const state::PodRecord>(pod));
  }
  void Serve(const std::string& resource, const device::Inventory& inventory) {
    moment_.resources.insert_or_assign(
        resource, {inventory.state(), inventory.state_since_ms(),
                   inventory.figures(), inventory.devices()});
  }
  /// As a plugin lists it.
  void Serve(std::vector<device::Device> list) {
    Serve("example.com/gpu", device::Live(std::move(list)));
  }
  static state::DeviceHold Hold(const std::string& device) {
    state::DeviceHold hold;
    hold.container = "main";
    hold.resource = "example.com/gpu";
    hold.phase = device::ReservationPhase::kCommitted;
    hold.devices = {{device, {}}};
    return hold;
  }

  Surroundings around_;
};

TEST_F(NodeViewTest, StaysWhatItIsWhateverChanges) {
  Put(MakePod("a", PodPhase::kReady));
  Serve({device::Healthy("d0")});
  const auto before = View();
  Put(MakePod("b", PodPhase::kReady));
  moment_.state.Erase(Uid("a"));
  Serve({device::Unhealthy("d0"), device::Healthy("d1")});
  const auto after = View();
  ASSERT_THAT(before->Pods(), SizeIs(1));
  EXPECT_EQ(before->Pods()[0].name.name, "a");
  EXPECT_THAT(before->AllocatableDevices(), SizeIs(1));
  EXPECT_EQ(before->AllocatableDevices()[0].devices[0].id, "d0");
  EXPECT_EQ(after->Pods()[0].name.name, "b");
  EXPECT_EQ(after->AllocatableDevices()[0].devices[0].id, "d1");
  EXPECT_TRUE(before->PodInfoOf(Uid("a")).ok());
  EXPECT_EQ(after->PodInfoOf(Uid("a")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(NodeViewTest, ADriverThatIsCalledIsShownWithItsLoad) {
  const auto instance = [&](const char* name, bool serves) {
    PluginInfo info;
    info.name = name;
    info.serves = serves;
    info.calls = 1;  // as its lane knows: with probes
    around_.plugins.push_back(std::make_shared<const PluginInfo>(info));
  };
  instance("d", true);
  instance("d", false);
  instance("e", true);
  const auto ask = [&](const char* claim, Calls::Unanswered unanswered) {
    moment_.calls.unanswered.insert_or_assign({ClaimUid{claim}, "d"},
                                              unanswered);
  };
  ask("u-1", {true, 3'000, 7});
  ask("u-2", {true, 3'000, 7});
  ask("u-3", {false, 2'000, 6});
  ask("u-4", {});
  const auto plugins = View()->Plugins();
  ASSERT_THAT(plugins, SizeIs(3));
  EXPECT_EQ(plugins[0].calls, 2);
  EXPECT_EQ(plugins[0].queued, 1);
  EXPECT_EQ(plugins[0].calling_since, state::WallTimeOf(2'000));
  EXPECT_EQ(plugins[1].calls, 1);
  EXPECT_EQ(plugins[1].calling_since, std::nullopt);
  EXPECT_EQ(plugins[2].calls, 0);
  EXPECT_EQ(plugins[2].calling_since, std::nullopt);
}

TEST_F(NodeViewTest, CountsPodsByTheStatesThatTheyAreShownWith) {
  Put(MakePod("a", PodPhase::kReady));
  Put(MakePod("b", PodPhase::kWaiting));
  Put(MakePod("c", PodPhase::kRejected));
  Put(MakePod("d", PodPhase::kPreparing));
  moment_.pods.notes.insert_or_assign(
      Uid("d"), {Verdict::Kind::kWait, "FailedPrepare", "", {}});
  const NodeInfo node = View()->Node();
  EXPECT_EQ(node.pods, 4);
  EXPECT_EQ(node.pods_ready, 1);
  EXPECT_EQ(node.pods_waiting, 2);
  EXPECT_EQ(node.pods_rejected, 1);
}

TEST_F(NodeViewTest, DevicesOfPluginsAreShownWithHoldersAndHealth) {
  auto pod = MakePod("a", PodPhase::kReady);
  pod->holds = {Hold("d1")};
  Put(pod);
  Serve({device::Healthy("d0"), device::Unhealthy("d1")});
  const auto view = View();
  const std::vector<DeviceInfo> devices = view->Devices();
  ASSERT_THAT(devices, SizeIs(2));
  for (const DeviceInfo& device : devices) {
    EXPECT_EQ(device.used_by.empty(), device.device == "d0") << device.device;
  }
  const std::vector<ResourceInfo> resources = view->Resources();
  ASSERT_THAT(resources, SizeIs(1));
  EXPECT_EQ(resources[0].capacity, 2);
  EXPECT_EQ(resources[0].allocatable, 1);
  EXPECT_EQ(resources[0].held, 1);
  const PodInfo info = *view->PodInfoOf(Uid("a"));
  ASSERT_THAT(info.allocated_resources, SizeIs(1));
  const ResourceStatus& status = info.allocated_resources[0].resources.at(0);
  EXPECT_EQ(status.name, "example.com/gpu");
  ASSERT_THAT(status.resources, SizeIs(1));
  EXPECT_EQ(status.resources[0].resource_id, "d1");
  EXPECT_EQ(status.resources[0].message, "reported by the plugin");
  EXPECT_THAT(*view->HeldDevices(Uid("a"), "main"), SizeIs(1));
  EXPECT_THAT(*view->HeldDevices(Uid("a"), "other"), IsEmpty());
}

TEST_F(NodeViewTest, AllocatableDevicesAreTheHealthyOnes) {
  // DP-055, DP-120, DP-121
  using device::Healthy;
  using device::Unhealthy;
  device::Inventory foo =
      device::Live({Healthy("1"), Healthy("2"), Unhealthy("3")});
  device::Inventory bar = device::Live({Healthy("1", {1}), Unhealthy("2")});
  Serve("foo", foo);
  Serve("bar", bar);
  Serve("qux", device::Live({Unhealthy("1")}));
  EXPECT_THAT(View()->AllocatableDevices(),
              ElementsAre(ResourceDevices{"bar", {{"1", {1}}}},
                          ResourceDevices{"foo", {{"1", {}}, {"2", {}}}}));
  foo.Report(1, {Healthy("1"), Healthy("2"), Healthy("3")}, device::NobodyHolds,
             1);
  Serve("foo", foo);
  EXPECT_THAT(View()->AllocatableDevices().at(1).devices, SizeIs(3));
  foo.Disconnect(1, device::NobodyHolds, 2);
  bar.Disconnect(1, device::NobodyHolds, 2);
  Serve("foo", foo);
  Serve("bar", bar);
  EXPECT_THAT(View()->AllocatableDevices(), IsEmpty());
}

TEST_F(NodeViewTest, OfAStoppedLedgerItShowsWhatTheLedgerHas) {
  auto pod = MakePod("a", PodPhase::kReady);
  pod->holds = {Hold("d1")};
  Put(pod);
  moment_.state.seq = 7;
  moment_.terms = nullptr;
  moment_.objects = nullptr;
  const auto view = View();
  EXPECT_EQ(view->Node().pods_ready, 1);
  EXPECT_EQ(view->Node().ledger_sequence, 7U);
  EXPECT_FALSE(view->Node().authority.has_value());
  EXPECT_THAT(view->Devices(), SizeIs(1));
  EXPECT_THAT(view->DeviceClasses(), IsEmpty());
  EXPECT_THAT(view->HeldClaims(Uid("a"), "main")->claims, IsEmpty());
  EXPECT_EQ(view->HeldClaims(Uid("x"), "main").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(NodeViewTest, IsReadOnOtherThreadsWhileTheNextOnesAreMade) {
  for (int i = 0; i < 50; ++i) {
    Put(MakePod("p" + std::to_string(i), PodPhase::kReady));
  }
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([view = View()] {
      for (int round = 0; round < 10; ++round) {
        EXPECT_THAT(view->Pods(), SizeIs(50));
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    Put(MakePod("p" + std::to_string(i), PodPhase::kReleasing));
    if (i % 2 == 0) moment_.state.Erase(Uid("p" + std::to_string(i)));
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_THAT(View()->Pods(), SizeIs(25));
}

}  // namespace
}  // namespace devmgr::view
