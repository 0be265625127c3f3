// SPDX-License-Identifier: Apache-2.0
//
// Device plugins with devmgrd, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/daemon.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using nlohmann::json;
using testing::FakeDevicePluginOptions;
using Way = FakeDevicePluginOptions::Way;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTpu[] = "example.com/tpu";

std::string PodYaml(const std::string& name, int count) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: u-" +
         name +
         "}\nspec:\n  containers:\n  - name: c\n    resources: {limits: {" +
         kTpu + ": \"" + std::to_string(count) + "\"}}\n";
}

/// The flags of a daemon that reads this.
std::vector<std::string> Configured(const std::filesystem::path& root,
                                    const std::string& text) {
  const std::filesystem::path file = root / "config.yaml";
  std::ofstream(file) << text << "\n";
  return {"--config", file.string()};
}

class DevicePluginTest : public ::testing::TestWithParam<Way> {
 protected:
  ::testing::AssertionResult WaitFor(const std::string& pod,
                                     const std::string& state) {
    const Exit exit =
        node_.Ctl({"wait", "pod", pod, "--for=" + state, "--timeout", "20s"});
    if (exit.code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << exit.err << node_.Ctl({"get", "pods", "-o", "json"}).out;
  }
  /// What its one container gets.
  json Answer(const std::string& pod) {
    const Exit exit = node_.Ctl({"resolve", pod, "-o", "json"});
    EXPECT_EQ(exit.code, 0) << exit.err;
    const json answer = json::parse(exit.out, nullptr, false);
    return answer.is_discarded() ? json() : answer["containers"][0];
  }
  static std::vector<testing::FakeDevicePlugin::Call> Allocations(
      const testing::FakeDevicePlugin& plugin) {
    auto calls = plugin.Calls();
    std::erase_if(calls,
                  [](const auto& call) { return call.method != "allocate"; });
    return calls;
  }
  static FakeDevicePluginOptions Options(Way way = Way::kSocket) {
    FakeDevicePluginOptions options;
    options.resource = kTpu;
    options.devices = 4;
    options.way = way;
    return options;
  }

  NodeFolder node_;
};

TEST_P(DevicePluginTest, APodGetsWhatItsPluginAnswers) {
  Daemon daemon(node_.root());
  const auto plugin = node_.StartPlugin(Options(GetParam()));
  node_.Write("p.yaml", PodYaml("p", 2));
  ASSERT_TRUE(WaitFor("p", "ready")) << daemon.log();
  const json answer = Answer("p");
  EXPECT_EQ(answer["env"][0]["name"], "EXAMPLE_COM_TPU");
  EXPECT_EQ(answer["env"][0]["value"], "tpu-0,tpu-1");
  EXPECT_EQ(answer["devices"][1]["containerPath"], "/dev/tpu-1");
  EXPECT_EQ(answer["mounts"][1]["containerPath"], "/run/devices/tpu-1");
  node_.Remove("p.yaml");
  EXPECT_TRUE(WaitFor("p", "released"));
}
INSTANTIATE_TEST_SUITE_P(Ways, DevicePluginTest,
                         ::testing::Values(Way::kSocket, Way::kDirectory,
                                           Way::kBoth));

// W-01: the pod is there before its plugin, and that before the daemon.
TEST_F(DevicePluginTest, WhoComesLateIsWaitedFor) {
  node_.Write("p.yaml", PodYaml("p", 1));
  Daemon daemon(node_.root());
  ASSERT_TRUE(WaitFor("p", "waiting"));
  const auto plugin = node_.StartPlugin(Options());
  EXPECT_TRUE(WaitFor("p", "ready"));
}

// W-02, W-35: kill -9 changes no answer, and the plugin comes back by itself.
TEST_F(DevicePluginTest, AnswersAndHoldsOutliveTheDaemon) {
  const auto plugin = node_.StartPlugin(Options());
  auto daemon = std::make_unique<Daemon>(node_.root());
  node_.Write("p.yaml", PodYaml("p", 3));
  ASSERT_TRUE(WaitFor("p", "ready"));
  const json before = Answer("p");
  daemon->Kill();
  daemon = std::make_unique<Daemon>(node_.root());
  ASSERT_TRUE(WaitFor("p", "ready"));
  EXPECT_EQ(Answer("p"), before);
  ASSERT_TRUE(plugin->WaitForRegistrations(2, kPatience));
  node_.Write("q.yaml", PodYaml("q", 1));
  ASSERT_TRUE(WaitFor("q", "ready"));
  EXPECT_EQ(Answer("q")["env"][0]["value"], "tpu-3");
  EXPECT_EQ(Allocations(*plugin).size(), 2u);
}

TEST_F(DevicePluginTest, PluginsLearnWhomACallIsForWhenTold) {
  Daemon daemon(node_.root(),
                Configured(node_.root(), "podIdentityMetadata: true"));
  const auto plugin = node_.StartPlugin(Options());
  node_.Write("p.yaml", PodYaml("p", 1));
  ASSERT_TRUE(WaitFor("p", "ready"));
  const auto calls = Allocations(*plugin);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].metadata.at("devmgr-pod-uid"), "u-p");
  EXPECT_EQ(calls[0].metadata.at("devmgr-container"), "c");
}

// What fsck says can be done about it does help.
TEST_F(DevicePluginTest, AMissingSpecComesBackWithThePlugin) {
  Daemon daemon(node_.root());
  FakeDevicePluginOptions options = Options();
  options.cdi = true;
  auto plugin = node_.StartPlugin(options);
  node_.Write("p.yaml", PodYaml("p", 1));
  ASSERT_TRUE(WaitFor("p", "ready"));
  EXPECT_EQ(node_.Ctl({"fsck"}).code, 0);
  ASSERT_EQ(node_.cdi_files(), 1u);
  std::filesystem::remove_all(node_.root() / "cdi");
  const Exit found = node_.Ctl({"fsck", "--repair", "--yes"});
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.out, HasSubstr("missing-spec"));
  EXPECT_THAT(found.out, HasSubstr("pod/default/p: by hand: "));
  plugin = nullptr;
  plugin = node_.StartPlugin(options);
  EXPECT_EQ(node_.Ctl({"fsck"}).code, 0) << node_.Ctl({"fsck"}).out;
  daemon.Kill();
  const Exit stopped = RunTool(
      "devmgrctl", {"fsck", "--state-dir", (node_.root() / "state").string(),
                    "--cdi-spec-dir", (node_.root() / "cdi").string()});
  EXPECT_EQ(stopped.code, 0) << stopped.out << stopped.err;
}

TEST_F(DevicePluginTest, TwoDaemonsDoNotShareARegistrySocket) {
  Daemon daemon(node_.root());
  ASSERT_NE(daemon.Inspect(), nullptr);
  const NodeFolder other;
  Daemon second(
      other.root(),
      Configured(other.root(), "devicePluginDir: " + node_.root().string() +
                                   "/device-plugins"));
  EXPECT_NE(second.Wait(), 0);
  EXPECT_THAT(second.log(), HasSubstr("another process listens on"));
}

}  // namespace
}  // namespace devmgr
