// SPDX-License-Identifier: Apache-2.0
//
// Restarts, reboots, failing disks, sources that come and go, rejections, the
// special claim and its gate.
#include <devmgr/metrics.h>

#include <atomic>
#include <string>
#include <vector>

#include "manager/manager_fixture.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Failure = SharedStore::Failure;

using ManagerLifeTest = ManagerTest;

// DRA-064
TEST_F(ManagerLifeTest, NoDriverIsCalledWhenTheIntentCannotBeWritten) {
  node_.Start(false);
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  const auto objects = node_.source->Snapshot();
  const Pod pod = *objects->pods.at({"default", "p"});
  // The manager sees the objects once its thread has come to them.
  while (node_.manager().Objects()->claims.empty())
    node_.manager().View()->Node();
  ASSERT_TRUE(node_.manager().AdmitPod(pod).ok());
  node_.store.FailNext(Failure::kLost);
  const absl::Status status = node_.manager().PreparePod(PodUid{"u-p"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status),
              HasSubstr("checkpoint ResourceClaim cache: input/output error"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
  EXPECT_TRUE(node_.manager().PreparePod(PodUid{"u-p"}).ok());
}

// The failure is told, and that it is over.
TEST_F(ManagerLifeTest, AWriteThatFailedAndRecoveredIsAnEventAndAMetric) {
  struct Counter final : MetricsSink {
    void OnLedgerWriteFailed() override { ++failures; }
    std::atomic<int> failures{0};
  } metrics;
  node_.metrics = &metrics;
  node_.Start();
  node_.store.FailNext(Failure::kLost);
  node_.Publish(PodYaml("p", "u-p", {}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  std::vector<std::string> events;
  for (const EventInfo& event : node_.manager().Events(0)) {
    if (event.object_kind == "Node") {
      events.push_back(event.reason + ": " + event.message);
    }
  }
  EXPECT_THAT(events,
              ElementsAre(HasSubstr("LedgerWriteFailed: checkpoint "
                                    "ResourceClaim cache: input/output error"),
                          HasSubstr("LedgerWritable: ")));
  EXPECT_EQ(metrics.failures, 1);
  node_.Stop();
}

// A write that failed but is on disk is adopted: it was decided.
TEST_F(ManagerLifeTest, AdoptsADecisionThatIsOnDiskAfterAll) {
  node_.Start();
  node_.store.FailNext(Failure::kWritten);
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"})));
}

TEST_F(ManagerLifeTest, KeepsAnsweringWhileTheLedgerCannotBeOpened) {
  node_.Start();
  const std::string first =
      ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + PodYaml("p", "u-p", {"c1"});
  node_.Publish(first);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.store.FailReopen(true);
  node_.store.FailNext(Failure::kLost);
  Pod other;
  other.metadata.name = "q";
  other.metadata.ns = "default";
  other.metadata.uid = "u-q";
  other.spec.containers = {{"c", {}, ""}};
  ASSERT_TRUE(node_.manager().AdmitPod(other).ok());
  EXPECT_FALSE(node_.manager().PreparePod(PodUid{"u-q"}).ok());
  EXPECT_THAT(node_.manager().View()->Node().ledger_error,
              HasSubstr("disk is gone"));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  node_.store.FailReopen(false);
  EXPECT_TRUE(node_.manager().PreparePod(PodUid{"u-q"}).ok());
  EXPECT_EQ(node_.manager().View()->Node().ledger_error, "");
}

TEST_F(ManagerLifeTest, TakesNothingNewWhileItStops) {
  node_.drivers.Hold(kDriver);
  node_.Start(false);
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  while (node_.manager().Objects()->claims.empty())
    node_.manager().View()->Node();
  DeviceManager& manager = node_.manager();
  const Pod pod = *manager.Objects()->pods.at({"default", "p"});
  ASSERT_TRUE(manager.AdmitPod(pod).ok());
  std::vector<absl::StatusCode> codes;
  const auto note = [&](const absl::Status& status) {
    codes.push_back(status.code());
  };
  // A completion that does not give up.
  manager.StartPreparePod(PodUid{"u-p"}, [&](const absl::Status& status) {
    note(status);
    manager.StartAdmitPod(pod,
                          [&](const auto& verdict) { note(verdict.status()); });
    manager.StartPreparePod(PodUid{"u-p"}, note);
    manager.StartUnpreparePod(PodUid{"u-p"}, note);
    manager.StartReleasePod(PodUid{"u-p"}, [&](const absl::Status& released) {
      note(released);
      EXPECT_THAT(manager.View()->Plugins(), IsEmpty());
    });
  });
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  node_.Stop();
  EXPECT_THAT(
      codes,
      ElementsAre(absl::StatusCode::kCancelled, absl::StatusCode::kCancelled,
                  absl::StatusCode::kCancelled, absl::StatusCode::kCancelled,
                  absl::StatusCode::kCancelled));
}

// DRA-101, DRA-102, DRA-103 improved: in the same boot the ledger is enough.
TEST_F(ManagerLifeTest, RestartAnswersFromTheLedgerAlone) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Stop();
  node_.drivers.Deregister(kDriver);
  node_.Start();
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_TRUE(node_.manager().PreparePod(PodUid{"u-p"}).ok());
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
}

// DRA-103: one call, and what it answers replaces what there was.
TEST_F(ManagerLifeTest, RebootPreparesAgainBeforeItAnswers) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Stop();
  node_.boot_id = "boot-2";
  node_.drivers.Deregister(kDriver);
  node_.Start();
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kPreparing);
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre(HasSubstr("not ready")));
  ASSERT_TRUE(node_.WaitForReason("p", "DriverNotRegistered"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kPreparing);
  node_.drivers.Register(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  EXPECT_THAT(node_.drivers.calls(),
              ElementsAre(Prepare(kDriver, {"c1"}), Prepare(kDriver, {"c1"})));
  EXPECT_THAT(
      node_.store.Load().claims.begin()->second->drivers.at(kDriver).devices,
      SizeIs(1));
}

// DRA-080, DRA-104: booked, never prepared, and gone when we are back.
TEST_F(ManagerLifeTest, ClaimBookedBeforeACrashIsUnpreparedWhenItsPodIsGone) {
  node_.drivers.Hold(kDriver);
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.drivers.WaitForCalls(1));
  node_.Stop();
  ASSERT_THAT(node_.store.Load().claims, SizeIs(1));
  node_.drivers.Let(kDriver);
  node_.Publish("");
  node_.Start();
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_EQ(node_.drivers.calls().back(), Unprepare(kDriver, {"c1"}));
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
}

TEST_F(ManagerLifeTest, PodThatComesBackIsReleasedFirst) {
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    TestNode node;
    node.drivers.Register(kDriver);
    node.Start();
    const std::string all = ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                            PodYaml("p", "u-p", {"c1"});
    node.Publish(all);
    ASSERT_TRUE(node.WaitFor("p", PodState::kReady));
    node.drivers.Answer(kDriver, FailTimes(false, "c1", 1'000'000));
    node.Publish("");
    ASSERT_TRUE(node.WaitForReason("p", "FailedUnprepareDynamicResources"));
    node.Publish(all);
    if (restart) node.Restart();
    node.drivers.Answer(kDriver, {});
    ASSERT_TRUE(node.WaitFor("p", PodState::kReady));
    const auto calls = node.drivers.calls();
    EXPECT_EQ(calls.back(), Prepare(kDriver, {"c1"}));
    EXPECT_EQ(calls.at(calls.size() - 2), Unprepare(kDriver, {"c1"}));
  }
}

