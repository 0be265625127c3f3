// SPDX-License-Identifier: Apache-2.0
//
// edge-kubelet on a real runtime: pods of manifests with their devices, no
// kubelet, no API server. containerd 1.6 knows no CDI, so containers get edits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

// clang-format off: before there is a namespace devmgr::testing
#include "e2e/build_dirs.h"
#include "support/status_matchers.h"
// clang-format on

#include <devmgr/runtime_source.h>

#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/containerd.h"
#include "e2e/cri_client.h"
#include "e2e/daemon.h"
#include "e2e/example_program.h"
#include "e2e/real_runtime.h"
#include "support/read_all.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kUid[] = "5a1f3c4e-0000-4000-8000-000000000031";

/// Flow style of YAML is JSON.
std::string Words(const std::vector<std::string>& words) {
  return nlohmann::json(words).dump();
}

/// The container `name` of a list of containers, with more fields.
std::string ContainerText(const std::string& name,
                          const std::vector<std::string>& command,
                          const std::string& more = "") {
  return "  - {name: " + name + ", image: \"" + Containerd::kImage +
         "\", command: " + Words(command) +
         ", volumeMounts: [{name: v, mountPath: /v}]" + more + "}\n";
}

std::string PodText(const std::string& restart_policy,
                    const std::string& init_containers,
                    const std::string& containers) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: " +
         std::string(kUid) + "}\nspec:\n  restartPolicy: " + restart_policy +
         "\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n"
         "  volumes: [{name: v, emptyDir: {}}]\n"
         "  resourceClaims: [{name: x, resourceClaimName: own}]\n" +
         (init_containers.empty() ? "" : "  initContainers:\n") +
         init_containers + "  containers:\n" + containers + "---\n" +
         ClaimManifest("own", "own-uid", {"gpu-0"}, {kUid});
}

constexpr char kDevices[] =
    ", resources: {claims: [{name: x}], limits: {example.com/tpu: \"1\"}}";

constexpr char kClass[] = R"(
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors:
  - cel: {expression: device.driver == 'gpu.example.com'}
)";

class EdgeKubeletTest : public ::testing::Test {
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
    runtime_ = CriClient::Connect(containerd_->socket());
    ASSERT_NE(runtime_, nullptr) << containerd_->log();
    Start();
  }

  void TearDown() override {
    edge_.reset();
    if (runtime_ == nullptr) return;
    const auto sandboxes = runtime_->Sandboxes();
    ASSERT_THAT(sandboxes, IsOk());
    for (const std::string& id : *sandboxes) {
      EXPECT_THAT(runtime_->StopAndRemoveSandbox(id), IsOk());
    }
  }

  std::vector<std::string> Flags() const {
    return {"--root",
            node_.root().string(),
            "--cdi-spec-dir",
            (node_.root() / "cdi").string(),
            "--back-off",
            "0.05",
            "--back-off-max",
            "0.2",
            "--driver",
            "gpu.example.com",
            "--runtime-endpoint",
            containerd_->socket().string()};
  }
  void Start() {
    edge_.reset();
    const std::string log = "edge" + std::to_string(++starts_) + ".log";
    edge_ = std::make_unique<ExampleProgram>("edge-kubelet/edge-kubelet",
                                             node_.root() / log, Flags());
    // Until then it has no socket for devmgrctl.
    ASSERT_TRUE(edge_->Logs("runs the pods of")) << edge_->log();
  }

  /// What one attempt of a container wrote, as the runtime keeps it.
  std::string LogOf(const std::string& container, int attempt = 0) const {
    return ReadAll(node_.root() / "logs" / ("default_p_" + std::string(kUid)) /
                   container / (std::to_string(attempt) + ".log"));
  }
  /// The containers that the runtime has of pods, one on a line: pod, name,
  /// attempt, state, exit code.
  std::string Status() const {
    const auto runtime = WatchRuntime(containerd_->socket());
    std::promise<void> looked;
    EXPECT_TRUE(runtime->Refresh([&looked] { looked.set_value(); }));
    looked.get_future().wait();
    const auto now = runtime->Snapshot();
    EXPECT_TRUE(now->known) << now->reason;
    std::string text;
    for (const auto& [uid, pod] : now->pods) {
      for (const ContainerRun& one : pod->containers) {
        text += pod->name.ToString() + "\t" + one.name + "\t" +
                std::to_string(one.attempt) + "\t" +
                std::string(RuntimeContainerStateName(one.state)) + "\t" +
                (one.finished_at ? std::to_string(one.exit_code) : "-") +
                "\t\n";
      }
    }
    return text;
  }
  void WaitForRelease() {
    const Exit gone =
        node_.Ctl({"wait", "pod", "p", "--for=released", "--timeout", "60s"});
    EXPECT_EQ(gone.code, 0) << gone.err << edge_->log();
    EXPECT_EQ(node_.cdi_files(), 0U);
  }
  std::vector<std::string> Sandboxes() {
    const auto sandboxes = runtime_->Sandboxes();
    EXPECT_THAT(sandboxes, IsOk());
    return sandboxes.value_or(std::vector<std::string>());
  }

  NodeFolder node_;
  int starts_ = 0;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<testing::FakeDevicePlugin> plugin_;
  std::unique_ptr<Containerd> containerd_;
  std::unique_ptr<CriClient> runtime_;
  std::unique_ptr<ExampleProgram> edge_;
};

