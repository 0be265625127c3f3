// SPDX-License-Identifier: Apache-2.0
//
// DW-14: a claim is deleted and created anew, or allocated anew, while the pod
// that booked it is still waiting for a driver; and other objects that change
// between admission and prepare.
#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReplacedClaimTest : public ManagerTest {
 protected:
  static std::string P() { return PodYaml("p", "u-p", {"c1"}); }

  /// `p` has booked the claim; kOther refuses to prepare it.
  void BookOld(const std::vector<std::string>& pods) {
    node_.drivers.Answer(kOther, FailTimes(true, "c1", 1'000'000));
    node_.Start();
    node_.Publish(ClaimYaml("c1", "u-old", {kDriver, kOther}, pods) + P());
    ASSERT_TRUE(node_.WaitForReason("p", "FailedPrepareDynamicResources"));
  }
  /// Admits `p` by hand as the objects are, without preparing it.
  void Admit(const std::string& objects) {
    node_.Start(false);
    node_.Publish(objects);
    while (node_.manager().Objects()->pods.empty())
      node_.manager().View()->Node();
    const Pod pod = *node_.manager().Objects()->pods.at({"default", "p"});
    const auto verdict = node_.manager().AdmitPod(pod);
    ASSERT_THAT(verdict, IsOk());
    ASSERT_EQ(verdict->kind, Verdict::Kind::kAdmit) << verdict->message;
  }
};

TEST_F(ReplacedClaimTest, APodGivesUpTheOldClaimForTheNew) {
  BookOld({"u-p"});
  node_.Publish(ClaimYaml("c1", "u-new", {kDriver}, {"u-p"}) + P());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-new"));
  EXPECT_THAT(node_.drivers.prepared(kOther), IsEmpty());
  EXPECT_EQ(node_.store.Load().FindClaim(ClaimUid{"u-old"}), nullptr);
}

TEST_F(ReplacedClaimTest, APodGivesUpAClaimThatHasOtherDriversNow) {
  BookOld({"u-p"});
  node_.Publish(ClaimYaml("c1", "u-old", {kDriver}, {"u-p"}) + P());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-old"));
  EXPECT_THAT(node_.drivers.prepared(kOther), IsEmpty());
}

TEST_F(ReplacedClaimTest, TwoPodsThatShareTheOldClaimBothGetTheNew) {
  const std::string both = P() + PodYaml("q", "u-q", {"c1"});
  node_.drivers.Answer(kOther, FailTimes(true, "c1", 1'000'000));
  node_.Start();
  node_.Publish(ClaimYaml("c1", "u-old", {kOther}, {"u-p", "u-q"}) + both);
  ASSERT_TRUE(node_.WaitForReason("p", "FailedPrepareDynamicResources"));
  ASSERT_TRUE(node_.WaitForReason("q", "FailedPrepareDynamicResources"));
  node_.Publish(ClaimYaml("c1", "u-new", {kDriver}, {"u-p", "u-q"}) + both);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-new"));
}

