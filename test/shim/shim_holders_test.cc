// SPDX-License-Identifier: Apache-2.0
//
// Containers that hold devices which their pods were not given are reported, to
// a manager in this process or in another.
#include <devmgr/inspection.h>
#include <devmgr/runtime_report.h>

#include "shim/held_devices.h"
#include "shim/runtime_items.h"
#include "shim/shim_fixture.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

enum class HolderMode { kManager, kDaemon };

class ShimHoldersTest : public ShimTest,
                        public ::testing::WithParamInterface<HolderMode> {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    if (GetParam() == HolderMode::kManager) return;
    auto server = InspectionServer::Start(manager_, Path("devmgr.sock"));
    ASSERT_THAT(server, IsOk());
    daemon_ = *std::move(server);
    options_.manager = nullptr;
    options_.devmgrd = Path("devmgr.sock");
  }
  void TearDown() override {
    ShimTest::TearDown();
    daemon_.reset();
  }

  static std::map<std::string, std::string> Holds(const std::string& id) {
    return {{std::string(kDevicesAnnotation),
             R"({"resources":{"example.com/gpu":[")" + id + R"("]}})"}};
  }
  RuntimeReport Last() {
    RuntimeReport last;
    manager_.Set([&](FakeDeviceManager::World& world) {
      if (!world.reports.empty()) last = world.reports.back();
    });
    return last;
  }
  /// Waits for a complete list of so many holders.
  std::vector<ForeignHolder> Reported(std::size_t count) {
    EXPECT_TRUE(Eventually([&] {
      const RuntimeReport last = Last();
      return last.all_holders && last.holders.size() == count;
    })) << Last().holders.size()
        << " holders, all: " << Last().all_holders;
    return Last().holders;
  }

  std::unique_ptr<InspectionServer> daemon_;
};

TEST_P(ShimHoldersTest, AnnotationsTellWhatContainersOfOtherPodsHold) {
  fake_->sandboxes = SandboxItem("s1", "stray") + SandboxItem("s2", "");
  fake_->containers = ContainerItem("c1", "s1", Holds("0")) +
                      ContainerItem("c2", "s2", Holds("1")) +
                      ContainerItem("c3", "s1") +
                      ContainerItem("c4", "s1", Holds("2"), /*exited=*/2);
  Start();
  const auto holders = Reported(2);
  EXPECT_EQ(holders[0].container_id, "c1");
  EXPECT_EQ(holders[0].pod_uid.value, "u-stray");
  EXPECT_EQ(holders[0].pod.ToString(), "ns/stray");
  EXPECT_EQ(holders[0].container, "c");
  EXPECT_EQ(holders[0].why, "its pod is not known");
  EXPECT_THAT(holders[0].resources,
              ElementsAre(HeldResource{"example.com/gpu", {"0"}}));
  EXPECT_EQ(holders[1].container_id, "c2");
  EXPECT_EQ(holders[1].pod_uid.value, "");
  EXPECT_EQ(holders[1].why, "it belongs to no pod");
  EXPECT_EQ(Last().endpoint, Path("runtime.sock").string());
}

TEST_P(ShimHoldersTest, WhatThePodWasGivenIsNotReported) {
  ContainerDevices devices;
  devices.resources = {{"example.com/gpu", {"0"}}};
  Give(devices);
  const Request request = ForContainer();
  std::string sandbox =
      WireField(1, "s1") +
      WireField(2, request.sandbox_config().metadata().SerializeAsString());
  fake_->sandboxes = WireField(1, sandbox);
  fake_->containers = ContainerItem("c1", "s1", Holds("0")) +
                      ContainerItem("c2", "s1", Holds("7"));
  Start();
  const auto holders = Reported(1);
  EXPECT_EQ(holders[0].container_id, "c2");
  EXPECT_EQ(holders[0].why, "its pod was given other devices");
}

