// SPDX-License-Identifier: Apache-2.0
//
// The whole way: pods of manifests, a daemon, a driver, a device plugin, the
// shim and containerd, until a process in a container sees its devices.
// containerd 1.6 knows no CDI.
#include "e2e/containerd.h"

#include <gmock/gmock.h>

// clang-format off: before there is a namespace devmgr::testing
#include "e2e/build_dirs.h"
#include "support/status_matchers.h"
// clang-format on

#include <csignal>
#include <fstream>
#include <memory>
#include <string>

#include "e2e/cri_client.h"
#include "e2e/daemon.h"
#include "e2e/example_program.h"
#include "e2e/real_runtime.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ContainerdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Containerd::WhyNot().empty()) {
      GTEST_SKIP() << "cannot run containers here: " << Containerd::WhyNot();
    }
    containerd_ = std::make_unique<Containerd>();
    ASSERT_EQ(containerd_->MakeReady(), "");
    driver_ = node_.StartDriver();
    testing::FakeDevicePluginOptions plugin;
    plugin.resource = "example.com/tpu";
    plugin_ = node_.StartPlugin(plugin);
    node_.Write("pod.yaml", kRuntimePod);
  }

  void TearDown() override {
    if (containerd_ == nullptr) return;
    // Past the shim, whatever the test did to it.
    const auto client = CriClient::Connect(containerd_->socket());
    ASSERT_NE(client, nullptr) << containerd_->log();
    const auto sandboxes = client->Sandboxes();
    ASSERT_THAT(sandboxes, IsOk());
    for (const std::string& id : *sandboxes) {
      EXPECT_THAT(client->StopAndRemoveSandbox(id), IsOk());
    }
  }

  std::filesystem::path socket() const { return node_.root() / "shim.sock"; }

  /// The shim looks devices up in a daemon that prepares what manifests say.
  void StartWithDaemon() {
    daemon_ = std::make_unique<Daemon>(
        node_.root(), std::vector<std::string>{
                          "--cdi-spec-dir", (node_.root() / "cdi").string()});
    ASSERT_NE(daemon_->Inspect(), nullptr);
    const Exit ready =
        node_.Ctl({"wait", "pod", "p", "--for=ready", "--timeout", "30s"});
    ASSERT_EQ(ready.code, 0) << ready.err << daemon_->log();
    StartShim({"--devmgrd", (node_.root() / "devmgr.sock").string()});
  }

  void StartShim(std::vector<std::string> flags) {
    shim_flags_ = {"--listen",       socket().string(),
                   "--runtime",      containerd_->socket().string(),
                   "--cdi-spec-dir", (node_.root() / "cdi").string()};
    shim_flags_.insert(shim_flags_.end(), flags.begin(), flags.end());
    RestartShim();
  }
  void RestartShim() {
    shim_.reset();
    shim_ =
        std::make_unique<ShimProgram>(node_.root() / "shim.log", shim_flags_);
    ConnectAgain();
  }
  void ConnectAgain() {
    client_ = CriClient::Connect(socket());
    ASSERT_NE(client_, nullptr) << shim_->log() << containerd_->log();
  }

  TestSandbox Sandbox(const std::string& name, const std::string& uid) const {
    const auto logs = containerd_->folder() / ("logs-" + name);
    std::filesystem::create_directories(logs);
    return {name, uid, "default", 0, logs};
  }

  std::string Run(const TestSandbox& sandbox) {
    const auto id = client_->RunPodSandbox(sandbox);
    EXPECT_THAT(id, IsOk()) << shim_->log();
    return id.value_or("");
  }
  std::string Start(const std::string& sandbox_id, const TestSandbox& sandbox,
                    const TestContainer& container) {
    const auto id = client_->CreateContainer(sandbox_id, sandbox,
                                             Containerd::kImage, container);
    EXPECT_THAT(id, IsOk()) << shim_->log();
    if (!id.ok()) return "";
    EXPECT_THAT(client_->StartContainer(*id), IsOk()) << shim_->log();
    return *id;
  }
  /// What a container writes that runs to its end.
  std::string OutputOf(const std::string& sandbox_id,
                       const TestSandbox& sandbox,
                       const TestContainer& container) {
    const std::string id = Start(sandbox_id, sandbox, container);
    EXPECT_THAT(client_->WaitForExit(id), IsOk());
    return CriClient::Output(sandbox, container);
  }

  static TestContainer Looking(const std::string& name) {
    return {name, LookingCommand()};
  }

  NodeFolder node_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<testing::FakeDevicePlugin> plugin_;
  std::unique_ptr<Containerd> containerd_;
  std::unique_ptr<Daemon> daemon_;
  std::vector<std::string> shim_flags_;
  std::unique_ptr<ShimProgram> shim_;
  std::unique_ptr<CriClient> client_;
};

