// SPDX-License-Identifier: Apache-2.0
//
// devmgrd beside a container runtime: a pod whose manifest is gone keeps its
// devices while a container of it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cri/runtime_fields.h"
#include "e2e/daemon.h"
#include "e2e/example_program.h"
#include "rpc/connection.h"
#include "support/fake_cri_runtime.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RuntimeSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto runtime = rpc::Runtime::Start();
    ASSERT_TRUE(runtime.ok());
    rpc_ = *std::move(runtime);
    driver_ = node_.StartDriver();
    StartRuntime();
  }
  void TearDown() override { cri_.Stop(); }

  void StartRuntime() { ASSERT_TRUE(cri_.Start(socket_)); }
  /// Container `c` of the pod `u-p` is in this state.
  void Has(std::uint64_t state) {
    cri_.Answer(cri::method::kContainerStatus, CriStatus("i", state));
    cri_.Has(CriSandbox("u-p", state == 1),
             CriContainer("i", "u-p", "c", state));
  }
  /// Whether `devmgrctl get pods` comes to say it.
  ::testing::AssertionResult PodComesToSay(const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      const Exit exit = node_.Ctl({"get", "pods", "-o", "wide"});
      if (exit.out.find(text) != std::string::npos) {
        return ::testing::AssertionSuccess();
      }
      if (std::chrono::steady_clock::now() > until) {
        return ::testing::AssertionFailure() << exit.out << exit.err;
      }
    }
  }
  Exit WaitFor(const std::string& state) {
    return node_.Ctl({"wait", "pod", "p", "--for=" + state, "--timeout=20s"});
  }

  NodeFolder node_;
  const std::string socket_ = (node_.root() / "cri.sock").string();
  std::unique_ptr<rpc::Runtime> rpc_;
  FakeCriRuntime cri_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
};

TEST_F(RuntimeSourceTest, APodIsReleasedWhenItsContainerHasEnded) {
  Has(1);
  Daemon daemon(node_.root(), {"--runtime-endpoint", "unix://" + socket_});
  ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
  node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                            PodManifest("p", "u-p", "c1"));
  ASSERT_EQ(WaitFor("ready").code, 0);
  node_.Remove("p.yaml");
  ASSERT_TRUE(PodComesToSay("ContainersRunning"));
  EXPECT_THAT(node_.Ctl({"explain", "pod", "p"}).out,
              AllOf(HasSubstr("container 'c' of the pod has ended"),
                    HasSubstr("containerd 1.7.0")));
  EXPECT_THAT(
      node_.Ctl({"status"}).out,
      HasSubstr("runtime " + socket_ + ", containerd 1.7.0, known for"));
  cri_.Stop();
  ASSERT_TRUE(PodComesToSay("RuntimeUnknown"));
  EXPECT_THAT(node_.Ctl({"status"}).out, HasSubstr("releases wait"));
  EXPECT_EQ(node_.cdi_files(), 1u);
  Has(2);
  StartRuntime();
  EXPECT_EQ(WaitFor("released").code, 0);
  EXPECT_EQ(node_.cdi_files(), 0u);
}

TEST_F(RuntimeSourceTest, TheShimOfAnotherProcessSaysWhatRuns) {
  const std::string config = (node_.root() / "config.yaml").string();
  std::ofstream(config) << "runtimeFromShims: true\n";
  Has(1);
  Daemon daemon(node_.root(), {"--config", config});
  ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
  node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                            PodManifest("p", "u-p", "c1"));
  ASSERT_EQ(WaitFor("ready").code, 0);
  node_.Remove("p.yaml");
  ASSERT_TRUE(PodComesToSay("RuntimeUnknown"));
  const std::string listen = (node_.root() / "shim.sock").string();
  const std::vector<std::string> flags = {
      "--listen", listen,      "--runtime",
      socket_,    "--devmgrd", (node_.root() / "devmgr.sock").string()};
  ShimProgram shim(node_.root() / "shim.log", flags);
  ASSERT_TRUE(PodComesToSay("ContainersRunning")) << shim.log();
  EXPECT_THAT(node_.Ctl({"status"}).out,
              HasSubstr("runtime behind CRI shims, containerd 1.7.0"));
  shim.Kill();
  Has(2);
  EXPECT_EQ(node_.cdi_files(), 1u);
  ShimProgram next(node_.root() / "next.log", flags);
  EXPECT_EQ(WaitFor("released").code, 0) << next.log();
  EXPECT_EQ(node_.cdi_files(), 0u);
}

