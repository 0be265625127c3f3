// SPDX-License-Identifier: Apache-2.0
//
// A claim that is not what it was, and devices that two parties allocated.
#include "claim/replaced_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "claim/claim_fixture.h"

namespace devmgr::claim {
namespace {

using state::PodPhase;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ClaimReplacementTest : public ClaimTest {
 protected:
  /// This node has allocated `dev-1` of the driver to claim L.
  void AllocateHere(const std::string& driver, bool shared = false) {
    ResourceClaim claim = ClaimBuilder("L").From(driver).For("u-L", "L");
    if (shared) claim.status.allocation->results[0].share_id = "share-1";
    auto record = std::make_shared<state::LocalClaimRecord>();
    record->uid.value = claim.metadata.uid;
    record->object = std::make_shared<const ResourceClaim>(claim);
    state::Decision decision;
    decision.kind = state::DecisionKind::kClaimsAllocated;
    decision.changes = {state::PutLocalClaim{record}};
    ledger_.Take(decision);
  }
  /// Whether a pod that was Preparing or Ready then gives up its claims.
  bool GiveUp(const std::string& boot_id) {
    return ledger_.Take(
        GiveUpReplaced(state(), PodUid{"u-P"}, ReleaseTerms(), boot_id));
  }

  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
};

// While a server was away, or before it knew of it.
TEST_F(ClaimReplacementTest, ADeviceThatThisNodeGaveAwayIsGivenToNoOtherClaim) {
  AllocateHere(kDriver);
  objects_ = SnapshotOf({ClaimForP()});
  const Verdict wait = Prepare(p_);
  EXPECT_EQ(wait.kind, Kind::kWait);
  EXPECT_EQ(wait.reason, kDeviceDoubleClaimed);
  EXPECT_THAT(wait.message,
              HasSubstr("device pool-1/dev-1 of driver d.example.com is "
                        "allocated to ResourceClaim C and, by this node, to "
                        "ns/L"));
  EXPECT_THAT(wait.waiting_for,
              ElementsAre(WaitingFor{WaitingFor::Kind::kClaim, "ns/L"}));
  EXPECT_FALSE(Knows("u-C"));
  state::Decision gone;
  gone.changes = {state::EraseLocalClaim{{"u-L"}}};
  ledger_.Take(gone);
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
}

TEST_F(ClaimReplacementTest, OtherDevicesAndSharesAreNoDoubleClaim) {
  AllocateHere(kOtherDriver);
  objects_ = SnapshotOf({ClaimForP()});
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit) << "another driver's";
}

TEST_F(ClaimReplacementTest, AShareOfThisNodeLeavesRoomForOthers) {
  AllocateHere(kDriver, /*shared=*/true);
  objects_ = SnapshotOf({ClaimForP()});
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
}

TEST_F(ClaimReplacementTest, AdminAccessTakesADeviceFromNoClaim) {
  AllocateHere(kDriver);
  objects_ = SnapshotOf({ClaimForP().AdminAccess()});
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
}

TEST_F(ClaimReplacementTest, APodThatHasItsClaimKeepsIt) {
  objects_ = SnapshotOf({ClaimForP()});
  ASSERT_EQ(Prepare(p_).kind, Kind::kAdmit);
  AnswerAll();
  AllocateHere(kDriver);
  EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
}

TEST_F(ClaimReplacementTest, APodThatIsNotReadyGivesUpAReplacedClaim) {
  objects_ = SnapshotOf({ClaimForP()});
  EXPECT_FALSE(GiveUp(ledger_.boot_id())) << "the pod is not known";
  ASSERT_EQ(Prepare(p_).kind, Kind::kAdmit);
  ASSERT_EQ(PodOf(p_).phase, PodPhase::kPreparing);
  EXPECT_TRUE(GiveUp(ledger_.boot_id()));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReleasing);
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
}

// Its containers may run with the old one.
TEST_F(ClaimReplacementTest, APodThatBecameReadyMeanwhileKeepsTheOldClaim) {
  objects_ = SnapshotOf({ClaimForP()});
  ASSERT_EQ(Prepare(p_).kind, Kind::kAdmit);
  AnswerAll();
  ASSERT_EQ(PodOf(p_).phase, PodPhase::kReady);
  EXPECT_FALSE(MayBookAnew(PodOf(p_), ledger_.boot_id()));
  EXPECT_FALSE(GiveUp(ledger_.boot_id()));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
  // After a reboot nothing of it runs, until it is prepared again.
  ledger_.Reboot("boot-2");
  Book(p_, nullptr);
  ASSERT_EQ(PodOf(p_).phase, PodPhase::kPreparing);
  EXPECT_TRUE(GiveUp("boot-2"));
}

TEST_F(ClaimReplacementTest,
       AReplacedClaimOfAnotherPodIsReleasedByThatPodFirst) {
  objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
  ASSERT_EQ(Prepare(p_).kind, Kind::kAdmit);
  AnswerAll();
  objects_ = SnapshotOf({ClaimForP().Uid("u-C2").For("u-Q", "Q")});
  const Pod q = PodBuilder("Q").Claim("c1", "C").Container("c").Uses("c1");
  const Verdict wait = Prepare(q);
  EXPECT_EQ(wait.reason, "ClaimRecreated");
  EXPECT_THAT(wait.message, HasSubstr("pod ns/P has it"));
}

}  // namespace
}  // namespace devmgr::claim