TEST_F(ContainerdTest, AContainerGetsItsDevicesAndNobodyElseDoes) {
  StartWithDaemon();
  const TestSandbox pod = Sandbox("p", kRuntimePodUid);
  const std::string sandbox = Run(pod);
  EXPECT_THAT(OutputOf(sandbox, pod, Looking("c")), HasAllDevices());
  EXPECT_THAT(OutputOf(sandbox, pod, Looking("plain")), HasNoDevices());
  // A pod that nobody knows, and one of no pod at all.
  for (const char* uid : {"next-uid", ""}) {
    const TestSandbox next = Sandbox(std::string("next") + uid, uid);
    EXPECT_THAT(OutputOf(Run(next), next, Looking("c")), HasNoDevices());
  }
  EXPECT_THAT(shim_->log(), HasSubstr("UnknownSandbox"));
  EXPECT_THAT(shim_->log(), HasSubstr("'none', by version: containerd 1."));
}

TEST_F(ContainerdTest, ContainersOutliveTheShim) {
  StartWithDaemon();
  const TestSandbox pod = Sandbox("p", kRuntimePodUid);
  const std::string sandbox = Run(pod);
  const TestContainer sleeper = {"plain", {"/bin/sleep", "100000"}};
  const std::string running = Start(sandbox, pod, sleeper);
  TestContainer looking = Looking("c");
  const auto created =
      client_->CreateContainer(sandbox, pod, Containerd::kImage, looking);
  ASSERT_THAT(created, IsOk()) << shim_->log();
  const auto stamp = client_->Annotation(*created, "devmgr/allocation");
  ASSERT_THAT(stamp, IsOk());
  EXPECT_TRUE(stamp->has_value());

  shim_->Kill();
  RestartShim();
  EXPECT_TRUE(client_->IsRunning(running).value_or(false));
  // Between creation and start there was another shim.
  EXPECT_THAT(client_->StartContainer(*created), IsOk()) << shim_->log();
  EXPECT_THAT(client_->WaitForExit(*created), IsOk());
  EXPECT_THAT(CriClient::Output(pod, looking), HasAllDevices());
  // The container starts again, in a sandbox that this shim has not made; the
  // client does not say whose it is.
  looking.attempt = 1;
  const auto again = client_->CreateContainer(sandbox, pod, Containerd::kImage,
                                              looking, false);
  ASSERT_THAT(again, IsOk()) << shim_->log();
  EXPECT_THAT(client_->StartContainer(*again), IsOk());
  EXPECT_THAT(client_->WaitForExit(*again), IsOk());
  EXPECT_THAT(CriClient::Output(pod, looking), HasAllDevices());
  EXPECT_EQ(client_->Annotation(*again, "devmgr/allocation").value_or(""),
            *stamp);
  EXPECT_THAT(client_->StopContainer(running), IsOk());
  // It has asked the runtime by now.
  EXPECT_TRUE(shim_->Signal(SIGUSR1));
  EXPECT_TRUE(shim_->Logs("CDI names: none (version: ")) << shim_->log();
  EXPECT_EQ(shim_->Terminate(), 0);
}

