// SPDX-License-Identifier: Apache-2.0
//
// A node that goes on where a kubelet stopped: what pods held is theirs from
// the first moment, whether or not their objects, plugins and drivers are
// there.
#include "manager/device_fixture.h"
#include "manager/manager_fixture.h"
#include "migration/kubelet_folder.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::DraCheckpoint;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ImportedPodsTest : public DeviceNodeTest {
 protected:
  ImportedPodsTest() {
    node_.open_store = [this] {
      checkpoint::RocksDbStoreOptions options;
      options.directory = folder_.state();
      auto store = checkpoint::OpenRocksDbStore(options);
      EXPECT_TRUE(store.ok()) << store.status();
      return store.ok() ? *std::move(store) : nullptr;
    };
    node_.drivers.Register(kDriver);
  }

  /// The kubelet's pods with these UIDs hold GPU 0, 1, ..., one each.
  void HoldGpus(const std::vector<std::string>& uids) {
    DeviceCheckpoint devices;
    devices.registered.emplace();
    devices.entries.emplace();
    for (std::size_t i = 0; i < uids.size(); ++i) {
      devices.entries->push_back(
          HeldEntry(uids[i], "c", kGpu, {std::to_string(i)}));
    }
    folder_.Write(devices);
  }
  void HoldClaim(const std::string& uid) {
    DraCheckpoint claims;
    claims.claims = {{PreparedClaim("c1", "u-1", kDriver, {uid})}};
    folder_.Write(claims);
  }
  void ImportAndStart() {
    const auto result = ImportKubelet(folder_.import_options());
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->written);
    node_.Start();
  }

  /// The one env variable that its plugin's answer has.
  std::string EnvOf(const std::string& uid) {
    const auto devices = node_.manager().ContainerDevicesOf(PodUid{uid}, "c");
    if (!devices.ok()) return MessageOf(devices.status());
    return (*devices)->env.empty() ? "none" : (*devices)->env[0].value;
  }
  bool IsKnown(const std::string& uid) {
    return !absl::IsNotFound(
        node_.manager().ContainerDevicesOf(PodUid{uid}, "c").status());
  }
  ::testing::AssertionResult WaitUntilForgotten(const std::string& uid) {
    return node_.WaitUntil(uid + " is forgotten",
                           [&] { return !IsKnown(uid); });
  }

  /// As from a directory: complete, and of what it lacks nothing is proven.
  void PublishFiles(const std::string& yaml) {
    ObjectSnapshot snapshot = SnapshotOf(yaml);
    snapshot.vouched = false;
    node_.source->Publish(std::move(snapshot));
  }

  const std::string claim_pod_ =
      ClaimYaml("c1", "u-1", {kDriver}, {"u-p"}) + PodYaml("p", "u-p", {"c1"});
  KubeletFolder folder_;
};

// Neither a source nor a plugin is there.
TEST_F(ImportedPodsTest, ResolveAnswersAtOnceByUid) {
  HoldGpus({"u-p"});
  ImportAndStart();
  EXPECT_EQ(EnvOf("u-p"), "0");
  const auto pods = node_.manager().View()->Pods();
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods[0].name, (ObjectName{"", "u-p"}));
  EXPECT_THAT(pods[0].message, HasSubstr("has not shown it yet"));
  // No client of pod-resources knows a pod by its UID alone.
  EXPECT_THAT(node_.manager().View()->ResourcesOfPods(nullptr)->pods,
              IsEmpty());
}