TEST_F(EdgeKubeletTest, RunsAPodInOrderAndReleasesItAtItsEnd) {
  std::vector<std::string> looking = LookingCommand();
  looking.back() += "cat /v/first\n";
  node_.Write(
      "pod.yaml",
      PodText("Never",
              ContainerText("first", {"/bin/sh", "-c", "echo began > /v/first"},
                            kDevices) +
                  ContainerText("beside", {"/bin/sleep", "100000"},
                                ", restartPolicy: Always"),
              ContainerText("c", looking, kDevices) +
                  ContainerText("plain", LookingCommand())));
  ASSERT_TRUE(edge_->Logs("the pod is over: Succeeded")) << edge_->log();
  EXPECT_THAT(LogOf("c"),
              AllOf(HasSubstr("EXAMPLE_COM_TPU=tpu-"),
                    HasSubstr("DEVMGR_FAKE_DEVICE_own_uid_0=pool-0/gpu-0"),
                    HasSubstr("node /dev/tpu-"), HasSubstr("mounted"),
                    HasSubstr("began")));
  EXPECT_THAT(LogOf("plain"), HasNoDevices());
  EXPECT_THAT(Status(), AllOf(HasSubstr("default/p\tc\t0\texited\t0\t"),
                              HasSubstr("default/p\tbeside\t0\texited\t")));
  // It gives its devices back, and stays to be looked at until its file goes.
  WaitForRelease();
  EXPECT_THAT(Sandboxes(), SizeIs(1));
  node_.Remove("pod.yaml");
  ASSERT_TRUE(edge_->Logs("the pod is removed")) << edge_->log();
  EXPECT_THAT(Sandboxes(), IsEmpty());
}

