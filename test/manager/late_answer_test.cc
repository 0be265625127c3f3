// SPDX-License-Identifier: Apache-2.0
//
// The table of lib/claim/README.md where a driver answers late: what it was
// asked is not what is wanted any more. (test/claim/claim_walk_test.cc walks
// the rest.)
#include "manager/manager_fixture.h"
#include "manager/outage_node.h"

namespace devmgr {
namespace {

using Manner = OutageNode::Manner;
using Phase = std::optional<state::DriverPhase>;
using state::DriverPhase;

class LateAnswerTest : public ::testing::Test {
 protected:
  /// The driver has a call in its hands, and has not acted.
  void AskToPrepare() {
    node_.Hold(kDriver);
    node_.WantClaim("c1", {kDriver}, {"p", "q"});
    node_.WantPod("p", {"c1"});
    ASSERT_TRUE(node_.Until("it is asked to prepare",
                            [this] { return node_.waiting() == 1; }));
    ASSERT_EQ(node_.PhaseOf(kUidOfC1, kDriver), DriverPhase::kPreparing);
  }
  void AskToUnprepare() {
    AskToPrepare();
    node_.Let(kDriver);
    ASSERT_TRUE(
        node_.Until("p is Ready", [this] { return node_.IsReady("p"); }));
    node_.Hold(kDriver);
    node_.Drop("p");
    ASSERT_TRUE(node_.Until("it is asked to unprepare",
                            [this] { return node_.waiting() == 1; }));
    ASSERT_EQ(node_.PhaseOf(kUidOfC1, kDriver), DriverPhase::kUnpreparing);
  }
  void GiveUp() {
    node_.Drop("p");
    node_.Unprepare("p");
    ASSERT_TRUE(node_.Until("it is given up", [this] {
      return node_.PhaseOf(kUidOfC1, kDriver) == DriverPhase::kUnpreparing;
    }));
  }
  void DropByForce() {
    node_.ForceRelease("c1");
    ASSERT_TRUE(node_.Until("it is dropped", [this] {
      return !node_.PhaseOf(kUidOfC1, kDriver).has_value();
    }));
  }
  /// The one call that waits is answered; where the ledger has it then.
  void Answers(Manner manner, Phase expected) {
    const std::uint64_t calls = node_.calls();
    node_.Behave(kDriver, {manner, manner});
    node_.Let(kDriver);
    ASSERT_TRUE(
        node_.Until("it answers", [&] { return node_.calls() > calls; }));
    EXPECT_EQ(node_.PhaseOf(kUidOfC1, kDriver), expected);
  }
  void Ends() {
    ASSERT_TRUE(node_.Finish());
    EXPECT_EQ(node_.PhaseOf(kUidOfC1, kDriver), std::nullopt);
  }

  OutageNode node_{{kDriver}, {}, {}, 0};
};

TEST_F(LateAnswerTest, PrepareFailedWhilePreparingIsAskedAgain) {
  AskToPrepare();
  Answers(Manner::kActsAndFails, DriverPhase::kPreparing);
  EXPECT_FALSE(node_.IsReady("p"));
  Ends();
}

TEST_F(LateAnswerTest, PrepareDoneWhileUnpreparingIsUnpreparedAfterIt) {
  AskToPrepare();
  GiveUp();
  EXPECT_EQ(node_.waiting(), 1u) << "one call at a time";
  Answers(Manner::kHonest, std::nullopt);
  EXPECT_FALSE(node_.Holds(kDriver, kUidOfC1));
  // v1alpha1 unprepares what it is told.
  EXPECT_THAT(node_.unprepared_cdi_ids(),
              ::testing::ElementsAre("d.example.com/x=u-c1"));
  Ends();
}

TEST_F(LateAnswerTest, PrepareFailedWhileUnpreparingIsUnpreparedAllTheSame) {
  AskToPrepare();
  GiveUp();
  Answers(Manner::kActsAndFails, DriverPhase::kUnpreparing);
  EXPECT_TRUE(node_.Owes(kUidOfC1, kDriver));
  Ends();
  EXPECT_FALSE(node_.Holds(kDriver, kUidOfC1));
}

TEST_F(LateAnswerTest, PrepareDoneOfAClaimThatIsNoMoreChangesNothing) {
  AskToPrepare();
  GiveUp();
  DropByForce();
  Answers(Manner::kHonest, std::nullopt);
  Ends();
}

TEST_F(LateAnswerTest, PrepareFailedOfAClaimThatIsNoMoreChangesNothing) {
  AskToPrepare();
  GiveUp();
  DropByForce();
  Answers(Manner::kRefuses, std::nullopt);
  Ends();
}

TEST_F(LateAnswerTest, UnprepareDoneOfAClaimThatIsNoMoreChangesNothing) {
  AskToUnprepare();
  DropByForce();
  Answers(Manner::kHonest, std::nullopt);
  EXPECT_FALSE(node_.Holds(kDriver, kUidOfC1));
  Ends();
}

TEST_F(LateAnswerTest, UnprepareFailedOfAClaimThatIsNoMoreIsNotOwed) {
  AskToUnprepare();
  DropByForce();
  Answers(Manner::kRefuses, std::nullopt);
  Ends();
}

// It was given to the next pod in the middle of the old call, which would have
// taken it away again.
TEST_F(LateAnswerTest, TheNextPodWaitsForTheCallThatIsUnderWay) {
  AskToUnprepare();
  DropByForce();
  node_.WantPod("q", {"c1"});
  ASSERT_TRUE(node_.Until("q has booked it", [this] {
    return node_.PhaseOf(kUidOfC1, kDriver) == DriverPhase::kPreparing;
  }));
  EXPECT_EQ(node_.waiting(), 1u) << "one call at a time";
  Answers(Manner::kHonest, DriverPhase::kPrepared);  // And it is asked at once.
  EXPECT_TRUE(node_.IsReady("q"));
  EXPECT_TRUE(node_.Holds(kDriver, kUidOfC1));
  Ends();
}

}  // namespace
}  // namespace devmgr