// The same is looked at again before the intent is written.
TEST_F(ReplacedClaimTest, AReservationThatIsWithdrawnBeforePrepareCounts) {
  Admit(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + P());
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-q"}) + P());
  ASSERT_TRUE(node_.WaitUntil("the manager sees it", [&] {
    const auto objects = node_.manager().Objects();
    return objects->claims.at({"default", "c1"})
               ->status.reserved_for.front()
               .uid == "u-q";
  }));
  EXPECT_THAT(node_.manager().PreparePod(PodUid{"u-p"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is not allowed to use ResourceClaim c1")));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
  EXPECT_THAT(node_.store.Load().claims, IsEmpty());
  EXPECT_EQ(node_.PodNamed("p").reason, "ClaimNotReserved");
}

// What it holds is given up at an admission only.
TEST_F(ReplacedClaimTest, AClaimReplacedBeforeItIsPreparedAgainIsGivenUp) {
  node_.drivers.Answer(kOther, FailTimes(true, "c1", 1'000'000));
  Admit(ClaimYaml("c1", "u-c", {kDriver, kOther}, {"u-p"}) + P());
  DeviceManager& manager = node_.manager();
  const Pod pod = *manager.Objects()->pods.at({"default", "p"});
  ASSERT_FALSE(manager.PreparePod(PodUid{"u-p"}).ok());
  ASSERT_EQ(manager.AdmitPod(pod)->kind, Verdict::Kind::kAdmit);
  node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + P());
  ASSERT_TRUE(node_.WaitUntil("the manager sees it", [&] {
    const auto objects = manager.Objects();
    return objects->claims.at({"default", "c1"})
               ->status.allocation->results.size() == 1;
  }));
  EXPECT_THAT(manager.PreparePod(PodUid{"u-p"}),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("the pod gives up the old one first")));
  EXPECT_EQ(manager.AdmitPod(pod)->reason, "PodReleasing");
  EXPECT_THAT(manager.EndPod(PodUid{"u-p"}), IsOk());
  const auto verdict = manager.AdmitPod(pod);
  ASSERT_THAT(verdict, IsOk());
  ASSERT_EQ(verdict->kind, Verdict::Kind::kAdmit) << verdict->message;
  EXPECT_THAT(manager.PreparePod(PodUid{"u-p"}), IsOk());
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-c"));
}

// What was admitted is what is prepared, as long as the pod's object is bad.
TEST_F(ReplacedClaimTest, AMalformedPodGivesUpTheOldClaim) {
  BookOld({"u-p"});
  const std::string bad =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  containers: [{name: c, resources: {claims: [{name: c1}, {name: c1, "
      "request: r}]}}]\n"
      "  resourceClaims: [{name: c1, resourceClaimName: c1}]\n---\n";
  node_.Publish(ClaimYaml("c1", "u-old", {kDriver}, {"u-p"}) + bad);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_EQ(node_.PodNamed("p").reason, "InvalidPod");
  EXPECT_EQ(node_.store.Load().FindClaim(ClaimUid{"u-old"}), nullptr);
}

TEST_F(ReplacedClaimTest, AClaimThatIsCreatedAnewBeforePrepareIsTheOneBooked) {
  Admit(ClaimYaml("c1", "u-old", {kOther}, {"u-p"}) + P());
  node_.Publish(ClaimYaml("c1", "u-new", {kDriver}, {"u-p"}) + P());
  ASSERT_TRUE(node_.WaitUntil("the manager sees it", [&] {
    const auto objects = node_.manager().Objects();
    return objects->claims.at({"default", "c1"})->metadata.uid == "u-new";
  }));
  EXPECT_THAT(node_.manager().PreparePod(PodUid{"u-p"}), IsOk());
  EXPECT_THAT(node_.drivers.calls(), ElementsAre(Prepare(kDriver, {"c1"})));
  EXPECT_THAT(node_.drivers.prepared(kDriver), ElementsAre("u-new"));
}

TEST_F(ReplacedClaimTest, AnOwnerThatChangesBeforePrepareIsWaitedFor) {
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\n"
      "spec:\n  containers: [{name: c}]\n"
      "  resourceClaims: [{name: a, resourceClaimTemplateName: t}]\n"
      "status: {resourceClaimStatuses: [{name: a, resourceClaimName: c1}]}\n"
      "---\n";
  const auto claim = [](const std::string& owner) {
    std::string yaml = ClaimYaml("c1", "u-c", {kDriver}, {"u-p"});
    const std::string uid = "uid: u-c";
    return yaml.replace(yaml.find(uid), uid.size(),
                        uid +
                            ", ownerReferences: [{apiVersion: v1, kind: Pod, "
                            "name: p, controller: true, uid: " +
                            owner + "}]");
  };
  Admit(claim("u-p") + pod);
  node_.Publish(claim("u-q") + pod);
  ASSERT_TRUE(node_.WaitUntil("the manager sees it", [&] {
    const auto objects = node_.manager().Objects();
    return objects->claims.at({"default", "c1"})
               ->metadata.owner_references.front()
               .uid == "u-q";
  }));
  EXPECT_THAT(node_.manager().PreparePod(PodUid{"u-p"}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("was not created for Pod")));
  EXPECT_THAT(node_.drivers.calls(), IsEmpty());
}

}  // namespace
}  // namespace devmgr
