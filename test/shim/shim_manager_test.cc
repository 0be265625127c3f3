// SPDX-License-Identifier: Apache-2.0
//
// A real shim and a real manager, in one process and in two: what a container
// holds that the ledger knows nothing of goes to no other pod.
#include <devmgr/inspection.h>

#include "shim/runtime_items.h"
#include "shim/shim_fixture.h"
#include "support/test_node.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kGpu[] = "example.com/gpu";

enum class NodeMode { kManager, kDaemon };

class ShimManagerTest : public ShimTest,
                        public ::testing::WithParamInterface<NodeMode> {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    node_.Start();
    node_.plugins.Serve(kGpu, 2);
    options_.manager = nullptr;
    if (GetParam() == NodeMode::kManager) {
      options_.manager = &node_.manager();
      return;
    }
    auto server = InspectionServer::Start(node_.manager(), Path("devmgr.sock"));
    ASSERT_THAT(server, IsOk());
    daemon_ = *std::move(server);
    options_.devmgrd = Path("devmgr.sock");
  }
  void TearDown() override {
    ShimTest::TearDown();
    daemon_.reset();
    node_.Stop();
  }

  /// The runtime runs container `c` of pod `ns/<pod>`, with that device.
  void Runs(const std::string& pod, const std::string& device) {
    fake_->sandboxes = SandboxItem("s1", pod);
    fake_->containers = ContainerItem(
        "c1", "s1",
        {{std::string(kDevicesAnnotation),
          R"({"resources":{"example.com/gpu":[")" + device + R"("]}})"}});
  }
  static std::string PodYaml(const std::string& name, int count) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {namespace: ns, name: " +
           name + ", uid: u-" + name +
           "}\nspec:\n  containers:\n  - name: c\n    resources: {limits: {" +
           kGpu + ": \"" + std::to_string(count) + "\"}}\n---\n";
  }
  bool WaitForHolders(std::size_t count) {
    return Eventually([&] {
      return node_.manager().View()->ForeignHolders().size() == count;
    });
  }
  PodInfo PodInfoOf(const std::string& name) {
    return node_.manager().View()->PodInfoOf({"u-" + name}).value_or(PodInfo());
  }
  std::vector<std::string> UsersOf(const std::string& id) {
    for (const DeviceInfo& device : node_.manager().View()->Devices()) {
      if (device.device == id) return device.used_by;
    }
    return {};
  }

  TestNode node_;
  std::unique_ptr<InspectionServer> daemon_;
};

TEST_P(ShimManagerTest, ADeviceThatAContainerHasGoesToNoOtherPod) {
  Runs("stray", "0");
  Start();
  ASSERT_TRUE(WaitForHolders(1));
  node_.Publish(PodYaml("p", 2));
  ASSERT_TRUE(Eventually(
      [&] { return PodInfoOf("p").reason == "NotEnoughFreeDevices"; }));
  EXPECT_THAT(PodInfoOf("p").message,
              HasSubstr("foreign container c1 (pod ns/stray)"));
  ASSERT_THAT(Call(cri::method::kRemovePodSandbox, WithId("s1")), IsOk());
  EXPECT_TRUE(
      Eventually([&] { return PodInfoOf("p").state == PodState::kReady; }));
  EXPECT_THAT(node_.manager().View()->ForeignHolders(), SizeIs(0));
}

TEST_P(ShimManagerTest, ThePodOfTheContainerIsGivenIt) {
  Runs("p", "1");
  Start();
  ASSERT_TRUE(WaitForHolders(1));
  node_.Publish(PodYaml("p", 1));
  ASSERT_TRUE(
      Eventually([&] { return PodInfoOf("p").state == PodState::kReady; }));
  EXPECT_TRUE(WaitForHolders(0));
  EXPECT_THAT(UsersOf("1"), ElementsAre("ns/p"));
}

TEST_P(ShimManagerTest, AnOperatorFreesIt) {
  Runs("stray", "0");
  Start();
  ASSERT_TRUE(WaitForHolders(1));
  node_.Publish(PodYaml("p", 2));
  ASSERT_TRUE(Eventually(
      [&] { return PodInfoOf("p").reason == "NotEnoughFreeDevices"; }));
  ASSERT_THAT(node_.manager().maintenance().FreeHolder("c1", "it hangs"),
              IsOk());
  EXPECT_TRUE(
      Eventually([&] { return PodInfoOf("p").state == PodState::kReady; }));
  ASSERT_THAT(node_.manager().View()->ForeignHolders(), SizeIs(1));
  EXPECT_EQ(node_.manager().View()->ForeignHolders()[0].freed, "it hangs");
  ASSERT_THAT(Call(cri::method::kRemoveContainer, WithId("c1")), IsOk());
  EXPECT_TRUE(WaitForHolders(0));
}

class ShimNewDaemonTest : public ShimManagerTest {
 protected:
  void TearDown() override {
    ShimManagerTest::TearDown();
    second_.Stop();
  }
  /// A daemon at the same socket, with a ledger that knows nothing.
  void LoseTheLedger() {
    daemon_.reset();
    node_.Stop();
    second_.Start();
    auto server =
        InspectionServer::Start(second_.manager(), Path("devmgr.sock"));
    ASSERT_THAT(server, IsOk());
    daemon_ = *std::move(server);
  }
  PodState StateOf(const std::string& name) {
    return second_.manager()
        .View()
        ->PodInfoOf({"u-" + name})
        .value_or(PodInfo{})
        .state;
  }

  TestNode second_;
};

TEST_P(ShimNewDaemonTest, RunningContainersKeepTheirDevicesWithoutTheLedger) {
  node_.Publish(PodYaml("p", 1));
  ASSERT_TRUE(
      Eventually([&] { return PodInfoOf("p").state == PodState::kReady; }));
  Start();
  Created(ForContainer("c", "u-p"));
  LoseTheLedger();
  ASSERT_TRUE(Eventually(
      [&] { return second_.manager().View()->ForeignHolders().size() == 1; }));
  EXPECT_THAT(second_.manager().View()->ForeignHolders()[0].holder.resources,
              ElementsAre(HeldResource{kGpu, {"0"}}));
  second_.plugins.Serve(kGpu, 2);
  const std::string other = PodYaml("q", 2);
  second_.Publish(other);
  ASSERT_TRUE(Eventually([&] {
    return second_.manager()
               .View()
               ->PodInfoOf({"u-q"})
               .value_or(PodInfo{})
               .reason == "NotEnoughFreeDevices";
  }));
  second_.Publish(other + PodYaml("p", 1));
  EXPECT_TRUE(Eventually([&] { return StateOf("p") == PodState::kReady; }));
  EXPECT_TRUE(Eventually(
      [&] { return second_.manager().View()->ForeignHolders().empty(); }));
  for (const DeviceInfo& device : second_.manager().View()->Devices()) {
    if (device.device == "0") {
      EXPECT_THAT(device.used_by, ElementsAre("ns/p"));
    }
  }
  EXPECT_EQ(StateOf("q"), PodState::kWaiting);
}

INSTANTIATE_TEST_SUITE_P(Modes, ShimNewDaemonTest,
                         ::testing::Values(NodeMode::kDaemon),
                         [](const auto&) { return "Daemon"; });

INSTANTIATE_TEST_SUITE_P(Modes, ShimManagerTest,
                         ::testing::Values(NodeMode::kManager,
                                           NodeMode::kDaemon),
                         [](const auto& mode) {
                           return mode.param == NodeMode::kManager ? "Manager"
                                                                   : "Daemon";
                         });

}  // namespace
}  // namespace devmgr
