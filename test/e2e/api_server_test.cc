// SPDX-License-Identifier: Apache-2.0
//
// devmgrd below an API server: pods and claims come from there.
#include <devmgr/testing_api_server.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "e2e/daemon.h"
#include "support/http_client.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using testing::ApiFault;
using ::testing::HasSubstr;
using testing::ScriptedApiServer;

constexpr char kPod[] = "/api/v1/namespaces/default/pods/p";

constexpr char kNode1[] =
    "apiVersion: v1\nkind: Node\nmetadata: {name: n1, uid: u-n1}\n";

class ApiServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = ScriptedApiServer::Start({});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    WriteKubeconfig();
  }
  void WriteKubeconfig() const {
    std::ofstream(Kubeconfig())
        << "current-context: c\n"
           "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
           "clusters: [{name: k, cluster: {server: '"
        << server_->url() << "'}}]\nusers: [{name: u, user: {}}]\n";
  }
  std::string Kubeconfig() const {
    return (node_.root() / "kubeconfig").string();
  }
  /// A pod of this node and its claim, which a scheduler has allocated.
  void Schedule() {
    const std::string claim = ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"});
    // The driver reads it there; devmgrd does not look.
    node_.Write("claim.yaml", claim);
    std::string pod = PodManifest("p", "u-p", "c1");
    const std::string spec = "spec:\n";
    pod.insert(pod.find(spec) + spec.size(), "  nodeName: n1\n");
    ASSERT_THAT(server_->Apply(claim + pod), IsOk());
  }
  std::unique_ptr<Daemon> Start(std::vector<std::string> flags = {}) const {
    flags.insert(flags.end(),
                 {"--node-name", "n1", "--kubeconfig", Kubeconfig()});
    return std::make_unique<Daemon>(node_.root(), std::move(flags));
  }
  /// Of the calls that came after the first ones.
  std::vector<std::string> Targets(std::size_t first) const {
    std::vector<std::string> targets;
    for (const ScriptedApiServer::Call& call : server_->Calls()) {
      if (first > 0) {
        --first;
      } else {
        targets.push_back(call.target);
      }
    }
    return targets;
  }
  ::testing::AssertionResult WaitFor(const std::string& state) const {
    const Exit exit =
        node_.Ctl({"wait", "pod", "p", "--for=" + state, "--timeout", "20s"});
    if (exit.code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << "exit " << exit.code << ": " << exit.err
           << node_.Ctl({"status"}).out;
  }

  /// An event or a message, within the patience of a test.
  ::testing::AssertionResult WaitForLog(const Daemon& daemon,
                                        const std::string& part) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::uint64_t version = 0;
    const auto inspector = daemon.Inspect();
    while (daemon.log().find(part) == std::string::npos) {
      if (std::chrono::steady_clock::now() > end) {
        return ::testing::AssertionFailure() << "no '" << part << "'";
      }
      // What is logged is not announced, but little happens without a change.
      const auto changed =
          inspector->WaitForChange(version, std::chrono::milliseconds(50));
      if (changed.ok()) version = *changed;
    }
    return ::testing::AssertionSuccess();
  }

  static std::string Metrics(const Daemon& daemon) {
    constexpr std::string_view kBefore = "metrics are at http://127.0.0.1:";
    const std::string log = daemon.log();
    const auto found = log.find(kBefore);
    if (found == std::string::npos) return "";
    return HttpGet(
        static_cast<in_port_t>(std::stoi(log.substr(found + kBefore.size()))),
        "/metrics");
  }

  NodeFolder node_;
  std::unique_ptr<ScriptedApiServer> server_;
};

