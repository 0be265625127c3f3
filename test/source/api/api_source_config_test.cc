// SPDX-License-Identifier: Apache-2.0
//
// A source whose kubeconfig is not there, is wrong, or changes.
#include <devmgr/api_server.h>
#include <devmgr/testing_api_server.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "source/api/api_texts.h"
#include "support/mailbox.h"
#include "support/raw_http_server.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"
#include "support/test_certificates.h"

namespace devmgr::apiserver {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::ScriptedApiServer;
using testing::ScriptedApiServerOptions;

class ApiSourceConfigTest : public ::testing::Test {
 protected:
  ~ApiSourceConfigTest() override {
    if (source != nullptr) source->Unsubscribe();
  }
  std::filesystem::path Path(const std::string& name) const {
    return folder.path() / name;
  }
  void Write(const std::string& name, const std::string& text) const {
    // In one step, as a file that is written slowly is a mistake for a while.
    std::ofstream(Path(name + ".new")) << text;
    std::filesystem::rename(Path(name + ".new"), Path(name));
  }
  static std::string ConfigFor(const std::string& url,
                               const std::string& cluster = "") {
    return "current-context: c\n"
           "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
           "clusters: [{name: k, cluster: {server: '" +
           url + "'" + cluster +
           "}}]\n"
           "users: [{name: u, user: {}}]\n";
  }
  static std::unique_ptr<ScriptedApiServer> ServerWith(
      const std::string& name) {
    ScriptedApiServerOptions options;
    options.objects = PodText(name, "u-" + name, 7);
    auto server = ScriptedApiServer::Start(std::move(options));
    EXPECT_THAT(server, IsOk());
    return *std::move(server);
  }
  void Start() {
    ApiServerOptions options;
    options.kubeconfig = Path("config");
    options.node_name = "n1";
    options.log = [this](LogLevel, std::string_view text) {
      log.Put(std::string(text));
    };
    auto started = WatchApiServer(options);
    ASSERT_THAT(started, IsOk());
    source = *std::move(started);
    source->Subscribe([this] { changes.Put(true); });
  }
  bool WaitFor(const std::function<bool(const ObjectSnapshot&)>& wanted) {
    while (!wanted(*source->Snapshot())) {
      if (!changes.Take()) return false;
    }
    return true;
  }
  bool WaitForPod(const std::string& name) {
    return WaitFor([&](const ObjectSnapshot& snapshot) {
      return snapshot.complete && snapshot.pods.contains({"ns", name});
    });
  }
  /// With the source itself.
  bool WaitForProblem(const std::string& part) {
    return WaitFor([&](const ObjectSnapshot& snapshot) {
      for (const ManifestProblem& problem : snapshot.problems) {
        if (!problem.of_source) continue;
        if (problem.ToString().find(part) != std::string::npos) return true;
      }
      return false;
    });
  }
  bool WaitForLog(const std::string& part) {
    while (const auto text = log.Take()) {
      if (text->find(part) != std::string::npos) return true;
    }
    return false;
  }

