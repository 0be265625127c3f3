// SPDX-License-Identifier: Apache-2.0
//
// A manager learns what the runtime runs from the shim in its process.
#include <devmgr/cri_shim.h>
#include <devmgr/runtime_source.h>
#include <gmock/gmock.h>

#include "cri/runtime_fields.h"
#include "rpc/rpc_fixture.h"
#include "shim/relay.h"
#include "support/fake_cri_runtime.h"
#include "support/status_matchers.h"
#include "support/test_node.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;

class ShimRuntimeSourceTest : public rpc::RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    MakeSource(std::chrono::hours(1));
    options_.proxy.listen = Path();
    options_.proxy.backend = Path("runtime.sock");
    options_.cdi_spec_dirs = {Path("cdi")};
    ASSERT_TRUE(fake_.Start(Path("runtime.sock")));
  }
  void TearDown() override {
    client_.reset();
    shim_.reset();
    node_.Stop();
    source_.reset();
    fake_.Stop();
  }

  /// With that between two looks: an hour is longer than any test.
  void MakeSource(std::chrono::milliseconds period) {
    RuntimeWatchOptions watch;
    watch.period = period;
    watch.first_retry = std::chrono::milliseconds(5);
    watch.last_retry = std::chrono::milliseconds(20);
    source_ = ShimRuntimeSource::Make(watch);
    source_->Subscribe([this] { changed_.Put(0); });
    options_.runtime_source = source_.get();
  }
  void StartShim() {
    auto shim = CriShim::Start(options_);
    ASSERT_THAT(shim, IsOk());
    shim_ = *std::move(shim);
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
  }
  absl::Status Call(std::string_view method) {
    return CallAndWait(*client_, std::string(method), CriField(1, "i"))
        .status();
  }
  bool WaitUntil(const std::function<bool(const RuntimeSnapshot&)>& condition) {
    while (!condition(*source_->Snapshot())) {
      if (!changed_.Take().has_value()) return false;
    }
    return true;
  }
  bool BecomesKnown() {
    return WaitUntil([](const auto& snapshot) { return snapshot.known; });
  }

  FakeCriRuntime fake_;
  TestNode node_;
  Mailbox<int> changed_;
  CriShimOptions options_;
  std::unique_ptr<ShimRuntimeSource> source_;
  std::unique_ptr<CriShim> shim_;
  std::unique_ptr<rpc::Connection> client_;
};

TEST_F(ShimRuntimeSourceTest, ItIsNotKnownWhatRunsWithoutAShim) {
  EXPECT_FALSE(source_->Snapshot()->known);
  EXPECT_EQ(source_->Snapshot()->reason, "the CRI shim has not started yet");
  EXPECT_NE(source_->Snapshot()->since, WallTime());
  EXPECT_FALSE(source_->Refresh([] { ADD_FAILURE() << "no shim looks"; }));
  fake_.Has(CriSandbox("p", true), "");
  StartShim();
  ASSERT_TRUE(BecomesKnown());
  const auto known = source_->Snapshot();
  EXPECT_EQ(known->runtime, "containerd 1.7.0");
  EXPECT_TRUE(known->pods.at(PodUid{"p"})->IsRunning());
  shim_.reset();
  const auto after = source_->Snapshot();
  EXPECT_FALSE(after->known);
  EXPECT_GE(after->since, known->since);
  EXPECT_EQ(after->reason,
            "the CRI shim at '" + Path().string() + "' has ended");
  EXPECT_EQ(after->pods, known->pods);
  // Another one follows.
  StartShim();
  EXPECT_TRUE(BecomesKnown());
}

TEST_F(ShimRuntimeSourceTest, WhatPassesTheShimIsSeenAtOnce) {
  StartShim();
  ASSERT_TRUE(BecomesKnown());
  int pod = 0;
  for (const std::string_view method :
       {cri::method::kRunPodSandbox, cri::method::kCreateContainer,
        cri::method::kStartContainer, cri::method::kStopContainer,
        cri::method::kRemoveContainer, cri::method::kStopPodSandbox,
        cri::method::kRemovePodSandbox}) {
    const std::string uid = std::to_string(++pod);
    fake_.Has(CriSandbox(uid, true), "");
    ASSERT_THAT(Call(method), IsOk()) << method;
    EXPECT_TRUE(WaitUntil([&](const auto& snapshot) {
      return snapshot.pods.contains(PodUid{uid});
    })) << method;
  }
}

