// SPDX-License-Identifier: Apache-2.0
//
// devmgrd below an API server: what it writes there.
#include <devmgr/testing_api_server.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "e2e/daemon.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using testing::ScriptedApiServer;

constexpr char kNode[] = "/api/v1/nodes/n1";
constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr char kObjects[] = R"(
apiVersion: v1
kind: Node
metadata: {name: n1, uid: u-n1}
status: {capacity: {cpu: "8"}, allocatable: {cpu: "8"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: of-before}
spec: {driver: gone.example.com, nodeName: n1, pool: {name: n1, generation: 1}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: of-another-node}
spec: {driver: d.example.com, nodeName: n2, pool: {name: n2, generation: 1}}
)";

class ApiWritesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::ScriptedApiServerOptions options;
    options.objects = kObjects;
    auto server = ScriptedApiServer::Start(std::move(options));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    std::ofstream(Kubeconfig())
        << "current-context: c\n"
           "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
           "clusters: [{name: k, cluster: {server: '"
        << server_->url() << "'}}]\nusers: [{name: u, user: {}}]\n";
    std::ofstream(ConfigFile())
        << "nodeName: n1\napiServer:\n  kubeconfig: " << Kubeconfig()
        << "\n  qps: 20.5\n"
        << "pluginGracePeriod: 1s\nfeatureGates:\n"
        << "  DRAOptionalNodeOperations: true\n";
  }
  std::string Kubeconfig() const {
    return (node_.root() / "kubeconfig").string();
  }
  std::string ConfigFile() const {
    return (node_.root() / "config.yaml").string();
  }
  std::unique_ptr<Daemon> Start() const {
    return std::make_unique<Daemon>(
        node_.root(), std::vector<std::string>{"--config", ConfigFile()});
  }
  std::string Read(const std::string& target) const {
    return server_->Do("GET", target).value_or("");
  }
  /// Waits, looking after each request, until what the server has at `target`
  /// has `text` in it, or has not.
  bool WaitFor(const std::string& target, const std::string& text,
               bool has = true) const {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while ((Read(target).find(text) != std::string::npos) != has) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      server_->WaitForCalls(server_->Calls().size() + 1,
                            std::chrono::milliseconds(200));
    }
    return true;
  }

  NodeFolder node_;
  std::unique_ptr<ScriptedApiServer> server_;
};

// API-025, API-026
TEST_F(ApiWritesTest, TheNodeSaysWhatAPluginHasUntilItIsGone) {
  const auto daemon = Start();
  testing::FakeDevicePluginOptions options;
  options.resource = "example.com/tpu";
  options.devices = 4;
  auto plugin = node_.StartPlugin(options);
  ASSERT_NE(plugin, nullptr);
  ASSERT_TRUE(
      WaitFor(kNode, R"("allocatable":{"cpu":"8","example.com/tpu":"4"})"))
      << Read(kNode) << daemon->log();
  EXPECT_THAT(Read(kNode),
              HasSubstr(R"("capacity":{"cpu":"8","example.com/tpu":"4"})"));
  EXPECT_TRUE(
      WaitFor(kNode, R"("declaredFeatures":["DRAOptionalNodeOperations"])"));
  plugin.reset();
  EXPECT_TRUE(WaitFor(kNode, "example.com/tpu", false)) << Read(kNode);
  EXPECT_THAT(Read(kNode), HasSubstr(R"("allocatable":{"cpu":"8"})"));
}

TEST_F(ApiWritesTest, SlicesOfBeforeAreDeletedAtTheStart) {
  const auto daemon = Start();
  EXPECT_TRUE(WaitFor(kSlices, "of-before", false)) << daemon->log();
  EXPECT_THAT(Read(kSlices), HasSubstr("of-another-node"));
}

TEST_F(ApiWritesTest, EventsOfPodsAreThere) {
  const auto driver = node_.StartDriver();
  const auto daemon = Start();
  const std::string claim = ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"});
  // The driver reads it there; devmgrd does not look.
  node_.Write("claim.yaml", claim);
  std::string pod = PodManifest("p", "u-p", "c1");
  const std::string spec = "spec:\n";
  pod.insert(pod.find(spec) + spec.size(), "  nodeName: n1\n");
  ASSERT_THAT(server_->Apply(claim + pod), IsOk());
  constexpr char kEvents[] = "/api/v1/namespaces/default/events";
  ASSERT_TRUE(WaitFor(kEvents, R"("reason":"Prepared")")) << daemon->log();
  EXPECT_THAT(Read(kEvents), HasSubstr(R"("uid":"u-p")"));
  EXPECT_THAT(Read(kEvents), HasSubstr(R"("host":"n1")"));
}

TEST_F(ApiWritesTest, TheRatesAreInTheConfiguration) {
  const Exit printed =
      RunTool("devmgrd", {"--config", ConfigFile(), "--print-config"});
  EXPECT_THAT(printed.out, HasSubstr("  qps: 20.5\n  burst: 100\n"));
  for (const char* line : {"qps: 0", "qps: many", "burst: 1.5", "burst: 0"}) {
    std::ofstream(ConfigFile()) << "apiServer:\n  " << line << "\n";
    const Exit refused = RunTool("devmgrd", {"--config", ConfigFile()});
    EXPECT_EQ(refused.code, 2) << line;
    EXPECT_THAT(refused.err, HasSubstr("number above 0, up to 1000000"));
  }
}

TEST_F(ApiWritesTest, WhetherItIsTheAgentIsInTheConfiguration) {
  EXPECT_THAT(
      RunTool("devmgrd", {"--config", ConfigFile(), "--print-config"}).out,
      HasSubstr("  nodeAgent: false\n"));
  std::ofstream(ConfigFile())
      << "nodeName: n1\napiServer:\n  inCluster: true\n  nodeAgent: true\n";
  EXPECT_THAT(
      RunTool("devmgrd", {"--config", ConfigFile(), "--print-config"}).out,
      HasSubstr("  nodeAgent: true\n"));
  std::ofstream(ConfigFile()) << "apiServer:\n  nodeAgent: true\n";
  Exit refused = RunTool("devmgrd", {"--config", ConfigFile()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("there is no server to write to"));
  std::ofstream(ConfigFile()) << "apiServer:\n  nodeAgent: 7\n";
  refused = RunTool("devmgrd", {"--config", ConfigFile()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("apiServer.nodeAgent: must be true or"));
}

}  // namespace
}  // namespace devmgr