TEST_F(ApiServerTest, APodOfTheServerGetsItsDevicesAndGivesThemBack) {
  const auto driver = node_.StartDriver();
  const auto daemon = Start();
  Schedule();
  ASSERT_TRUE(WaitFor("ready")) << daemon->log();
  EXPECT_THAT(node_.Ctl({"resolve", "p"}).out, HasSubstr("gpu-0"));
  EXPECT_THAT(node_.Ctl({"status"}).out,
              HasSubstr("API server of " + Kubeconfig() + " (node n1)"));
  // As the node's agent deletes a pod whose containers have ended.
  ASSERT_THAT(server_->Do("DELETE", kPod, R"({"gracePeriodSeconds": 0})",
                          "application/json"),
              IsOk());
  EXPECT_TRUE(WaitFor("released")) << daemon->log();
  EXPECT_EQ(node_.cdi_files(), 0u);
}

// API-031
TEST_F(ApiServerTest, AnswersWhileTheServerIsAway) {
  const auto driver = node_.StartDriver();
  auto daemon = Start();
  Schedule();
  ASSERT_TRUE(WaitFor("ready")) << daemon->log();
  const std::string before = node_.Ctl({"resolve", "p"}).out;
  server_.reset();
  daemon->Kill();
  daemon = Start();
  daemon->Inspect();
  EXPECT_EQ(node_.Ctl({"resolve", "p"}).out, before);
  // Nothing that it cannot see is gone.
  EXPECT_THAT(node_.Ctl({"get", "pods"}).out, HasSubstr("Ready"));
}

TEST_F(ApiServerTest, ServesWhatTheLedgerKnowsWithoutAKubeconfig) {
  const auto driver = node_.StartDriver();
  auto daemon = Start();
  Schedule();
  ASSERT_TRUE(WaitFor("ready")) << daemon->log();
  const std::string before = node_.Ctl({"resolve", "p"}).out;
  daemon->Kill();
  std::filesystem::rename(Kubeconfig(), Kubeconfig() + ".away");
  daemon = Start();
  ASSERT_NE(daemon->Inspect(), nullptr) << daemon->log();
  EXPECT_EQ(node_.Ctl({"resolve", "p"}).out, before);
  const std::string problem = "cannot open '" + Kubeconfig() + "'";
  EXPECT_THAT(node_.Ctl({"status"}).out, HasSubstr(problem));
  ASSERT_TRUE(WaitForLog(*daemon, "SourceProblem")) << daemon->log();
  EXPECT_THAT(node_.Ctl({"events"}).out, HasSubstr(problem));
  EXPECT_THAT(daemon->log(), HasSubstr(problem));
  // What was deleted meanwhile is released once it can be seen again.
  ASSERT_THAT(server_->Do("DELETE", kPod, R"({"gracePeriodSeconds": 0})",
                          "application/json"),
              IsOk());
  std::filesystem::rename(Kubeconfig() + ".away", Kubeconfig());
  EXPECT_TRUE(WaitForLog(*daemon, "SourceInDoubt")) << daemon->log();
  EXPECT_THAT(node_.Ctl({"get", "pods"}).out, HasSubstr("Ready"));
}

// API-009
TEST_F(ApiServerTest, AsksForNothingOlderThanBeforeARestart) {
  ASSERT_THAT(server_->Apply(kNode1), IsOk());
  const auto driver = node_.StartDriver();
  auto daemon = Start();
  Schedule();
  ASSERT_TRUE(WaitFor("ready")) << daemon->log();
  std::chrono::milliseconds took{0};
  EXPECT_EQ(daemon->Terminate(&took), 0);
  const std::size_t calls = server_->Calls().size();
  daemon = Start();
  ASSERT_TRUE(server_->WaitForCalls(calls + 3, kPatience));
  EXPECT_THAT(
      Targets(calls),
      ::testing::Contains(HasSubstr("resourceVersionMatch=NotOlderThan")));
}

// API-032
TEST_F(ApiServerTest, PreparesAgainAfterARebootWhileTheServerIsAway) {
  const auto driver = node_.StartDriver();
  auto daemon = Start({"--boot-id", "boot-1"});
  Schedule();
  ASSERT_TRUE(WaitFor("ready")) << daemon->log();
  server_.reset();
  daemon->Kill();
  daemon = Start({"--boot-id", "boot-2"});
  ASSERT_TRUE(WaitFor("ready")) << daemon->log();
  EXPECT_THAT(node_.Ctl({"resolve", "p"}).out, HasSubstr("gpu-0"));
  EXPECT_THAT(node_.Ctl({"get", "sources"}).out, HasSubstr("Failing"));
}