  TempFolder folder;
  Mailbox<bool> changes;
  Mailbox<std::string> log;
  std::unique_ptr<ApiServerSource> source;
};

TEST_F(ApiSourceConfigTest, BeginsWithoutAKubeconfigAndTakesItOnceItIsThere) {
  const auto server = ServerWith("a");
  Start();
  ASSERT_TRUE(WaitForProblem(Path("config").string()));
  EXPECT_FALSE(source->Snapshot()->complete);
  EXPECT_THAT(source->State(), HasSubstr("no configuration; last error: "));
  EXPECT_EQ(source->Describe(),
            "API server of " + Path("config").string() + " (node n1)");
  Write("config", ConfigFor(server->url()));
  EXPECT_TRUE(WaitForPod("a"));
  EXPECT_TRUE(source->Snapshot()->problems.empty());
}

TEST_F(ApiSourceConfigTest, SaysWhatIsWrongWithTheKubeconfig) {
  Write("config", "kind: Config");
  Start();
  EXPECT_TRUE(WaitForProblem("current-context is not set"));
  EXPECT_TRUE(WaitForLog("current-context is not set"));
}

TEST_F(ApiSourceConfigTest, KeepsTheLastKubeconfigWhileTheNewOneIsBroken) {
  const auto server = ServerWith("a");
  Write("config", ConfigFor(server->url()));
  Start();
  ASSERT_TRUE(WaitForPod("a"));
  Write("config", "{");
  ASSERT_TRUE(WaitForProblem("what it said before stays in use"));
  EXPECT_TRUE(source->Snapshot()->complete);
  ASSERT_THAT(server->Apply(PodText("b", "u-b", 8)), IsOk());
  EXPECT_TRUE(WaitForPod("b"));
  Write("config", ConfigFor(server->url()));
  EXPECT_TRUE(WaitFor([](const ObjectSnapshot& snapshot) {
    return snapshot.problems.empty();
  }));
}

TEST_F(ApiSourceConfigTest, ShowsWhatItKnewUntilAnotherServerHasListed) {
  const auto first = ServerWith("a");
  Write("config", ConfigFor(first->url()));
  Start();
  ASSERT_TRUE(WaitForPod("a"));
  const std::uint64_t watch = source->Snapshot()->watch;
  const auto second = ServerWith("b");
  testing::ApiFault fault;
  fault.action = testing::ApiFault::Action::kFail;
  fault.verb = "list";
  fault.resource = "pods";
  fault.code = 503;
  fault.message = "not yet";
  second->AddFault(fault);
  Write("config", ConfigFor(second->url()));
  ASSERT_TRUE(WaitForProblem("not yet"));
  EXPECT_TRUE(source->Snapshot()->pods.contains({"ns", "a"}));
  ASSERT_TRUE(WaitForPod("b"));
  EXPECT_FALSE(source->Snapshot()->pods.contains({"ns", "a"}));
  EXPECT_FALSE(source->Snapshot()->vouched);
  // It is another watch: what it lacks was not seen to go.
  EXPECT_NE(source->Snapshot()->watch, watch);
}

TEST_F(ApiSourceConfigTest, WaitsForAFileThatTheKubeconfigNames) {
  const auto server = ServerWith("a");
  Write("config",
        ConfigFor("https://127.0.0.1:1", ", certificate-authority: ca.pem"));
  Start();
  ASSERT_TRUE(WaitForProblem("ca.pem"));
  EXPECT_FALSE(source->Snapshot()->complete);
  Write("ca.pem", MakeCertificate("test CA").Pem());
  // Then the server is asked, which is not there.
  EXPECT_TRUE(WaitForProblem("/api/v1/pods"));
}

TEST_F(ApiSourceConfigTest, TakesTheRightAuthorityInThePlaceOfAWrongOne) {
  const TestCertificate authority = MakeCertificate("test CA");
  RawHttpServer server;
  server.UseTls(MakeCertificate("127.0.0.1", &authority));
  Write("ca.pem", MakeCertificate("another CA").Pem());
  Write("config",
        ConfigFor(server.Url("https"), ", certificate-authority: ca.pem"));
  Start();
  EXPECT_FALSE(server.Accept().is_open());
  ASSERT_TRUE(WaitForProblem("certificate"));
  Write("ca.pem", authority.Pem());
  for (;;) {
    RawConnection connection = server.Accept();
    if (!connection.is_open()) continue;
    EXPECT_NE(connection.ReadRequest(), "");
    break;
  }
}

TEST_F(ApiSourceConfigTest, ReadsAgainWhenItIsAskedToHurry) {
  // The link leads to a folder that is not watched.
  const TempFolder elsewhere;
  std::filesystem::create_symlink(elsewhere.path() / "config", Path("config"));
  const auto first = ServerWith("a");
  std::ofstream(elsewhere.path() / "config") << ConfigFor(first->url());
  Start();
  ASSERT_TRUE(WaitForPod("a"));
  const auto second = ServerWith("b");
  std::ofstream(elsewhere.path() / "config") << ConfigFor(second->url());
  source->Hurry();
  EXPECT_TRUE(WaitForPod("b"));
  EXPECT_TRUE(WaitForLog("credentials are read again"));
}

TEST_F(ApiSourceConfigTest, StopsWhileThereIsNoKubeconfig) {
  Start();
  source.reset();
}

}  // namespace
}  // namespace devmgr::apiserver