TEST_F(ShimRuntimeSourceTest, WhatPassesUnseenIsSeenAfterThePeriod) {
  MakeSource(std::chrono::milliseconds(5));
  fake_.Has(CriSandbox("p", true), "");
  StartShim();
  ASSERT_TRUE(BecomesKnown());
  fake_.Has("", "");
  EXPECT_TRUE(
      WaitUntil([](const auto& snapshot) { return snapshot.pods.empty(); }));
  // Nothing runs: nothing is due until pods are expected.
  source_->Expect(true);
  fake_.Has(CriSandbox("q", true), "");
  EXPECT_TRUE(
      WaitUntil([](const auto& snapshot) { return !snapshot.pods.empty(); }));
}

TEST_F(ShimRuntimeSourceTest, TheShimsConnectionServesIt) {
  Relay relay(Path("relay.sock"), Path("runtime.sock"));
  options_.proxy.backend = Path("relay.sock");
  fake_.Has(CriSandbox("p", true), CriContainer("i", "p", "c", 1));
  fake_.Answer(cri::method::kContainerStatus, CriStatus("i", 1));
  // Without a client, for whom the proxy has another one.
  auto shim = CriShim::Start(options_);
  ASSERT_THAT(shim, IsOk());
  shim_ = *std::move(shim);
  ASSERT_TRUE(BecomesKnown());
  Mailbox<int> looked;
  ASSERT_TRUE(source_->Refresh([&] { looked.Put(0); }));
  ASSERT_TRUE(looked.Take().has_value());
  EXPECT_EQ(relay.callers(), 1u);
  EXPECT_EQ(
      source_->Snapshot()->pods.at(PodUid{"p"})->containers.at(0).started_at,
      WallTime(std::chrono::seconds(7)));
  shim_.reset();
}

TEST_F(ShimRuntimeSourceTest, WhileTheRuntimeIsAwayItIsNotKnownWhatRuns) {
  StartShim();
  ASSERT_TRUE(BecomesKnown());
  fake_.Stop();
  ASSERT_TRUE(WaitUntil([](const auto& snapshot) { return !snapshot.known; }));
  EXPECT_THAT(source_->Snapshot()->reason,
              HasSubstr(Path("runtime.sock").string()));
  ASSERT_TRUE(fake_.Start(Path("runtime.sock")));
  EXPECT_TRUE(BecomesKnown());
}

TEST_F(ShimRuntimeSourceTest, OneShimAtATimeFeedsIt) {
  StartShim();
  options_.proxy.listen = Path("other.sock");
  EXPECT_THAT(CriShim::Start(options_).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another shim")));
  shim_.reset();
  // A shim that could not listen leaves it to the next one.
  options_.proxy.listen = Path("no-folder") / "s.sock";
  EXPECT_FALSE(CriShim::Start(options_).ok());
  options_.proxy.listen = Path();
  StartShim();
  EXPECT_TRUE(BecomesKnown());
}

// The end of a shim is an answer to those that wait for one.
TEST_F(ShimRuntimeSourceTest, AQuestionEndsWithTheShim) {
  Mailbox<rpc::Respond> asked;
  fake_.Hang(cri::method::kListContainers, &asked);
  StartShim();
  ASSERT_TRUE(asked.Take().has_value());
  Mailbox<int> looked;
  ASSERT_TRUE(source_->Refresh([&] { looked.Put(0); }));
  shim_.reset();
  EXPECT_TRUE(looked.Take().has_value());
  EXPECT_FALSE(source_->Snapshot()->known);
}

TEST_F(ShimRuntimeSourceTest, AManagerHoldsTheReleaseByIt) {
  node_.runtime = source_.get();
  node_.Start();
  node_.plugins.Serve("example.com/gpu", 1);
  options_.manager = &node_.manager();
  node_.Publish(
      "apiVersion: v1\nkind: Pod\nmetadata: {namespace: default, name: p, uid: "
      "p}\n"
      "spec:\n  containers:\n  - name: c\n    resources: {limits: "
      "{example.com/gpu: \"1\"}}\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  fake_.Has(CriSandbox("p", true), CriContainer("i", "p", "c", 1));
  StartShim();
  node_.Publish("");
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  shim_.reset();
  ASSERT_TRUE(node_.WaitForReason("p", "RuntimeUnknown"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("has ended"));
  StartShim();
  ASSERT_TRUE(node_.WaitForReason("p", "ContainersRunning"));
  fake_.Has(CriSandbox("p", false), CriContainer("i", "p", "c", 2));
  ASSERT_THAT(Call(cri::method::kStopPodSandbox), IsOk());
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

}  // namespace
}  // namespace devmgr
