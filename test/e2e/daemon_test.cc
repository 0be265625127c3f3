// SPDX-License-Identifier: Apache-2.0
//
// The programs together: devmgrd, devmgrctl and a driver on real sockets.
#include "e2e/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/source_dir.h"

namespace devmgr {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// With its claim, as a scheduler has allocated it.
std::string Example(const std::string& file) {
  std::ifstream stream(std::string(DEVMGR_SOURCE_DIR) +
                       "/examples/manifests/allocated/" + file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

class DaemonTest : public ::testing::Test {
 protected:
  /// A pod `p` with a claim, prepared by a driver that then goes away.
  void PreparePod() {
    const auto driver = node_.StartDriver();
    Daemon daemon(node_.root());
    WritePod();
    ASSERT_TRUE(WaitFor("p", "ready"));
    before_ = node_.Ctl({"resolve", "p", "-o", "json"}).out;
    std::chrono::milliseconds took;
    ASSERT_EQ(daemon.Terminate(&took), 0) << daemon.log();
  }

  void WritePod() {
    node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                              PodManifest("p", "u-p", "c1"));
  }

  ::testing::AssertionResult WaitFor(const std::string& pod,
                                     const std::string& state) {
    const Exit exit =
        node_.Ctl({"wait", "pod", pod, "--for=" + state, "--timeout", "20s"});
    if (exit.code == 0) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << "exit " << exit.code << ": " << exit.err
           << node_.Ctl({"get", "pods", "-o", "json"}).out;
  }

  json Get(const std::string& what) {
    const Exit exit = node_.Ctl({"get", what, "-o", "json"});
    EXPECT_EQ(exit.code, 0) << exit.err;
    return json::parse(exit.out, nullptr, false);
  }

  NodeFolder node_;
  std::string before_;
};

// The main job, on the objects of the KEP.
TEST_F(DaemonTest, ExtendedResourcesGetTheirCdiDeviceIds) {
  const auto driver = node_.StartDriver();
  Daemon daemon(node_.root());
  node_.Write("kep.yaml", Example("kep-5004.yaml"));
  node_.Write("training.yaml", Example("training.yaml"));
  ASSERT_TRUE(WaitFor("demo", "ready"));
  ASSERT_TRUE(WaitFor("default/training", "ready"));
  const Exit demo = node_.Ctl({"resolve", "demo", "-o", "json"});
  const json answer = json::parse(demo.out);
  const std::string id = answer["containers"][0]["cdiDevices"][0]["name"];
  EXPECT_EQ(answer, json({{"apiVersion", "devmgr/v1alpha1"},
                          {"kind", "PodDevices"},
                          {"metadata",
                           {{"namespace", "default"},
                            {"name", "demo"},
                            {"uid", "5a1f3c4e-0000-4000-8000-000000000001"}}},
                          {"containers",
                           {{{"name", "demo"},
                             {"init", false},
                             {"cdiDevices",
                              {{{"name", id},
                                {"origin",
                                 {{"claim", "demo-extended-resources-8s27z"},
                                  {"request", "container-0-request-0"},
                                  {"driver", "gpu.example.com"},
                                  {"pool", "node-1"},
                                  {"device", "gpu-0"},
                                  {"resource", "example.com/gpu"}}}}}},
                             {"env", json::array()},
                             {"mounts", json::array()},
                             {"devices", json::array()},
                             {"annotations", json::array()},
                             {"resources", json::array()}}}}}));
  const json training =
      json::parse(node_.Ctl({"resolve", "training", "-o", "json"}).out);
  ASSERT_EQ(training["containers"].size(), 4u);
  EXPECT_TRUE(training["containers"][0]["init"]);
  EXPECT_EQ(training["containers"][1]["cdiDevices"].size(), 2u);
  EXPECT_EQ(training["containers"][2]["cdiDevices"][0]["origin"]["resource"],
            "deviceclass.resource.kubernetes.io/gpu.example.com");
  EXPECT_TRUE(training["containers"][3]["cdiDevices"].empty());
}

TEST_F(DaemonTest, StopsWithinTwoSecondsWhileADriverHangs) {
  testing::FakeDraDriverOptions options;
  testing::ScenarioStep hang;
  hang.action = testing::ScenarioStep::Action::kHang;
  hang.times = 0;
  options.scenario = {hang};
  const auto driver = node_.StartDriver(options);
  Daemon daemon(node_.root());
  WritePod();
  ASSERT_TRUE(driver->WaitForCalls(1, std::chrono::seconds(20)));
  std::chrono::milliseconds took;
  EXPECT_EQ(daemon.Terminate(&took), 0) << daemon.log();
  EXPECT_LT(took, std::chrono::seconds(2));
  EXPECT_FALSE(std::filesystem::exists(node_.root() / "devmgr.sock"));
}

// The alarm by which it notices that no pod has changed for a while is no end.
TEST_F(DaemonTest, GivesMemoryBackAndGoesOn) {
  PreparePod();
  Daemon daemon(node_.root());
  ASSERT_TRUE(WaitFor("p", "ready"));
  ASSERT_EQ(::kill(daemon.pid(), SIGALRM), 0);
  EXPECT_EQ(node_.Ctl({"resolve", "p", "-o", "json"}).out, before_);
  std::chrono::milliseconds took;
  EXPECT_EQ(daemon.Terminate(&took), 0) << daemon.log();
  EXPECT_THAT(daemon.log(), HasSubstr("stopping on signal 15"));
}

// DRA-101, DRA-102: the same boot needs no driver.
TEST_F(DaemonTest, AnswersAfterARestartWithoutTheDriver) {
  PreparePod();
  Daemon daemon(node_.root());
  ASSERT_TRUE(WaitFor("p", "ready"));
  EXPECT_EQ(node_.Ctl({"resolve", "p", "-o", "json"}).out, before_);
}

TEST_F(DaemonTest, RebootPreparesAgain) {
  PreparePod();
  Daemon daemon(node_.root(), {"--boot-id", "another"});
  daemon.Inspect();
  const Exit unavailable = node_.Ctl({"resolve", "p"});
  EXPECT_EQ(unavailable.code, 1);
  EXPECT_EQ(unavailable.out, "");
  EXPECT_EQ(Get("pods")["items"][0]["status"]["state"], "Preparing");
  const auto driver = node_.StartDriver();
  ASSERT_TRUE(WaitFor("p", "ready"));
  EXPECT_EQ(node_.Ctl({"resolve", "p", "-o", "json"}).out, before_);
  EXPECT_EQ(driver->Calls().size(), 1u);
}

TEST_F(DaemonTest, PodGoesWithItsManifestAlsoWhileWeWereDown) {
  PreparePod();
  ASSERT_EQ(node_.cdi_files(), 1u);
  node_.Remove("p.yaml");  // DRA-104
  Daemon daemon(node_.root());
  const auto driver = node_.StartDriver();
  ASSERT_TRUE(WaitFor("p", "released"));
  EXPECT_EQ(node_.cdi_files(), 0u);
  EXPECT_TRUE(Get("claims")["items"].empty());
  EXPECT_THAT(node_.Ctl({"history"}).out, HasSubstr("Unprepare"));
}

// As with --root and the system's directories: those are others' to make, and
// count once they are there.
TEST_F(DaemonTest, FindsSpecsInDirectoriesOutsideItsRoot) {
  const TempFolder system;
  const fs::path run = system.path() / "run/cdi";
  const auto driver = node_.StartDriver();
  Daemon daemon(node_.root(), {"--cdi-spec-dir", run.string(), "--cdi-spec-dir",
                               (node_.root() / "cdi").string()});
  WritePod();
  ASSERT_TRUE(WaitFor("p", "ready"));
  EXPECT_FALSE(fs::exists(system.path() / "run"));
  fs::create_directories(system.path() / "run");
  fs::rename(node_.root() / "cdi", run);
  Exit fsck = node_.Ctl({"fsck"});
  EXPECT_EQ(fsck.code, 0) << fsck.out << fsck.err;
  fs::remove_all(run);
  fsck = node_.Ctl({"fsck"});
  EXPECT_EQ(fsck.code, 1);
  EXPECT_THAT(fsck.out,
              HasSubstr("no CDI spec file in '" + run.string() + "', '" +
                        (node_.root() / "cdi").string() + "' defines"));
}

// DRA-020, DRA-021: sockets are found again, whoever restarts.
TEST_F(DaemonTest, FindsTheDriverAgainAfterEitherRestarts) {
  const auto driver = node_.StartDriver();
  {
    Daemon daemon(node_.root());
    ASSERT_TRUE(driver->WaitForRegistrations(1, std::chrono::seconds(20)));
  }
  Daemon daemon(node_.root());
  ASSERT_TRUE(driver->WaitForRegistrations(2, std::chrono::seconds(20)));
  ASSERT_TRUE(driver->Restart().ok());
  ASSERT_TRUE(driver->WaitForRegistrations(3, std::chrono::seconds(20)));
  WritePod();
  EXPECT_TRUE(WaitFor("p", "ready"));
}

TEST_F(DaemonTest, SecondDaemonIsToldWhoHoldsTheState) {
  Daemon first(node_.root());
  ASSERT_NE(first.Inspect(), nullptr);
  Daemon second(node_.root());
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_THAT(second.log(),
              HasSubstr("devmgrd (pid " + std::to_string(first.pid()) + ")"));
}

TEST_F(DaemonTest, StaleSocketIsReplacedAndALiveOneRespected) {
  const std::string path = (node_.root() / "devmgr.sock").string();
  const int stale = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(
      ::bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(stale, 1), 0);
  {
    Daemon daemon(node_.root());  // somebody listens: us
    EXPECT_EQ(daemon.Wait(), 1);
    EXPECT_THAT(daemon.log(), HasSubstr(std::to_string(::getpid())));
  }
  ::close(stale);  // the file stays, nobody answers
  Daemon daemon(node_.root());
  ASSERT_NE(daemon.Inspect(), nullptr);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(DaemonTest, StoppedStateIsReadWithoutChangingAByte) {
  {
    const auto driver = node_.StartDriver();
    Daemon daemon(node_.root());
    WritePod();
    ASSERT_TRUE(WaitFor("p", "ready"));
    const std::string state = (node_.root() / "state").string();
    const Exit refused =
        RunTool("devmgrctl", {"--state-dir", state, "get", "pods"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("devmgrd"));
    before_ = node_.Ctl({"resolve", "p", "-o", "json"}).out;
    daemon.Kill();
  }
  const std::filesystem::path state = node_.root() / "state";
  const std::string tree = TreeOf(state);
  // BO-163
  const Exit claims =
      RunTool("devmgrctl", {"--state-dir", state.string(), "get", "claims"});
  EXPECT_EQ(claims.code, 0) << claims.err;
  EXPECT_THAT(claims.out, HasSubstr("c1"));
  EXPECT_NE(claims.err, "");
  const Exit resolved = RunTool("devmgrctl", {"--state-dir", state.string(),
                                              "resolve", "p", "-o", "json"});
  EXPECT_EQ(resolved.out, before_);
  EXPECT_EQ(TreeOf(state), tree);
  EXPECT_EQ(node_.Ctl({"get", "claims"}).code, 4);
}

TEST_F(DaemonTest, NewerStateIsRefusedUntouched) {
  PreparePod();
  const std::filesystem::path state = node_.root() / "state";
  std::string tree;
  {
    std::ofstream(state / "format")
        << "devmgr ledger format 99\ncrc32c 163dd3ca\n";
    tree = TreeOf(state);
    Daemon daemon(node_.root());
    EXPECT_EQ(daemon.Wait(), 1);
    EXPECT_THAT(daemon.log(), HasSubstr("99"));
  }
  EXPECT_EQ(TreeOf(state), tree);
}

TEST_F(DaemonTest, BadFileIsReportedAndLosesNothing) {
  PreparePod();
  node_.Write("p.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n");
  const auto driver = node_.StartDriver();
  Daemon daemon(node_.root());
  const auto inspector = daemon.Inspect();
  // Restarted, it has no last good content: nothing may vanish.
  std::uint64_t version = 0;
  for (;;) {
    const auto node = inspector->Node();
    ASSERT_TRUE(node.ok());
    if (!node->source_problems.empty()) {
      EXPECT_FALSE(node->source_complete);
      EXPECT_THAT(node->source_problems,
                  ::testing::Contains(HasSubstr("p.yaml:3")));
      break;
    }
    version = *inspector->WaitForChange(version, std::chrono::seconds(1));
  }
  EXPECT_THAT(node_.Ctl({"status"}).out, HasSubstr("p.yaml"));
  EXPECT_EQ(node_.Ctl({"resolve", "p", "-o", "json"}).out, before_);
  EXPECT_TRUE(driver->Calls().empty());
  WritePod();
  ASSERT_TRUE(WaitFor("p", "ready"));
}

TEST_F(DaemonTest, EmbedderActsOnlyOnRequest) {
  const auto driver = node_.StartDriver();
  WritePod();
  {
    Daemon daemon(node_.root(), {"--actuate", "embedder"});
    daemon.Inspect();
    ASSERT_TRUE(driver->WaitForRegistrations(1, std::chrono::seconds(20)));
    EXPECT_EQ(node_.Ctl({"prepare", "pod", "nobody"}).code, 3);
    const Exit prepared =
        node_.Ctl({"prepare", "pod", "p", "--timeout", "20s"});
    ASSERT_EQ(prepared.code, 0) << prepared.err;
    node_.Remove("p.yaml");
    EXPECT_EQ(node_.Ctl({"resolve", "p"}).code, 0);
    const Exit released =
        node_.Ctl({"release", "pod", "p", "--timeout", "20s"});
    ASSERT_EQ(released.code, 0) << released.err;
    ASSERT_TRUE(WaitFor("p", "released"));
    daemon.Kill();
  }
  Daemon daemon(node_.root());
  daemon.Inspect();
  const Exit refused = node_.Ctl({"prepare", "pod", "p"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("embedder"));
}

TEST_F(DaemonTest, RejectedPodEndsTheWait) {
  Daemon daemon(node_.root());
  node_.Write("p.yaml", PodManifest("p", "u-p", "c1") +
                            "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, "
                            "uid: u-b}\nspec: {containers: [{name: c, "
                            "resources: {claims: [{name: nope}]}}]}\n");
  const Exit exit =
      node_.Ctl({"wait", "pod", "bad", "--for=ready", "--timeout", "20s"});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr("nope"));
  ASSERT_TRUE(WaitFor("p", "waiting"));
  const json pods = Get("pods");
  for (const json& pod : pods["items"]) {
    if (pod["metadata"]["name"] != "p") continue;
    EXPECT_EQ(pod["status"]["reason"], "ClaimNotFound");
    EXPECT_EQ(pod["status"]["waitingFor"][0]["name"], "default/c1");
  }
}

TEST_F(DaemonTest, FeatureGatesOfAKubeletAreTakenAndMisspeltOnesRefused) {
  const std::string root = node_.root().string();
  const std::string file = root + "/config.yaml";
  std::ofstream(file) << "featureGates:\n  NodeSwap: true\n"
                         "  DRAAdminAccess: false\n";
  const Exit taken =
      RunTool("devmgrd", {"--root", root, "--config", file, "--print-config"});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("NodeSwap: true"));
  EXPECT_THAT(taken.err,
              AllOf(HasSubstr("without effect on this node: NodeSwap"),
                    HasSubstr("set against their lock: DRAAdminAccess=false")));
  const Exit misspelt = RunTool(
      "devmgrd",
      {"--root", root, "--feature-gates", "NodeSwapp=true", "--print-config"});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_THAT(misspelt.out, ::testing::IsEmpty());
  EXPECT_THAT(misspelt.err, HasSubstr("featureGates: feature gate 'NodeSwapp' "
                                      "is not known; is 'NodeSwap' meant?"));
}

// BO-151: each mistake is quoted.
TEST_F(DaemonTest, AlignmentIsConfiguredAsForTheKubelet) {
  const std::string root = node_.root().string();
  const std::string file = root + "/config.yaml";
  const auto print = [&](const std::string& text) {
    std::ofstream(file) << text;
    return RunTool("devmgrd",
                   {"--root", root, "--config", file, "--print-config"});
  };
  const Exit taken = print(
      "topologyManagerPolicy: restricted\ntopologyManagerScope: pod\n"
      "topologyManagerPolicyOptions: {prefer-closest-numa-nodes: \"true\", "
      "max-allowable-numa-nodes: 34}\nsysfsDir: /tmp/sys\n");
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.out, AllOf(HasSubstr("topologyManagerPolicy: restricted\n"),
                               HasSubstr("topologyManagerScope: pod\n"),
                               HasSubstr("topologyManagerPolicyOptions:\n  "
                                         "max-allowable-numa-nodes: 34\n"),
                               HasSubstr("sysfsDir: /tmp/sys\n")));
  EXPECT_EQ(print(taken.out).out, taken.out);
  const std::pair<const char*, const char*> kWrong[] = {
      {"topologyManagerPolicy: foo", "unknown policy: 'foo'"},
      {"topologyManagerPolicy: restricted\ntopologyManagerScope: bar",
       "unknown scope: 'bar'"},
      {"topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {baz: "
       "\"1\"}",
       "unknown Topology Manager Policy option: 'baz'"},
      {"topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: "
       "{max-allowable-numa-nodes: 7}",
       "should not be less than 8, and it is 7"},
      {"topologyManagerPolicyOptions: [a]", "must be a map of options"}};
  for (const auto& [text, message] : kWrong) {
    const Exit refused = print(text);
    EXPECT_EQ(refused.code, 2) << text;
    EXPECT_THAT(refused.err, HasSubstr(message)) << text;
  }
}

TEST_F(DaemonTest, ConfigurationIsCheckedAndPrinted) {
  const std::string root = node_.root().string();
  const Exit printed = RunTool(
      "devmgrd", {"--root", root, "--node-name", "n1", "--print-config"});
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("nodeName: n1"));
  EXPECT_THAT(printed.out, HasSubstr("stateDir: " + root + "/state"));
  // Stock drivers write to the system's; the later one wins.
  EXPECT_THAT(printed.out, HasSubstr("cdiSpecDirs:\n  - /etc/cdi\n"
                                     "  - /var/run/cdi\n  - " +
                                     root + "/cdi\n"));
  const std::string file = root + "/config.yaml";
  std::ofstream(file) << "nodeName: n2\nactuate: embedder\n";
  const Exit read = RunTool("devmgrd", {"--root", root, "--config", file,
                                        "--node-name", "n3", "--print-config"});
  EXPECT_THAT(read.out, HasSubstr("nodeName: n3"));  // flags win
  EXPECT_THAT(read.out, HasSubstr("actuate: embedder"));
  std::ofstream(file) << "healthPolicy: {example.com/gpu: fail}\n"
                         "unhealthyFor: 90s\nrefuseEditConflicts: true\n";
  EXPECT_THAT(
      RunTool("devmgrd", {"--config", file, "--print-config"}).out,
      AllOf(HasSubstr("example.com/gpu: fail"), HasSubstr("unhealthyFor: 90s"),
            HasSubstr("refuseEditConflicts: true")));
  std::ofstream(file) << "draCompat: true\ndraApis: {d.example.com: v1alpha2}"
                         "\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file, "--print-config"}).out,
              AllOf(HasSubstr("draCompat: true"),
                    HasSubstr("d.example.com: v1alpha2")));
  std::ofstream(file) << "runtimeEndpoint: unix:///run/r.sock\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file, "--print-config"}).out,
              HasSubstr("runtimeEndpoint: /run/r.sock\n"));
  std::ofstream(file) << "draApis: {d.example.com: v2}\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("config.yaml:1: draApis.d.example.com: must be one of "
                        "v1, v1beta1, v1alpha4"));
  std::ofstream(file) << "healthPolicy: {example.com/gpu: shout}\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("config.yaml:1: healthPolicy.example.com/gpu: must be "
                        "report, fail, drain or replace"));
  std::ofstream(file) << "authority: split\nsplit: {local: "
                         "{example.com/gpu: 2}}\nmetricsNames: 1.36\n"
                         "nodeName: n\napiServer: {inCluster: true, "
                         "manifests: true}\n";
  EXPECT_THAT(
      RunTool("devmgrd", {"--config", file, "--print-config"}).out,
      AllOf(HasSubstr("authority: split"), HasSubstr("example.com/gpu: 2"),
            HasSubstr("metricsNames: 1.36")));
  std::ofstream(file) << "authority: split\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("apiServer and apiServer.manifests must be set"));
  std::ofstream(file) << "split: {driver: gpu.example.com}\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("config.yaml:1: split.driver: only devices of device "
                        "plugins can be split, by their number"));
  std::ofstream(file) << "split: {local: {gpu.example.com: 2}}\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("is no name of an extended resource"));
  std::ofstream(file) << "split: {local: {example.com/gpu: 2}}\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("split: is of use with authority: split only"));
  std::ofstream(file) << "debtPolicy: {d.example.com: defer, '*': "
                         "{forgiveAfter: 90m}}\n";
  EXPECT_THAT(
      RunTool("devmgrd", {"--config", file, "--print-config"}).out,
      AllOf(HasSubstr("d.example.com: defer"), HasSubstr("forgiveAfter: 90m")));
  std::ofstream(file) << "debtPolicy: {d.example.com: {forgiveAfter: soon}}\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("config.yaml:1: debtPolicy.d.example.com.forgiveAfter: "
                        "must be a duration"));
  std::ofstream(file) << "debtPolicy: {d.example.com: never}\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file}).err,
              HasSubstr("must be block, defer, or a map with forgiveAfter"));
  std::ofstream(file) << "nodeName: \"\\Nn\"\n";
  EXPECT_THAT(RunTool("devmgrd", {"--config", file, "--print-config"}).err,
              HasSubstr("config.yaml:1: nodeName: '\\ufffdn' is not UTF-8"));
  std::ofstream(file) << "nodeName: n2\nactuat: embedder\n";
  const Exit unknown = RunTool("devmgrd", {"--config", file});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("config.yaml:2: unknown key 'actuat'"));
  EXPECT_EQ(RunTool("devmgrd", {"--root", root, "--actuate", "x"}).code, 2);
}

// BO-159, BO-160, BO-166
TEST_F(DaemonTest, CommandLineConventions) {
  Daemon daemon(node_.root());
  daemon.Inspect();
  const Exit devices = node_.Ctl({"get", "devices"});
  EXPECT_EQ(devices.code, 0);
  EXPECT_EQ(devices.out, "");
  EXPECT_NE(devices.err, "");
  EXPECT_TRUE(Get("devices")["items"].is_array());
  EXPECT_EQ(node_.Ctl({"get", "pods", "-o", "foo"}).code, 2);
  EXPECT_EQ(node_.Ctl({"describe", "pod", "x"}).code, 3);
  EXPECT_EQ(node_.Ctl({"resolve", "x"}).code, 3);
}

}  // namespace
}  // namespace devmgr
