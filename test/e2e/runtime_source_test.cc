// SPDX-License-Identifier: Apache-2.0
//
// devmgrd beside a container runtime: a pod whose manifest is gone keeps its
// devices while a container of it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "cri/runtime_fields.h"
#include "e2e/daemon.h"
#include "e2e/example_program.h"
#include "rpc/connection.h"
#include "support/fake_cri_runtime.h"

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

  void StartRuntime() { ASSERT_TRUE(cri_.Start(*rpc_, socket_)); }
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

}  // namespace
}  // namespace devmgr