// DRA-106
TEST_F(ManagerLifeTest, UnprepareNeedsNoObject) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish(PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitUntil("the claim object is gone", [&] {
    return node_.manager().Objects()->claims.empty();
  }));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"}),
                                                 Unprepare(kDriver, {"c1"})));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

// DRA-097: the pod has gone while nobody looked.
TEST_F(ManagerLifeTest, ClaimOfAPodThatIsNoMoreIsUnpreparedOnce) {
  node_.Start();
  const std::string claim = ClaimYaml("c1", "u-c", {kDriver}, {"u-p"});
  node_.Publish(claim + PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Stop();
  node_.Publish(claim);
  node_.Start();
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"}),
                                                 Unprepare(kDriver, {"c1"})));
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
}

TEST_F(ManagerLifeTest, FinishedPodIsGone) {
  node_.Start();
  const std::string claim = ClaimYaml("c1", "u-c", {kDriver}, {"u-p"});
  node_.Publish(claim + PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish(claim +
                PodYaml("p", "u-p", {"c1"}, "status: {phase: Succeeded}\n"));
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

// DRA-099
TEST_F(ManagerLifeTest, NothingVanishesWhileTheSourceIsIncomplete) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ObjectSnapshot incomplete;
  incomplete.complete = false;
  node_.source->Publish(incomplete);
  while (!node_.manager().Objects()->pods.empty())
    node_.manager().View()->Node();
  node_.manager().View()->Node();
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  node_.Restart();
  node_.manager().View()->Node();
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  node_.Publish("");
  EXPECT_TRUE(node_.WaitUntilGone("p"));
}

// DRA-050: the claim of the pod's last incarnation, with this one's name, is
// seen before its successor is written.
TEST_F(ManagerLifeTest, AClaimOfAnotherOwnerIsWaitedForUntilItIsReplaced) {
  node_.Start();
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\n"
      "spec:\n  containers: [{name: c}]\n"
      "  resourceClaims: [{name: a, resourceClaimTemplateName: t}]\n"
      "status: {resourceClaimStatuses: [{name: a, resourceClaimName: c1}]}\n"
      "---\n";
  const auto claim = [](const std::string& uid, const std::string& owner) {
    std::string yaml = ClaimYaml("c1", uid, {kDriver}, {"u-p"});
    const std::string text = "uid: " + uid;
    return yaml.replace(yaml.find(text), text.size(),
                        text +
                            ", ownerReferences: [{apiVersion: v1, kind: Pod, "
                            "name: p, controller: true, uid: " +
                            owner + "}]");
  };
  node_.Publish(pod + claim("u-old", "u-before"));
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotOwned"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kWaiting);
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("was not created for Pod"));
  node_.Restart();
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotOwned"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
  node_.Publish(pod + claim("u-new", "u-p"));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-new"));
}