// API-033
TEST_F(ApiServerTest, WaitsForAClaimThatWasNeverRead) {
  ApiFault fault;
  fault.action = ApiFault::Action::kFail;
  fault.verb = "get";
  fault.resource = "resourceclaims";
  fault.code = 503;
  fault.message = "the store is away";
  fault.times = 0;
  server_->AddFault(fault);
  const auto driver = node_.StartDriver();
  const auto daemon = Start();
  Schedule();
  ASSERT_TRUE(WaitFor("waiting")) << daemon->log();
  EXPECT_THAT(node_.Ctl({"get", "pods"}).out, HasSubstr("claim/default/c1"));
  EXPECT_THAT(node_.Ctl({"status"}).out, HasSubstr("the store is away"));
  server_->ClearFaults();
  EXPECT_TRUE(WaitFor("ready")) << daemon->log();
}

// API-036
TEST_F(ApiServerTest, DoubtsAListThatIsSuddenlyEmpty) {
  const auto driver = node_.StartDriver();
  auto daemon = Start();
  Schedule();
  ASSERT_TRUE(WaitFor("ready")) << daemon->log();
  daemon->Kill();
  ASSERT_THAT(server_->Do("DELETE", kPod, R"({"gracePeriodSeconds": 0})",
                          "application/json"),
              IsOk());
  daemon = Start();
  ASSERT_TRUE(WaitForLog(*daemon, "SourceInDoubt")) << daemon->log();
  EXPECT_THAT(node_.Ctl({"get", "pods"}).out, HasSubstr("Ready"));
  EXPECT_EQ(
      node_.Ctl({"confirm", "source", "--reason", "it ended", "--yes"}).code,
      0);
  EXPECT_TRUE(WaitFor("released")) << daemon->log();
}

TEST_F(ApiServerTest, TrustsNoListOfAnotherNodeUntilAnOperatorDoes) {
  ASSERT_THAT(server_->Apply(kNode1), IsOk());
  const auto driver = node_.StartDriver();
  auto daemon = Start();
  Schedule();
  ASSERT_TRUE(WaitFor("ready")) << daemon->log();
  std::chrono::milliseconds took{0};
  EXPECT_EQ(daemon->Terminate(&took), 0);
  // The kubeconfig leads to another cluster, which has a node of this name.
  auto other = ScriptedApiServer::Start({});
  ASSERT_THAT(other, IsOk());
  server_ = *std::move(other);
  ASSERT_THAT(server_->Apply("apiVersion: v1\nkind: Node\n"
                             "metadata: {name: n1, uid: u-other}\n"),
              IsOk());
  WriteKubeconfig();
  daemon = Start();
  ASSERT_TRUE(WaitForLog(*daemon, "the node has the UID u-other, and had u-n1"))
      << daemon->log();
  EXPECT_THAT(node_.Ctl({"get", "pods"}).out, HasSubstr("Ready"));
  EXPECT_EQ(node_.Ctl({"confirm", "source", "--reason", "moved", "--yes"}).code,
            0);
  EXPECT_TRUE(WaitFor("released")) << daemon->log();
}