// The daemon goes by shims with names: a kill of one is seen by its connection,
// and what passes another one does not count.
TEST_F(RuntimeSourceTest, NamedShimsSayWhatRuns) {
  const std::string config = (node_.root() / "config.yaml").string();
  std::ofstream(config) << "runtimeFromShims: [main]\n";
  Has(1);
  Daemon daemon(node_.root(), {"--config", config});
  ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
  const auto flags = [&](const std::string& name) {
    return std::vector<std::string>{
        "--listen",  (node_.root() / (name + ".sock")).string(),
        "--runtime", socket_,
        "--devmgrd", (node_.root() / "devmgr.sock").string(),
        "--name",    name};
  };
  const auto status_comes_to_say = [&](const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < until) {
      if (node_.Ctl({"status"}).out.find(text) != std::string::npos) {
        return true;
      }
    }
    return false;
  };
  const ShimProgram other(node_.root() / "other.log", flags("other"));
  EXPECT_TRUE(status_comes_to_say("'other' at"));
  EXPECT_THAT(node_.Ctl({"status"}).out,
              AllOf(HasSubstr("runtime behind CRI shim main"),
                    HasSubstr("CRI shim 'main' has not reported")));
  node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                            PodManifest("p", "u-p", "c1"));
  ASSERT_EQ(WaitFor("ready").code, 0);
  EXPECT_THAT(node_.Ctl({"get", "holders", "-o", "name"}).out,
              HasSubstr("holder/default/p/c\n"));
  ShimProgram shim(node_.root() / "main.log", flags("main"));
  ASSERT_TRUE(status_comes_to_say("known for")) << shim.log();
  // The container has an ID from now on.
  EXPECT_THAT(node_.Ctl({"get", "holders", "-o", "wide"}).out,
              AllOf(HasSubstr("i   "), HasSubstr("running"),
                    HasSubstr("gpu.example.com/claim=u-c-gpu-0")));
  const Exit json = node_.Ctl({"get", "holder", "i", "-o", "json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"containerID\": \"i\""));
  shim.Kill();
  EXPECT_TRUE(status_comes_to_say("its connection has ended"));
  node_.Remove("p.yaml");
  ASSERT_TRUE(PodComesToSay("RuntimeUnknown"));
  EXPECT_EQ(node_.cdi_files(), 1u);
  Has(2);
  const ShimProgram next(node_.root() / "next.log", flags("main"));
  EXPECT_EQ(WaitFor("released").code, 0) << next.log();
  EXPECT_EQ(node_.cdi_files(), 0u);
}

TEST_F(RuntimeSourceTest, NamesOfShimsAreInTheConfiguration) {
  const auto print = [&](const std::string& text) {
    const std::string config = (node_.root() / "print.yaml").string();
    std::ofstream(config) << text << "\n";
    return RunTool("devmgrd", {"--root", node_.root().string(), "--config",
                               config, "--print-config"});
  };
  const Exit printed = print("runtimeFromShims: [a, b-1]");
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("runtimeFromShims:\n  - a\n  - b-1\n"));
  EXPECT_EQ(print(printed.out).out, printed.out);
  EXPECT_THAT(print("runtimeFromShims: true").out,
              HasSubstr("runtimeFromShims: true\n"));
  for (const auto& [text, problem] :
       {std::pair("runtimeFromShims: 7", "must be true, false, or a list"),
        std::pair("runtimeFromShims: []", "0 names"),
        std::pair("runtimeFromShims: [a, a]", "'a' is there twice"),
        std::pair("runtimeFromShims: [a/b]", "'a/b' is not a name"),
        std::pair("runtimeFromShims: [a]\nruntimeEndpoint: /run/r.sock",
                  "excludes runtimeEndpoint")}) {
    const Exit refused = print(text);
    EXPECT_EQ(refused.code, 2) << text;
    EXPECT_THAT(refused.err, HasSubstr(problem));
  }
}

// A shim of a VM runtime needs to know all devices before it boots: no sandbox
// is there, and what runs is known.
TEST_F(RuntimeSourceTest, ASandboxKnowsTheDevicesOfItsPod) {
  Daemon daemon(node_.root(), {"--runtime-endpoint", socket_});
  ASSERT_NE(daemon.Inspect(), nullptr) << daemon.log();
  node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                            PodManifest("p", "u-p", "c1"));
  ASSERT_EQ(WaitFor("ready").code, 0);
  // pod-resources Get, and PodDevicesOf by the shim below.
  const Exit get = node_.Ctl({"podresources", "--socket",
                              (node_.root() / "pod-resources/kubelet.sock"),
                              "get", "p", "-o", "json"});
  EXPECT_EQ(get.code, 0) << get.err;
  EXPECT_THAT(get.out, HasSubstr("gpu.example.com/claim=u-c-gpu-0"));
  const std::string listen = (node_.root() / "shim.sock").string();
  const ShimProgram shim(
      node_.root() / "shim.log",
      {"--listen", listen, "--runtime", socket_, "--devmgrd",
       (node_.root() / "devmgr.sock").string(), "--sandbox-devices"});
  ASSERT_TRUE(shim.Logs("listens at")) << shim.log();
  auto client = rpc::Dial(*rpc_, listen, [] {});
  ASSERT_TRUE(client.ok()) << client.status();
  Mailbox<absl::StatusOr<std::string>> answers;
  (*client)->Call(
      std::string(cri::method::kRunPodSandbox),
      CriField(1, CriField(1, CriField(1, "p") + CriField(2, "u-p") +
                                  CriField(3, "default"))),
      {kPatience}, [&](absl::StatusOr<std::string> result) {
        answers.Put(std::move(result));
      });
  const auto answer = answers.Take();
  ASSERT_TRUE(answer.has_value() && answer->ok()) << shim.log();
  const auto request = cri_.sandbox_requests.Take();
  ASSERT_TRUE(request.has_value());
  EXPECT_THAT(*request,
              HasSubstr(CriField(
                  7, CriField(1, "cdi.k8s.io/devmgr_sandbox") +
                         CriField(2, "gpu.example.com/claim=u-c-gpu-0-0"))));
}

}  // namespace
}  // namespace devmgr