// A file is mended in its place, where an API server would have refused the pod
// as it was: it is another one then.
TEST_F(ManagerLifeTest, AMalformedPodWhoseFileIsMendedIsAdmitted) {
  const std::string good =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
      "spec: {containers: [{name: c}]}\n---\n";
  const std::string bad =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
      "spec: {containers: [{name: c, resources: {claims: [{name: x}]}}]}\n"
      "---\n";
  node_.Start();
  node_.Publish(bad);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  const PodUid rejected = node_.UidOf("p");
  // It is the same pod for as long as it stays as it is.
  node_.Restart();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.UidOf("p"), rejected);
  node_.Publish(good);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const PodUid running = node_.UidOf("p");
  EXPECT_NE(running, rejected);
  EXPECT_EQ(node_.store.Load().FindPod(rejected), nullptr);
  // The other way round it is the same pod, which may run.
  node_.Publish(bad);
  ASSERT_TRUE(node_.WaitUntil("it is seen to be malformed", [&] {
    return !node_.manager().Objects()->malformed_pods.empty();
  }));
  node_.Sync();
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
  EXPECT_EQ(node_.UidOf("p"), running);
}

TEST_F(ManagerLifeTest, AFileThatIsMendedWhileTheManagerIsDownIsTakenAnew) {
  const auto pod = [](const std::string& claims) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
           "spec: {containers: [{name: c}]" +
           claims + "}\n---\n";
  };
  node_.Start();
  node_.Publish(pod(", resourceClaims: [{name: a}]"));  // DRA-046
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  node_.Stop();
  node_.Publish(pod(""));
  node_.Start();
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

TEST_F(ManagerLifeTest, MalformedPodIsRejectedWithItsField) {
  node_.Start();
  node_.Publish(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\n"
      "spec:\n  containers: [{name: c, resources: {claims: [{name: "
      "nope}]}}]\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("spec.containers[0].resources.claims[0]"));
}

// Pods of an embedder have not been through a manifest.
TEST_F(ManagerLifeTest, PodOfAnEmbedderIsDefaultedAndHeldToTheRules) {
  node_.Start(false);
  Pod pod;
  pod.metadata.name = "p";
  pod.metadata.uid = "u-p";
  auto verdict = node_.manager().AdmitPod(pod);
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->kind, Verdict::Kind::kReject);
  EXPECT_EQ(verdict->reason, "InvalidPod");
  EXPECT_THAT(verdict->message, HasSubstr("spec.containers: at least one"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kRejected);

  pod.metadata.uid = "u-q";
  pod.metadata.name = "q";
  pod.spec.containers = {{"c", {}, ""}};
  pod.spec.containers[0].resources.limits["example.com/gpu"].whole = 1;
  verdict = node_.manager().AdmitPod(pod);
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->reason, "ExtendedResourceNotMapped");
  EXPECT_EQ(node_.PodNamed("q").name.ns, "default");
}

TEST_F(ManagerLifeTest, PodThatTheLedgerHoldsIsNotRejectedForItsForm) {
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                PodYaml("p", "u-p", {"c1"}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  Pod pod = *node_.manager().Objects()->pods.at({"default", "p"});
  pod.spec.containers.clear();
  const auto verdict = node_.manager().AdmitPod(pod);
  ASSERT_TRUE(verdict.ok());
  EXPECT_EQ(verdict->kind, Verdict::Kind::kAdmit);
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kReady);
}