TEST_F(ApiServerTest, ShowsHowTheServerDoes) {
  const auto daemon = Start({"--metrics-address", "127.0.0.1:0"});
  ASSERT_TRUE(server_->WaitForWatches(1, kPatience)) << daemon->log();
  ASSERT_TRUE(WaitForLog(*daemon, "metrics are at ")) << daemon->log();
  const Exit sources = node_.Ctl({"get", "sources", "-o", "json"});
  EXPECT_THAT(sources.out, HasSubstr("\"state\": \"Watching\""));
  EXPECT_THAT(sources.out, HasSubstr("\"server\": \"" + server_->url() + "\""));
  EXPECT_THAT(sources.out, HasSubstr("\"lastList\""));
  EXPECT_THAT(node_.Ctl({"get", "sources", "-o", "wide"}).out,
              HasSubstr(server_->url()));
  const std::string status = node_.Ctl({"status"}).out;
  EXPECT_THAT(status, HasSubstr("API server"));
  EXPECT_THAT(status, HasSubstr(server_->url() + ", Watching"));
  EXPECT_THAT(status, ::testing::ContainsRegex("Actuate: *source"));
  const std::string page = Metrics(*daemon);
  EXPECT_THAT(page, HasSubstr("devmgr_source_requests_total{verb=\"list\","
                              "resource=\"pods\",code=\"200\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("devmgr_source_watch_restarts_total 0\n"));
  EXPECT_THAT(page, HasSubstr("devmgr_source_age_seconds 0\n"));
}

TEST_F(ApiServerTest, ReadsTheCredentialsAgainOnSighup) {
  const auto daemon = Start();
  ASSERT_NE(daemon->Inspect(), nullptr) << daemon->log();
  ASSERT_EQ(::kill(daemon->pid(), SIGHUP), 0);
  EXPECT_TRUE(WaitForLog(*daemon, "credentials are read again"))
      << daemon->log();
  EXPECT_EQ(node_.Ctl({"status"}).code, 0);
}

// API-034
TEST_F(ApiServerTest, AClaimThatTheNodeMayNotReadYetIsTriedAgain) {
  ApiFault fault;
  fault.action = ApiFault::Action::kFail;
  fault.verb = "get";
  fault.resource = "resourceclaims";
  fault.code = 403;
  fault.message =
      "resourceclaims \"c1\" is forbidden: no relationship found between node "
      "'n1' and this object";
  fault.times = 2;
  server_->AddFault(fault);
  const auto driver = node_.StartDriver();
  const auto daemon = Start();
  Schedule();
  EXPECT_TRUE(WaitFor("ready")) << daemon->log();
}

/// Whether the process has loaded a library whose name begins so.
bool HasLoaded(pid_t pid, const std::string& library) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  EXPECT_THAT(text, HasSubstr("devmgrd"));
  return text.find("/" + library) != std::string::npos;
}

TEST_F(ApiServerTest, LibcurlIsLoadedForAnApiServerOnly) {
  {
    const Daemon daemon(node_.root());
    ASSERT_NE(daemon.Inspect(), nullptr);
    EXPECT_FALSE(HasLoaded(daemon.pid(), "libcurl.so"));
    // It comes with libcurl only.
    EXPECT_FALSE(HasLoaded(daemon.pid(), "libldap"));
  }
  const auto daemon = Start();
  ASSERT_NE(daemon->Inspect(), nullptr);
  EXPECT_TRUE(HasLoaded(daemon->pid(), "libcurl.so"));
}

TEST_F(ApiServerTest, SaysWhatIsMissingInTheConfiguration) {
  const std::string root = node_.root().string();
  const Exit unnamed =
      RunTool("devmgrd", {"--root", root, "--kubeconfig", Kubeconfig()});
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_THAT(unnamed.err, HasSubstr("nodeName must be set"));
  const Exit printed =
      RunTool("devmgrd", {"--root", root, "--node-name", "n1", "--kubeconfig",
                          Kubeconfig(), "--print-config"});
  EXPECT_THAT(printed.out, HasSubstr("authority: scheduler"));
  EXPECT_THAT(printed.out, HasSubstr("  kubeconfig: " + Kubeconfig()));
  const std::string file = root + "/config.yaml";
  std::ofstream(file) << "nodeName: n1\napiServer:\n  inCluster: true\n"
                         "  kubeconfig: /etc/kubeconfig\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("kubeconfig and inCluster exclude each other"));
  std::ofstream(file) << "apiServer:\n  server: a\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("config.yaml:2: apiServer: unknown key 'server'"));
}

}  // namespace
}  // namespace devmgr
