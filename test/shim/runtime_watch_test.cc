// SPDX-License-Identifier: Apache-2.0
//
// A runtime of the test's own, over a real socket: what is known of what it
// runs, and what becomes of that when it goes and comes back.
#include <devmgr/runtime_source.h>
#include <gmock/gmock.h>

#include "cri/runtime_fields.h"
#include "rpc/rpc_fixture.h"
#include "support/fake_cri_runtime.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = RuntimeContainer::State;

class RuntimeWatchTest : public rpc::RpcTest {
 protected:
  void TearDown() override {
    source_.reset();
    fake_.Stop();
  }

  void StartRuntime() { ASSERT_TRUE(fake_.Start(Path())); }
  void Watch(std::chrono::milliseconds period = std::chrono::milliseconds(5)) {
    RuntimeWatchOptions options;
    options.period = period;
    options.first_retry = std::chrono::milliseconds(5);
    options.last_retry = std::chrono::milliseconds(20);
    source_ = WatchRuntime(Path(), options);
    source_->Subscribe([this] { changed_.Put(0); });
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
  /// Waits for a look that began after this.
  bool LookAnew() {
    const auto looked = std::make_shared<Mailbox<int>>();
    return source_->Refresh([looked] { looked->Put(0); }) &&
           looked->Take().has_value();
  }
  const PodRun& Pod(const std::string& uid) {
    kept_ = source_->Snapshot();
    const auto found = kept_->pods.find(PodUid{uid});
    static const PodRun none;
    return found == kept_->pods.end() ? none : *found->second;
  }

  FakeCriRuntime fake_;
  Mailbox<int> changed_;
  std::unique_ptr<RuntimeSource> source_;
  std::shared_ptr<const RuntimeSnapshot> kept_;
};

TEST_F(RuntimeWatchTest, KnowsSandboxesAndContainersOfPods) {
  fake_.Has(CriSandbox("p", true, 2) + CriSandbox("", true),
            CriContainer("i", "p", "c", 1) + CriContainer("j", "", "x", 1) +
                CriContainer("k", "not-listed", "y", 1));
  fake_.Answer(cri::method::kContainerStatus, CriStatus("i", 1));
  StartRuntime();
  Watch();
  ASSERT_TRUE(BecomesKnown());
  const auto snapshot = source_->Snapshot();
  EXPECT_EQ(snapshot->runtime, "containerd 1.7.0");
  EXPECT_EQ(snapshot->reason, "");
  EXPECT_EQ(snapshot->pods.size(), 1u);
  const PodRun& pod = Pod("p");
  EXPECT_TRUE(pod.IsRunning());
  EXPECT_EQ(pod.name, (ObjectName{"ns", "pod-p"}));
  EXPECT_THAT(pod.sandboxes,
              ElementsAre(SandboxRun{"s-p", 2, true,
                                     WallTime(std::chrono::seconds(5))}));
  ContainerRun container;
  container.id = "i";
  container.name = "c";
  container.state = State::kRunning;
  container.image = "image:v1";
  container.image_id = "sha256:2";
  container.created_at = WallTime(std::chrono::seconds(6));
  container.started_at = WallTime(std::chrono::seconds(7));
  EXPECT_THAT(pod.containers, ElementsAre(container));
  EXPECT_EQ(fake_.statuses.Take(), CriField(1, "i"));
}

TEST_F(RuntimeWatchTest, AReadySandboxIsAskedForItsAddressesOnce) {
  const auto address = [](const std::string& text) {
    return CriField(2, CriField(1, text));
  };
  // The second one of a family, and what is no address, would be refused.
  fake_.Answer(
      cri::method::kPodSandboxStatus,
      CriField(1,
               CriField(1, "s-p") +
                   CriField(5, CriField(1, "10.0.0.1") + address("10.0.0.2") +
                                   address("nowhere") + address("fd00::1"))));
  fake_.Has(CriSandbox("p", true) + CriSandbox("q", false), "");
  StartRuntime();
  Watch();
  ASSERT_TRUE(BecomesKnown());
  EXPECT_THAT(Pod("p").sandboxes.at(0).ips, ElementsAre("10.0.0.1", "fd00::1"));
  EXPECT_THAT(Pod("q").sandboxes.at(0).ips, IsEmpty());
  ASSERT_TRUE(LookAnew());
  EXPECT_EQ(fake_.addresses.size(), 1u);
}

// The pod's name and UID stand in labels only.
TEST_F(RuntimeWatchTest, TakesTheLabelsWhereTheMetadataLacksThePod) {
  const auto label = [](const char* key, const char* value) {
    return CriField(5, CriField(1, key) + CriField(2, value));
  };
  fake_.Has(CriField(1, CriField(1, "s") + label("io.kubernetes.pod.uid", "u") +
                            label("io.kubernetes.pod.name", "n") +
                            label("io.kubernetes.pod.namespace", "m")),
            "");
  StartRuntime();
  Watch();
  ASSERT_TRUE(BecomesKnown());
  EXPECT_EQ(Pod("u").name, (ObjectName{"m", "n"}));
  EXPECT_TRUE(Pod("u").IsRunning());
}

TEST_F(RuntimeWatchTest, TheEndOfAContainerIsAskedForOnce) {
  fake_.Has(CriSandbox("p", true), CriContainer("i", "p", "c", 1));
  fake_.Answer(cri::method::kContainerStatus, CriStatus("i", 1));
  StartRuntime();
  Watch();
  ASSERT_TRUE(BecomesKnown());
  fake_.Answer(
      cri::method::kContainerStatus,
      CriStatus("i", 2,
                CriField(6, 9 * kCriSecond) + CriField(7, 137u) +
                    CriField(10, "OOMKilled") + CriField(11, "out of memory")));
  fake_.Has(CriSandbox("p", false), CriContainer("i", "p", "c", 2));
  ASSERT_TRUE(WaitUntil([](const auto& snapshot) {
    return !snapshot.pods.at(PodUid{"p"})->IsRunning();
  }));
  ASSERT_TRUE(LookAnew());
  const ContainerRun& ended = Pod("p").containers.at(0);
  EXPECT_EQ(ended.state, State::kExited);
  EXPECT_EQ(ended.exit_code, 137);
  EXPECT_EQ(ended.reason, "OOMKilled");
  EXPECT_EQ(ended.message, "out of memory");
  EXPECT_EQ(ended.finished_at, WallTime(std::chrono::seconds(9)));
  // One while it ran, one since it has exited.
  EXPECT_EQ(fake_.statuses.size(), 2u);
}

// It was removed between the list and the question, or the runtime fails.
TEST_F(RuntimeWatchTest, WithoutAStatusTheListCounts) {
  fake_.Has(CriSandbox("p", false), CriContainer("i", "p", "c", 2));
  fake_.Answer(cri::method::kContainerStatus,
               absl::NotFoundError("no container"));
  StartRuntime();
  Watch();
  ASSERT_TRUE(BecomesKnown());
  EXPECT_EQ(Pod("p").containers.at(0).state, State::kExited);
  EXPECT_FALSE(Pod("p").containers.at(0).finished_at.has_value());
  // It is asked again, though nothing runs.
  fake_.Answer(cri::method::kContainerStatus,
               CriStatus("i", 2, CriField(6, 9 * kCriSecond)));
  EXPECT_TRUE(WaitUntil([](const auto& snapshot) {
    return snapshot.pods.at(PodUid{"p"})->containers[0].finished_at.has_value();
  }));
}

TEST_F(RuntimeWatchTest, WhileTheRuntimeIsAwayItIsNotKnownWhatRuns) {
  Watch();
  ASSERT_TRUE(WaitUntil([](const auto& snapshot) {
    return snapshot.reason.find("no runtime at") != std::string::npos;
  }));
  EXPECT_FALSE(source_->Snapshot()->known);
  fake_.Has(CriSandbox("p", true), "");
  StartRuntime();
  ASSERT_TRUE(BecomesKnown());
  const WallTime known_since = source_->Snapshot()->since;
  const auto pod = source_->Snapshot()->pods.at(PodUid{"p"});
  fake_.Stop();
  ASSERT_TRUE(WaitUntil([](const auto& snapshot) { return !snapshot.known; }));
  const auto away = source_->Snapshot();
  EXPECT_GE(away->since, known_since);
  EXPECT_THAT(away->reason, HasSubstr(Path().string()));
  // What ran last is still there.
  EXPECT_EQ(away->pods.at(PodUid{"p"}), pod);
  fake_.Has("", "");
  StartRuntime();
  ASSERT_TRUE(BecomesKnown());
  EXPECT_THAT(source_->Snapshot()->pods, IsEmpty());
}

TEST_F(RuntimeWatchTest, TheReasonIsInTheRuntimesOwnWords) {
  fake_.Answer(cri::method::kListContainers,
               absl::InternalError("the store is locked"));
  StartRuntime();
  Watch();
  ASSERT_TRUE(WaitUntil([](const auto& snapshot) {
    return snapshot.reason.find("the store is locked") != std::string::npos;
  }));
  EXPECT_THAT(source_->Snapshot()->reason, HasSubstr("ListContainers"));
  fake_.Answer(cri::method::kListContainers, "\x0a");  // is no list
  ASSERT_TRUE(WaitUntil([](const auto& snapshot) {
    return snapshot.reason.find("ListContainersResponse") != std::string::npos;
  }));
}

TEST_F(RuntimeWatchTest, WhatDidNotChangeIsNotPublished) {
  fake_.Has(CriSandbox("p", true) + CriSandbox("q", true), "");
  StartRuntime();
  Watch();
  ASSERT_TRUE(BecomesKnown());
  const auto first = source_->Snapshot();
  ASSERT_TRUE(LookAnew());
  EXPECT_EQ(source_->Snapshot(), first);
  fake_.Has(CriSandbox("p", true) + CriSandbox("q", false), "");
  ASSERT_TRUE(WaitUntil(
      [&](const auto& snapshot) { return snapshot.pods != first->pods; }));
  const auto second = source_->Snapshot();
  EXPECT_EQ(second->pods.at(PodUid{"p"}), first->pods.at(PodUid{"p"}));
  EXPECT_FALSE(second->pods.at(PodUid{"q"})->IsRunning());
  EXPECT_EQ(second->since, first->since);
}

// An hour would be too long for this test.
TEST_F(RuntimeWatchTest, ALookThatIsAskedForDoesNotWaitForThePeriod) {
  fake_.Has(CriSandbox("p", true), "");
  StartRuntime();
  Watch(std::chrono::hours(1));
  ASSERT_TRUE(BecomesKnown());
  fake_.Has("", "");
  ASSERT_TRUE(LookAnew());
  EXPECT_THAT(source_->Snapshot()->pods, IsEmpty());
}

TEST_F(RuntimeWatchTest, AnIdleNodeIsLookedAtWhilePodsAreExpected) {
  StartRuntime();
  Watch();
  ASSERT_TRUE(BecomesKnown());
  ASSERT_TRUE(LookAnew());
  // Nothing runs and nothing is expected: nothing is due.
  const std::size_t looks = fake_.looks.size();
  EXPECT_GE(looks, 2u);
  source_->Expect(true);
  fake_.Has(CriSandbox("p", true), "");
  EXPECT_TRUE(
      WaitUntil([](const auto& snapshot) { return !snapshot.pods.empty(); }));
}

}  // namespace
}  // namespace devmgr