// Names and UIDs become parts of keys, documents and file names.
TEST_F(ManagerLifeTest, PodThatCannotBeRememberedIsRefused) {
  node_.Start(false);
  Pod pod;
  pod.metadata.name = "p\xff";
  pod.metadata.uid = "u-p";
  EXPECT_EQ(node_.manager().AdmitPod(pod).status().code(),
            absl::StatusCode::kInvalidArgument);
  pod.metadata.name = "p";
  for (const char* uid : {"", "../p", "\xff"}) {
    pod.metadata.uid = uid;
    EXPECT_EQ(node_.manager().AdmitPod(pod).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(node_.manager().View()->Pods(), IsEmpty());
}

std::string ExtendedPod() {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\n"
         "spec:\n  containers:\n"
         "  - {name: c, resources: {limits: {example.com/gpu: 1}}}\n";
}
std::string ExtendedStatus() {
  return "status:\n  extendedResourceClaimStatus:\n"
         "    resourceClaimName: c1\n    requestMappings:\n"
         "    - {containerName: c, resourceName: example.com/gpu, "
         "requestName: r}\n";
}

// DRA-073
TEST_F(ManagerLifeTest, MappingAddedLaterIsJudgedAgain) {
  node_.Start();
  const std::string claim = ClaimYaml("c1", "u-c", {kDriver}, {"u-p"});
  node_.Publish(claim + ExtendedPod());
  ASSERT_TRUE(node_.WaitForReason("p", "ExtendedResourceNotMapped"));
  EXPECT_THAT(
      node_.PodNamed("p").waiting_for,
      ElementsAre(WaitingFor{WaitingFor::Kind::kResource, "example.com/gpu"}));
  node_.Publish(claim + ExtendedPod() + ExtendedStatus());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
}

// DRA-074
TEST_F(ManagerLifeTest, WithTheGateOffTheSpecialClaimIsIgnored) {
  node_.options.feature_gates["DRAExtendedResource"] = false;
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + ExtendedPod() +
                ExtendedStatus());
  ASSERT_TRUE(node_.WaitForReason("p", "ExtendedResourceNotMapped"));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

// A gate governs new decisions only.
TEST_F(ManagerLifeTest, GateTurnedOffUnderARunningPodLosesNothing) {
  node_.Start();
  const std::string all = ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                          ExtendedPod() + ExtendedStatus();
  node_.Publish(all);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.options.feature_gates["DRAExtendedResource"] = false;
  node_.Restart();
  EXPECT_THAT(node_.Resolve("p", "c"), ElementsAre("d.example.com/x=c1"));
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.drivers.prepared(kDriver), IsEmpty());
}

TEST_F(ManagerLifeTest, ObjectsWithoutUidKeepTheirIdentityOverARestart) {
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
      "spec: {containers: [{name: c}]}\n";
  node_.Start();
  node_.Publish(pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const PodUid first = node_.UidOf("p");
  EXPECT_THAT(first.value, SizeIs(36));
  node_.Restart();
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(node_.UidOf("p"), first);
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  node_.Publish(pod);  // re-created: another pod
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_NE(node_.UidOf("p"), first);
}

TEST_F(ManagerLifeTest, SeveralManagersLiveInOneProcess) {
  TestNode other;
  other.drivers.Register(kDriver);
  node_.Start();
  other.Start();
  for (TestNode* node : {&node_, &other}) {
    node->Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                  PodYaml("p", "u-p", {"c1"}));
  }
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(other.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.calls(), SizeIs(1));
  EXPECT_THAT(other.drivers.calls(), SizeIs(1));
}

TEST_F(ManagerLifeTest, SecondPodOfAUidIsLeftOutAndReported) {
  node_.Start();
  node_.Publish(PodYaml("p", "u-p", {}) + PodYaml("q", "u-p", {}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.manager().View()->Pods(), SizeIs(1));
  EXPECT_THAT(node_.manager().View()->Node().source_problems,
              ElementsAre(HasSubstr("Pod 'default/q' is left out: its UID "
                                    "'u-p' belongs to 'default/p' already")));
}

TEST_F(ManagerLifeTest, OnlyPodsOfThisNodeCount) {
  node_.options.node_name = "here";
  node_.Start();
  node_.Publish(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-1}\n"
      "spec: {nodeName: here, containers: [{name: c}]}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: q, uid: u-2}\n"
      "spec: {nodeName: there, containers: [{name: c}]}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: r, uid: u-3}\n"
      "spec: {containers: [{name: c}]}\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.manager().View()->Pods(), SizeIs(1));
}

}  // namespace
}  // namespace devmgr