// BO-101.
TEST_F(ContainerdTest, TheShimOutlivesContainerd) {
  StartWithDaemon();
  const TestSandbox pod = Sandbox("p", kRuntimePodUid);
  const std::string sandbox = Run(pod);
  const std::string running =
      Start(sandbox, pod, {"plain", {"/bin/sleep", "100000"}});
  containerd_->Restart();
  ConnectAgain();
  EXPECT_TRUE(client_->IsRunning(running).value_or(false));
  EXPECT_THAT(OutputOf(sandbox, pod, Looking("c")), HasAllDevices());
}

// BO-082.
TEST_F(ContainerdTest, RefusesWhatItCannotTellContainerd) {
  StartWithDaemon();
  std::ofstream(node_.root() / "cdi" / "hooked.json") << R"({
    "cdiVersion": "0.6.0", "kind": "v.com/hooked", "devices": [{"name": "1",
    "containerEdits": {"hooks": [{"hookName": "createContainer",
    "path": "/usr/bin/vendor-hook"}]}}]})";
  const TestSandbox pod = Sandbox("other", "other-uid");
  const std::string sandbox = Run(pod);
  TestContainer container = Looking("train");
  container.cdi_devices = {"v.com/hooked=1"};
  const auto refused =
      client_->CreateContainer(sandbox, pod, Containerd::kImage, container);
  EXPECT_THAT(
      refused,
      StatusIs(
          absl::StatusCode::kFailedPrecondition,
          AllOf(HasSubstr("'train'"), HasSubstr("default/other"),
                HasSubstr("v.com/hooked=1"), HasSubstr("hooked.json"),
                HasSubstr("createContainer"), HasSubstr("/usr/bin/vendor-hook"),
                HasSubstr("containerd 1.6"),
                HasSubstr("enable CDI in the runtime (containerd 1.7.2"))));
  // Names of a client that manages devices by itself, as a kubelet does.
  std::ofstream(node_.root() / "cdi" / "plain.json") << R"({
    "cdiVersion": "0.6.0", "kind": "v.com/plain", "devices": [{"name": "1",
    "containerEdits": {"env": ["BY_NAME=yes"], "deviceNodes": [
    {"path": "/dev/tpu-by-name", "hostPath": "/dev/null"}]}}]})";
  container.cdi_devices = {"v.com/plain=1"};
  EXPECT_THAT(
      OutputOf(sandbox, pod, container),
      AllOf(HasSubstr("BY_NAME=yes"), HasSubstr("node /dev/tpu-by-name 1:3")));
}

// The manager in the shim's own process, driven by the client's sandboxes.
TEST_F(ContainerdTest, SandboxesHaveTheirPodsPrepared) {
  StartShim({"--root", node_.root().string(), "--actuate", "cri"});
  EXPECT_EQ(node_.cdi_files(), 0U);
  const TestSandbox pod = Sandbox("p", kRuntimePodUid);
  const std::string sandbox = Run(pod);
  EXPECT_EQ(node_.cdi_files(), 2U);
  EXPECT_THAT(OutputOf(sandbox, pod, Looking("c")), HasAllDevices());
  node_.Remove("pod.yaml");
  EXPECT_THAT(client_->StopAndRemoveSandbox(sandbox), IsOk());
  const Exit gone =
      node_.Ctl({"wait", "pod", "p", "--for=released", "--timeout", "30s"});
  EXPECT_EQ(gone.code, 0) << gone.err << shim_->log();
  EXPECT_EQ(node_.cdi_files(), 0U);
}