/// As stock drivers do: pod, class, driver, and no claim by hand.
TEST_F(EdgeKubeletTest, APodGetsADeviceThatADriverPublishes) {
  testing::FakeDraDriverOptions options;
  options.publish = true;
  options.devices = 2;
  driver_.reset();
  driver_ = node_.StartDriver(options);
  ASSERT_NE(driver_, nullptr);
  node_.Write("class.yaml", kClass);
  node_.Write("pod.yaml",
              "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: " +
                  std::string(kUid) +
                  "}\nspec:\n  restartPolicy: Never\n  hostNetwork: true\n"
                  "  volumes: [{name: v, emptyDir: {}}]\n  containers:\n" +
                  ContainerText("c", LookingCommand(),
                                ", resources: {limits: {example.com/gpu: 1}}") +
                  ContainerText("plain", LookingCommand()));
  ASSERT_TRUE(edge_->Logs("the pod is over: Succeeded"))
      << edge_->log() << node_.Ctl({"get", "events"}).out;
  EXPECT_THAT(LogOf("c"), HasSubstr("DEVMGR_FAKE_DEVICE_"));
  EXPECT_THAT(LogOf("plain"), HasNoDevices());
  EXPECT_THAT(node_.Ctl({"get", "slices", "-o", "json"}).out,
              HasSubstr("\"source\": \"endpoint\""));
  WaitForRelease();

  // What a driver has published is there after a kill, at the same place.
  const std::string kubeconfig =
      ReadAll(node_.root() / "kubeconfig/gpu.example.com");
  EXPECT_THAT(kubeconfig, HasSubstr("https://127.0.0.1:"));
  Start();
  EXPECT_EQ(ReadAll(node_.root() / "kubeconfig/gpu.example.com"), kubeconfig);
  EXPECT_THAT(node_.Ctl({"get", "slices", "-o", "json"}).out,
              HasSubstr("\"source\": \"endpoint\""));
}

TEST_F(EdgeKubeletTest, GoesOnAfterAKill) {
  node_.Write("pod.yaml",
              PodText("Always", "",
                      ContainerText("c", {"/bin/sleep", "100000"}, kDevices)));
  ASSERT_TRUE(edge_->Logs("container 'c' started")) << edge_->log();
  const std::string running = Status();
  EXPECT_THAT(running, HasSubstr("default/p\tc\t0\trunning\t"));
  edge_->Kill();
  EXPECT_EQ(Status(), running);
  Start();
  const Exit ready =
      node_.Ctl({"wait", "pod", "p", "--for=ready", "--timeout", "60s"});
  EXPECT_EQ(ready.code, 0) << ready.err << edge_->log();
  EXPECT_EQ(Status(), running);
  // Devices stay until nothing of the pod runs.
  node_.Remove("pod.yaml");
  ASSERT_TRUE(edge_->Logs("the pod is removed")) << edge_->log();
  EXPECT_THAT(Sandboxes(), IsEmpty());
  WaitForRelease();
}

TEST_F(EdgeKubeletTest, RestartsWhatFailsUntilItSucceeds) {
  node_.Write("pod.yaml",
              PodText("OnFailure", "",
                      ContainerText("c", {"/bin/sh", "-c", "test $(NAME) = 1"},
                                    kDevices)));
  // References are refused, as they would not be expanded.
  ASSERT_TRUE(edge_->Logs("references such as $(NAME)")) << edge_->log();
  EXPECT_THAT(Sandboxes(), IsEmpty());
  node_.Write("pod.yaml",
              PodText("OnFailure", "",
                      ContainerText("c",
                                    {"/bin/sh", "-c",
                                     "echo x >> /v/tries\n"
                                     "test `sed -n '$=' /v/tries` = 3"},
                                    kDevices)));
  ASSERT_TRUE(edge_->Logs("the pod is over: Succeeded")) << edge_->log();
  EXPECT_THAT(Status(), HasSubstr("default/p\tc\t2\texited\t0\t"));
  WaitForRelease();
}

TEST_F(EdgeKubeletTest, SaysThatAnImageIsMissing) {
  std::string pod = PodText("Never", "", ContainerText("c", {"/bin/true"}));
  pod.replace(pod.find(Containerd::kImage),
              std::string(Containerd::kImage).size(), "example.com/none:1");
  node_.Write("pod.yaml", pod);
  ASSERT_TRUE(edge_->Logs("the runtime has no image 'example.com/none:1'"))
      << edge_->log();
  EXPECT_THAT(Status(), Not(HasSubstr("default/p\tc")));
  node_.Remove("pod.yaml");
  ASSERT_TRUE(edge_->Logs("the pod is removed")) << edge_->log();
  WaitForRelease();
}

}  // namespace
}  // namespace devmgr