TEST_P(ShimHoldersTest, TheRuntimeTellsOfContainersWithoutAnnotation) {
  fake_->status_of = [](const std::string& id) {
    return id == "c1"
               ? absl::StatusOr<std::string>(StatusWithCdi(id, "v.com/c=1"))
               : absl::NotFoundError("it is gone");
  };
  fake_->sandboxes = SandboxItem("s1", "stray");
  fake_->containers = ContainerItem("c1", "s1") + ContainerItem("c2", "s1");
  Start();
  const auto holders = Reported(1);
  EXPECT_EQ(holders[0].container_id, "c1");
  EXPECT_THAT(holders[0].resources, IsEmpty());
  EXPECT_THAT(holders[0].cdi_devices, ElementsAre("v.com/c=1"));
}

TEST_P(ShimHoldersTest, AListWithoutWhatTheRuntimeDidNotTellIsNotComplete) {
  std::atomic<bool> fails = true;
  fake_->status_of = [&](const std::string& id) {
    return fails ? absl::StatusOr<std::string>(absl::InternalError("busy"))
                 : absl::StatusOr<std::string>(StatusWithCdi(id, "v.com/c=1"));
  };
  fake_->sandboxes = SandboxItem("s1", "stray");
  fake_->containers =
      ContainerItem("c1", "s1") + ContainerItem("c2", "s1", Holds("0"));
  Start();
  ASSERT_TRUE(Eventually([&] { return Last().holders.size() == 1; }));
  EXPECT_FALSE(Last().all_holders);
  fails = false;
  // The runtime is asked again when its connection was lost.
  fake_->Stop();
  fake_->Start("containerd", "2.0.1");
  EXPECT_THAT(Reported(2), SizeIs(2));
}

TEST_P(ShimHoldersTest, AContainerThatIsRemovedHoldsNothing) {
  fake_->sandboxes = SandboxItem("s1", "stray") + SandboxItem("s2", "other");
  fake_->containers = ContainerItem("c1", "s1", Holds("0")) +
                      ContainerItem("c2", "s2", Holds("1"));
  Start();
  Reported(2);
  ASSERT_THAT(Call(cri::method::kRemoveContainer, WithId("c1")), IsOk());
  EXPECT_EQ(Reported(1)[0].container_id, "c2");
  ASSERT_THAT(Call(cri::method::kRemovePodSandbox, WithId("s2")), IsOk());
  EXPECT_THAT(Reported(0), IsEmpty());
}

TEST_P(ShimHoldersTest, AContainerThatEndsPastTheShimIsMissed) {
  options_.foreign_holder_interval = std::chrono::milliseconds(20);
  fake_->sandboxes = SandboxItem("s1", "stray");
  fake_->containers = ContainerItem("c1", "s1", Holds("0"));
  Start();
  Reported(1);
  fake_->containers_ended = true;
  EXPECT_THAT(Reported(0), IsEmpty());
}

TEST_P(ShimHoldersTest, AnIntervalIsPositive) {
  options_.foreign_holder_interval = std::chrono::milliseconds(0);
  fake_->Start("containerd", "2.0.1");
  EXPECT_THAT(CriShim::Start(options_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("foreign_holder_interval")));
}

TEST_P(ShimHoldersTest, WhatItGivesStandsInAnAnnotation) {
  ContainerDevices devices = OneOfEach();
  devices.resources = {{"example.com/gpu", {"0", "1"}}};
  Give(devices);
  Start();
  std::string value;
  const auto config = Created(ForContainer());
  for (const auto& annotation : config.annotations()) {
    if (annotation.key() == kDevicesAnnotation) value = annotation.value();
  }
  EXPECT_EQ(shim::ReadHeld(value), shim::HeldBy(devices));
}

INSTANTIATE_TEST_SUITE_P(Modes, ShimHoldersTest,
                         ::testing::Values(HolderMode::kManager,
                                           HolderMode::kDaemon),
                         [](const auto& mode) {
                           return mode.param == HolderMode::kManager ? "Manager"
                                                                     : "Daemon";
                         });

}  // namespace
}  // namespace devmgr