TEST_F(ImportedPodsTest, ItsDevicesAreGivenToNoOtherPod) {
  HoldGpus({"u-p"});
  ImportAndStart();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}) + DevicePod("q", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kWaiting));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Sync();
  EXPECT_THAT(node_.plugins.calls(), IsEmpty());
  EXPECT_EQ(EnvOf("u-p"), "0");
  node_.Publish(DevicePod("q", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_FALSE(IsKnown("u-p"));
}

// The name comes from the source; all else stays, also over a restart.
TEST_F(ImportedPodsTest, ThePodHasItsNameOnceTheSourceShowsIt) {
  HoldGpus({"u-p"});
  ImportAndStart();
  node_.plugins.Serve(kGpu, 1);
  const std::string yaml = DevicePod(
      "p", {{kGpu, 1}}, "  initContainers:\n" + ContainerYaml("i", {}));
  node_.Publish(yaml);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(EnvOf("u-p"), "0");
  // A container without devices is known, too.
  EXPECT_TRUE(node_.manager().ContainerDevicesOf(PodUid{"u-p"}, "i").ok());
  EXPECT_EQ(node_.manager().View()->ResourcesOfPods(nullptr)->pods.size(), 1u);
  node_.Restart();
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_EQ(EnvOf("u-p"), "0");
  EXPECT_THAT(node_.plugins.calls(), IsEmpty());
  node_.Stop();
  const auto history = folder_.ReadStore().history;
  EXPECT_EQ(history.back().decision.kind, state::DecisionKind::kShown);
}

TEST_F(ImportedPodsTest, AClaimOfThisBootIsNotPreparedAgain) {
  HoldClaim("u-p");
  ImportAndStart();
  const auto answer = node_.manager().ContainerDevicesOf(PodUid{"u-p"}, "c");
  EXPECT_THAT(answer.status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("imported")));
  node_.Publish(claim_pod_);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre(std::string(kDriver) + "/dev=u-1"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

TEST_F(ImportedPodsTest, AClaimOfAnEarlierBootIsPreparedAgain) {
  HoldClaim("u-p");
  KubeletFolder::SetBackBeforeBoot(folder_.claims_file());
  ImportAndStart();
  // Its driver does not need the pod's name.
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  node_.Publish(claim_pod_);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"})));
}

TEST_F(ImportedPodsTest, APodWithClaimsWaitsToBeShownWithoutAnError) {
  HoldClaim("u-p");
  ImportAndStart();
  ASSERT_TRUE(node_.WaitUntil("says why", [&] {
    const auto pods = node_.manager().View()->Pods();
    return pods.size() == 1 && pods[0].reason == "PodNotShown";
  }));
  EXPECT_THAT(MessagesOf("FailedPrepareDynamicResources"), IsEmpty());
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

// Its containers run: they are not started again. One that is has its plugin
// asked, of which the files say nothing.
TEST_F(ImportedPodsTest, PluginsAreAskedBeforeAContainerStartsAgain) {
  HoldGpus({"u-p"});
  ImportAndStart();
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const auto start = [&] {
    return node_.manager().BeforeContainerStart(PodUid{"u-p"}, "c");
  };
  node_.plugins.Serve(kGpu, 1, {.pre_start_required = true});
  node_.Sync();
  EXPECT_THAT(node_.plugins.calls(), IsEmpty());
  EXPECT_THAT(start(), IsOk());
  EXPECT_THAT(node_.plugins.calls(),
              ElementsAre(FakePlugins::Call{
                  "PreStartContainer", kGpu, {"0"}, "default/p", "c"}));
  node_.Restart();
  EXPECT_THAT(start(), StatusIs(absl::StatusCode::kUnavailable));
}

// That is known from its first connection on.
TEST_F(ImportedPodsTest, APluginThatNeedsNotBeAskedIsNotWaitedForTwice) {
  HoldGpus({"u-p"});
  ImportAndStart();
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const auto start = [&] {
    return node_.manager().BeforeContainerStart(PodUid{"u-p"}, "c");
  };
  EXPECT_THAT(start(), StatusIs(absl::StatusCode::kUnavailable));
  node_.plugins.Serve(kGpu, 1);
  EXPECT_THAT(start(), IsOk());
  node_.Restart();
  EXPECT_THAT(start(), IsOk());
  EXPECT_THAT(node_.plugins.calls(), SizeIs(1));  // While it was not there.
}

TEST_F(ImportedPodsTest, APluginIsNotGivenTheUidForAName) {
  HoldGpus({"u-p"});
  ImportAndStart();
  node_.plugins.Serve(kGpu, 1, {.pre_start_required = true});
  EXPECT_THAT(node_.manager().BeforeContainerStart(PodUid{"u-p"}, "c"), IsOk());
  EXPECT_THAT(node_.plugins.calls(),
              ElementsAre(FakePlugins::Call{
                  "PreStartContainer", kGpu, {"0"}, "/", "c"}));
}

// Both: the devices of its plugins are in the same answer.
TEST_F(ImportedPodsTest, DevicesAndClaimsAreOneAnswer) {
  HoldGpus({"u-p"});
  HoldClaim("u-p");
  ImportAndStart();
  node_.Publish(claim_pod_);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(EnvOf("u-p"), "0");
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre(std::string(kDriver) + "/dev=u-1"));
}

// The files had only its devices: the claims that its object names are new.
TEST_F(ImportedPodsTest, AClaimThatTheFilesLackIsPrepared) {
  HoldGpus({"u-p"});
  ImportAndStart();
  node_.Publish(claim_pod_);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"})));
  EXPECT_EQ(EnvOf("u-p"), "0");
}

// A directory that is not mounted yet releases nothing.
TEST_F(ImportedPodsTest, ASourceThatShowsNoneOfThemIsNotTrusted) {
  HoldGpus({"u-a", "u-b"});
  ImportAndStart();
  PublishFiles("");
  ASSERT_TRUE(node_.WaitUntil(
      "in doubt", [&] { return !MessagesOf("SourceInDoubt").empty(); }));
  node_.Sync();
  EXPECT_EQ(EnvOf("u-a"), "0");
  EXPECT_EQ(EnvOf("u-b"), "1");
  ASSERT_TRUE(
      node_.manager().maintenance().ConfirmSource("they are gone").ok());
  EXPECT_TRUE(WaitUntilForgotten("u-a"));
  EXPECT_TRUE(WaitUntilForgotten("u-b"));
}

TEST_F(ImportedPodsTest, WhatATrustedSourceLacksIsReleased) {
  HoldGpus({"u-a", "u-b", "u-c"});
  ImportAndStart();
  PublishFiles(DevicePod("a", {{kGpu, 1}}) + DevicePod("b", {{kGpu, 1}}));
  EXPECT_TRUE(WaitUntilForgotten("u-c"));
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  EXPECT_THAT(MessagesOf("SourceInDoubt"), IsEmpty());
}

// What a claim's pod leaves is unprepared as any other.
TEST_F(ImportedPodsTest, ThePodsClaimsAreUnpreparedWhenItIsGone) {
  HoldGpus({"u-a", "u-b"});
  HoldClaim("u-p");
  ImportAndStart();
  node_.Publish(DevicePod("a", {{kGpu, 1}}) + DevicePod("b", {{kGpu, 1}}));
  EXPECT_TRUE(WaitUntilForgotten("u-p"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Unprepare(kDriver, {"c1"})));
}

TEST_F(ImportedPodsTest, AClaimThatNoPodHasIsUnprepared) {
  DraCheckpoint claims;
  claims.claims = {{PreparedClaim("c1", "u-1", kDriver, {})}};
  folder_.Write(claims);
  ImportAndStart();
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Unprepare(kDriver, {"c1"})));
}

// Its containers may run: what they have stays.
TEST_F(ImportedPodsTest, APodThatIsShownMalformedKeepsWhatItHas) {
  HoldGpus({"u-p"});
  ImportAndStart();
  ObjectSnapshot snapshot;
  snapshot.complete = true;
  auto malformed = std::make_shared<MalformedPod>();
  malformed->pod.metadata.ns = "default";
  malformed->pod.metadata.name = "p";
  malformed->pod.metadata.uid = "u-p";
  malformed->problem.message = "is not a pod";
  snapshot.malformed_pods.insert_or_assign({"default", "p"}, malformed);
  node_.source->Publish(std::move(snapshot));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(EnvOf("u-p"), "0");
}

// The node booted between the import and now.
TEST_F(ImportedPodsTest, AfterARebootThePodIsAdmittedAnew) {
  HoldGpus({"u-p"});
  KubeletFolder::SetBackBeforeBoot(folder_.devices_file());
  ImportAndStart();
  node_.plugins.Serve(kGpu, 1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(EnvOf("u-p"), "0");
}

}  // namespace
}  // namespace devmgr
