// SPDX-License-Identifier: Apache-2.0
//
// The pod-resources socket of devmgrd, with a device plugin and a DRA driver.
#include <devmgr/pod_resources_client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "e2e/daemon.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PodResourcesTest : public ::testing::Test {
 protected:
  std::string Socket() const {
    return (node_.root() / "pod-resources/kubelet.sock").string();
  }
  /// Once devmgrd serves.
  std::unique_ptr<PodResourcesClient> Connect(const Daemon& daemon) const {
    EXPECT_NE(daemon.Inspect(), nullptr) << daemon.log();
    auto client = PodResourcesClient::Connect(Socket(), kPatience);
    EXPECT_THAT(client.status(), IsOk()) << daemon.log();
    return client.ok() ? *std::move(client) : nullptr;
  }
  ::testing::AssertionResult WaitFor(const std::string& pod,
                                     const std::string& state) {
    const Exit exit =
        node_.Ctl({"wait", "pod", pod, "--for=" + state, "--timeout", "20s"});
    if (exit.code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << exit.err;
  }
  std::string Configured(const std::string& text) const {
    const std::filesystem::path file = node_.root() / "config.yaml";
    std::ofstream(file) << text << "\n";
    return file.string();
  }
  Exit Print(const std::string& text) const {
    return RunTool("devmgrd", {"--root", node_.root().string(), "--config",
                               Configured(text), "--print-config"});
  }

  NodeFolder node_;
};

// BO-115, BO-116, BO-124, DP-122, DP-124: over a kill as well.
TEST_F(PodResourcesTest, TellsWhatContainersHave) {
  auto daemon = std::make_unique<Daemon>(node_.root());
  EXPECT_THAT(*Connect(*daemon)->List(), IsEmpty());
  testing::FakeDevicePluginOptions options;
  options.resource = "example.com/tpu";
  options.devices = 3;
  auto plugin = node_.StartPlugin(options);
  const auto driver = node_.StartDriver();
  node_.Write("c.yaml", ClaimManifest("c", "u-c", {"gpu-0"}, {"u-p"}));
  node_.Write("p.yaml", PodManifest("p", "u-p", "c", 1));
  ASSERT_TRUE(WaitFor("p", "ready")) << daemon->log();
  const auto pods = Connect(*daemon)->List();
  ASSERT_THAT(pods.status(), IsOk());
  ASSERT_THAT(*pods, SizeIs(1));
  ASSERT_THAT((*pods)[0].containers, SizeIs(1));
  const ContainerResources& resources = (*pods)[0].containers[0].resources;
  EXPECT_EQ(resources.name, "c");
  ASSERT_THAT(resources.devices, SizeIs(1));
  EXPECT_EQ(resources.devices[0].resource, "example.com/tpu");
  EXPECT_THAT(resources.devices[0].devices, SizeIs(1));
  ASSERT_THAT(resources.claims, SizeIs(1));
  EXPECT_EQ(resources.claims[0].name.name, "c");
  ASSERT_THAT(resources.claims[0].devices, SizeIs(1));
  EXPECT_EQ(resources.claims[0].devices[0].driver, "gpu.example.com");
  EXPECT_EQ(resources.claims[0].devices[0].device, "gpu-0");
  EXPECT_THAT(resources.claims[0].devices[0].cdi_devices, SizeIs(1));
  const auto allocatable = Connect(*daemon)->Allocatable();
  ASSERT_THAT(allocatable.status(), IsOk());
  ASSERT_THAT(allocatable->devices, SizeIs(1));
  EXPECT_THAT(allocatable->devices[0].devices, SizeIs(3));
  // Killed, and started again without its plugin.
  plugin.reset();
  daemon->Kill();
  daemon = std::make_unique<Daemon>(node_.root());
  const auto again = Connect(*daemon)->Get({"default", "p"});
  ASSERT_THAT(again.status(), IsOk());
  EXPECT_EQ(again->containers[0].resources, resources);
  node_.Remove("p.yaml");
  ASSERT_TRUE(WaitFor("p", "released"));
  EXPECT_THAT(Connect(*daemon)->Get({"default", "p"}).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(PodResourcesTest, IsShownByTheCommandLine) {
  Daemon daemon(node_.root());
  ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
  node_.Write("p.yaml",
              "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\n"
              "spec: {containers: [{name: c}]}\n");
  ASSERT_TRUE(WaitFor("p", "ready")) << daemon.log();
  const Exit list =
      node_.Ctl({"podresources", "--socket", Socket(), "list", "-o", "name"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_EQ(list.out, "pod/default/p\n");
  const Exit missing =
      node_.Ctl({"podresources", "--socket", Socket(), "get", "none"});
  EXPECT_EQ(missing.code, 3) << missing.err;
}

TEST_F(PodResourcesTest, IsInTheConfiguration) {
  const Exit printed = Print("podResources: {socket: /run/x.sock}");
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("podResources:\n  socket: /run/x.sock\n"));
  EXPECT_EQ(Print(printed.out).out, printed.out);
  EXPECT_THAT(Print("").out, HasSubstr("  socket: " + Socket()));
  for (const auto& [text, problem] :
       {std::pair("podResources: 7", "must be a map with socket, or false"),
        std::pair("podResources: {port: 7}",
                  "unknown key 'port'; known is socket"),
        std::pair("podResources: {socket: ''}",
                  "podResources.socket: is empty"),
        std::pair("podResources: {socket: []}", "podResources.socket")}) {
    const Exit refused = Print(text);
    EXPECT_EQ(refused.code, 2) << text;
    EXPECT_THAT(refused.err, HasSubstr(problem));
  }
}

TEST_F(PodResourcesTest, CanBeSwitchedOffWhereAnotherServes) {
  Daemon first(node_.root());
  ASSERT_NE(first.Inspect(), nullptr) << first.log();
  const NodeFolder other;
  Daemon second(
      other.root(),
      {"--config", Configured("podResources: {socket: " + Socket() + "}")});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.log(), HasSubstr("podResources: "));
  Daemon third(other.root(), {"--config", Configured("podResources: false")});
  EXPECT_NE(third.Inspect(), nullptr) << third.log();
  EXPECT_FALSE(std::filesystem::exists(other.root() / "pod-resources"));
}

}  // namespace
}  // namespace devmgr