// API-067: an unmodified driver, a class and a pod's limits, no API server and
// no claim by hand, until a process in a container sees the device; also after
// the daemon, the driver and the boot were others.
TEST_F(ContainerdTest, AContainerGetsADeviceOfAnUnmodifiedDriver) {
  // Of test/interop; built with the tree where Go and its modules are at hand.
  const std::string program = "../test/interop/bin/stock";
  if (!std::filesystem::exists(std::filesystem::path(DEVMGR_EXAMPLES_DIR) /
                               program)) {
    GTEST_SKIP() << "there is no driver on the official helper";
  }
  driver_.reset();
  plugin_.reset();
  node_.Remove("pod.yaml");
  const std::string root = node_.root().string();
  const auto start_daemon = [&](const std::string& boot) {
    daemon_.reset();
    daemon_ = std::make_unique<Daemon>(
        node_.root(),
        std::vector<std::string>{"--node-name", "n1", "--boot-id", boot,
                                 "--cdi-spec-dir", root + "/cdi"});
    ASSERT_NE(daemon_->Inspect(), nullptr) << daemon_->log();
  };
  const auto start_driver = [&] {
    return std::make_unique<ExampleProgram>(
        program, node_.root() / "stock.log",
        std::vector<std::string>{"--name", "gpu.example.com", "--root", root,
                                 "--node", "n1", "--kubeconfig",
                                 root + "/kubeconfig/gpu.example.com"});
  };
  start_daemon("first");
  ASSERT_EQ(node_.Ctl({"endpoint", "kubeconfig", "gpu.example.com"}).code, 0);
  auto driver = start_driver();
  node_.Write("class.yaml", R"(
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]
)");
  node_.Write("stock.yaml", std::string(R"(
apiVersion: v1
kind: Pod
metadata: {name: stock, uid: )") +
                                kRuntimePodUid +
                                R"(}
spec:
  containers:
  - {name: c, resources: {limits: {example.com/gpu: 1}}}
  - {name: plain}
)");
  const auto wait = [&] {
    const Exit ready =
        node_.Ctl({"wait", "pod", "stock", "--for=ready", "--timeout", "60s"});
    ASSERT_EQ(ready.code, 0) << ready.err << daemon_->log() << driver->log();
  };
  wait();
  StartShim({"--devmgrd", root + "/devmgr.sock"});
  const TestSandbox pod = Sandbox("stock", kRuntimePodUid);
  const std::string sandbox = Run(pod);
  const auto looks = [&](const std::string& container, std::uint32_t attempt) {
    return OutputOf(
        sandbox, pod,
        {.name = container,
         .command = {"/bin/sh", "-c",
                     "env; for n in /dev/gpu-*; do [ ! -c $n ] || stat -c "
                     "'node %n %t:%T' $n; done"},
         .attempt = attempt});
  };
  const auto has_device =
      AllOf(HasSubstr("GPU=gpu-0"), HasSubstr("node /dev/gpu-0 1:3"));
  EXPECT_THAT(looks("c", 0), has_device);
  EXPECT_THAT(looks("plain", 0),
              AllOf(HasSubstr("PATH="), Not(HasSubstr("gpu-"))));
  // The endpoint is killed under the driver.
  start_daemon("first");
  wait();
  EXPECT_THAT(looks("c", 1), has_device);
  // Another boot, and another driver.
  driver.reset();
  start_daemon("second");
  driver = start_driver();
  wait();
  EXPECT_THAT(looks("c", 2), has_device);
}

// These need no runtime.
TEST(CriShimProgram, TellsOnASignalWhatItKnowsAndDid) {
  const TempFolder folder;
  ShimProgram shim(folder.path() / "log",
                   {"--listen", (folder.path() / "shim.sock").string(),
                    "--runtime", (folder.path() / "cri.sock").string()});
  ASSERT_TRUE(shim.Logs("listens at")) << shim.log();
  EXPECT_TRUE(shim.Signal(SIGUSR1));
  EXPECT_TRUE(shim.Logs("requests that could not be parsed: 0")) << shim.log();
  EXPECT_THAT(shim.log(), HasSubstr("info: runtime unknown: "));
  EXPECT_EQ(shim.Terminate(), 0);
}

TEST(CriShimProgram, SaysThatADaemonPreparesByItself) {
  std::string output;
  EXPECT_EQ(RunProgram(
                {std::string(DEVMGR_EXAMPLES_DIR) + "/cri-shim/devmgr-cri-shim",
                 "--listen", "/nowhere/a", "--runtime", "/nowhere/b",
                 "--devmgrd", "/nowhere/c", "--actuate", "cri"},
                &output),
            2);
  EXPECT_THAT(output, AllOf(HasSubstr("--actuate cri is not for --devmgrd"),
                            HasSubstr("prepares and releases by itself")));
}

}  // namespace
}  // namespace devmgr
