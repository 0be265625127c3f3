// SPDX-License-Identifier: Apache-2.0
//
// devmgrctl against containerd: what its containers really hold.
#include <gmock/gmock.h>

// clang-format off: before there is a namespace devmgr::testing
#include "support/status_matchers.h"
// clang-format on

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "e2e/containerd.h"
#include "e2e/cri_client.h"
#include "e2e/daemon.h"
#include "e2e/example_program.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPodUid[] = "5a1f3c4e-0000-4000-8000-000000000031";

/// A pod with a claim and a device of a plugin, prepared by a daemon; its
/// containers are made by way of a shim, or past it.
class RuntimeCheckTest : public ::testing::Test {
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
    node_.Write("claim.yaml",
                ClaimManifest("own", "own-uid", {"gpu-0"}, {kPodUid}));
    node_.Write("pod.yaml", PodManifest("p", kPodUid, "own", 1));
    const std::string specs = (node_.root() / "cdi").string();
    daemon_ = std::make_unique<Daemon>(
        node_.root(), std::vector<std::string>{"--cdi-spec-dir", specs});
    ASSERT_NE(daemon_->Inspect(), nullptr);
    const Exit ready = Wait("ready");
    ASSERT_EQ(ready.code, 0) << ready.err << daemon_->log();
    const std::string socket = (node_.root() / "shim.sock").string();
    shim_ = std::make_unique<ShimProgram>(
        node_.root() / "shim.log",
        std::vector<std::string>{"--listen", socket, "--runtime",
                                 containerd_->socket().string(), "--devmgrd",
                                 (node_.root() / "devmgr.sock").string(),
                                 "--cdi-spec-dir", specs});
    client_ = CriClient::Connect(socket);
    ASSERT_NE(client_, nullptr) << shim_->log() << containerd_->log();
    direct_ = CriClient::Connect(containerd_->socket());
    ASSERT_NE(direct_, nullptr);
    const auto logs = containerd_->folder() / "logs";
    std::filesystem::create_directories(logs);
    pod_ = {"p", kPodUid, "default", 0, logs};
    const auto sandbox = client_->RunPodSandbox(pod_);
    ASSERT_THAT(sandbox, IsOk()) << shim_->log();
    sandbox_ = *sandbox;
  }

  void TearDown() override {
    if (direct_ != nullptr && !sandbox_.empty()) {
      EXPECT_THAT(direct_->StopAndRemoveSandbox(sandbox_), IsOk());
    }
  }

  Exit Wait(const std::string& state) const {
    return node_.Ctl(
        {"wait", "pod", "p", "--for=" + state, "--timeout", "30s"});
  }

  /// Container `c`, which sleeps; its ID.
  std::string Start(CriClient& client, std::uint32_t attempt) {
    TestContainer container{"c", {"/bin/sleep", "100000"}};
    container.attempt = attempt;
    const auto id =
        client.CreateContainer(sandbox_, pod_, Containerd::kImage, container);
    EXPECT_THAT(id, IsOk()) << shim_->log();
    if (!id.ok()) return "";
    EXPECT_THAT(client.StartContainer(*id), IsOk()) << shim_->log();
    return *id;
  }

  Exit Ctl(std::vector<std::string> args) const {
    args.insert(args.end(),
                {"--runtime-endpoint", containerd_->socket().string(),
                 "--timeout", "30s"});
    return node_.Ctl(std::move(args));
  }
  Exit Diff(const std::string& id) const {
    return Ctl({"resolve", "--diff", id, "--cdi-spec-dir",
                (node_.root() / "cdi").string(), "-o", "json"});
  }

  NodeFolder node_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<testing::FakeDevicePlugin> plugin_;
  std::unique_ptr<Containerd> containerd_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<ShimProgram> shim_;
  std::unique_ptr<CriClient> client_, direct_;
  TestSandbox pod_;
  std::string sandbox_;
};

TEST_F(RuntimeCheckTest, AContainerHoldsWhatTheLedgerSays) {
  const std::string id = Start(*client_, 0);
  // As crictl, it takes the beginning of an ID.
  const Exit same = Diff(id.substr(0, 12));
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  const Exit fsck = Ctl({"fsck"});
  EXPECT_EQ(fsck.code, 0) << fsck.out << fsck.err;
}

TEST_F(RuntimeCheckTest, WhatWasCreatedPastTheShimLacksItsDevices) {
  const std::string id = Start(*direct_, 0);
  const Exit diff = Diff(id);
  EXPECT_EQ(diff.code, 1) << diff.err;
  const auto shown = nlohmann::json::parse(diff.out);
  EXPECT_EQ(shown["container"]["id"], id);
  EXPECT_EQ(shown["container"]["state"], "running");
  std::string missing;
  for (const auto& item : shown["items"]) {
    EXPECT_EQ(item["difference"], "missing") << item;
    missing += item["what"].get<std::string>() + " " +
               item["name"].get<std::string>() + "\n";
  }
  EXPECT_THAT(missing, AllOf(HasSubstr("environment EXAMPLE_COM_TPU\n"),
                             HasSubstr("environment DEVMGR_FAKE_DEVICE_"),
                             HasSubstr("device node /dev/tpu-"),
                             HasSubstr("mount /run/devices/tpu-")));
  EXPECT_THAT(diff.err, HasSubstr("did not get its devices from a shim"));
}

// The pod is released while its container runs on.
TEST_F(RuntimeCheckTest, AContainerThatTheLedgerHasForgottenIsFound) {
  const std::string id = Start(*client_, 0);
  node_.Remove("pod.yaml");
  const Exit gone = Wait("released");
  ASSERT_EQ(gone.code, 0) << gone.err << daemon_->log();
  const Exit fsck = Ctl({"fsck"});
  EXPECT_EQ(fsck.code, 1) << fsck.out << fsck.err;
  EXPECT_THAT(fsck.out, AllOf(HasSubstr("unaccounted-container"), HasSubstr(id),
                              HasSubstr("container/default/p/c")));
  EXPECT_THAT(node_.Ctl({"fsck"}).out, Not(HasSubstr("unaccounted-container")));
  const Exit diff = Diff(id);
  EXPECT_EQ(diff.code, 3) << diff.out;
  EXPECT_THAT(diff.err, HasSubstr("which the ledger does not know"));
  ASSERT_THAT(client_->StopContainer(id), IsOk());
  const Exit after = Ctl({"fsck"});
  EXPECT_EQ(after.code, 0) << after.out << after.err;
}

}  // namespace
}  // namespace devmgr
