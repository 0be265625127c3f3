// SPDX-License-Identifier: Apache-2.0
//
// The table of lib/claim/README.md, walked by the decisions themselves: a claim
// is brought into each state, each event happens to it, and where it then is
// has to be what the table says.
#include <gtest/gtest.h>

#include <string>

#include "claim/claim_fixture.h"
#include "claim/claim_machine.h"
#include "claim/spec_recovery.h"
#include "support/state_table.h"

namespace devmgr::claim {
namespace {

/// One claim C of one driver, which pods P and Q may use.
class Walk : public ClaimTest {
 public:
  void TestBody() override {}

  void BringTo(ClaimState state) {
    objects_ = SnapshotOf(
        {ClaimBuilder("C").From(kDriver).For("u-P", "P").For("u-Q", "Q")});
    if (state == ClaimState::kAbsent) return;
    EXPECT_EQ(Prepare(p_).kind, Kind::kAdmit);
    if (state == ClaimState::kPreparing) return;
    Answers(kDriver, {"u-C"});
    if (state == ClaimState::kPrepared) return;
    if (state == ClaimState::kRenewing) {
      Happens(ClaimEvent::kRenew);
      return;
    }
    EXPECT_TRUE(Release(p_));
  }

  /// False: refused.
  bool Happens(ClaimEvent event) {
    switch (event) {
      case ClaimEvent::kReference:
        return Prepare(q_).kind == Kind::kAdmit;
      case ClaimEvent::kPrepareDone:
        Answers(kDriver, {"u-C"});
        break;
      case ClaimEvent::kPrepareFailed:
        // Nothing is recorded of it (test/manager/late_answer_test.cc).
        Answers(kDriver, std::set<std::string>());
        break;
      case ClaimEvent::kLastReferenceGone:
        Release(p_);
        break;
      case ClaimEvent::kUnprepareDone:
        Unprepared(kDriver, {"u-C"});
        break;
      case ClaimEvent::kUnprepareFailed:
        ledger_.Take(RecordDebts(state(), kDriver,
                                 {{ClaimUid{"u-C"}, {1, "busy"}}}, {}, 1'000));
        break;
      case ClaimEvent::kReboot:
        ledger_.Reboot("boot-2");
        // As the actuator does for every pod that it finds.
        if (HasP() && PodOf(p_).phase != state::PodPhase::kReleasing) {
          Book(p_, nullptr);
        }
        break;
      case ClaimEvent::kRepair:
        ledger_.Take(PrepareAgain(state(), ClaimUid{"u-C"}, kDriver));
        break;
      case ClaimEvent::kRenew:
        // Prepared at first, it is prepared again before.
        Missed();
        ledger_.Take(Renew(state(), ClaimUid{"u-C"}, kDriver,
                           {"boot-1", {PodUid{"u-P"}, PodUid{"u-Q"}}}));
        break;
    }
    return true;
  }

  ClaimState Now() const {
    const auto* claim = state().FindClaim(ClaimUid{"u-C"});
    return StateOf(claim == nullptr ? nullptr : &claim->drivers.at(kDriver));
  }

 private:
  /// The driver has prepared it again in vain, if it had prepared it.
  void Missed() {
    const auto again = PrepareAgain(state(), ClaimUid{"u-C"}, kDriver);
    if (ledger_.Take(again)) Answers(kDriver, {"u-C"});
  }
  bool HasP() const { return state().FindPod(PodUid{"u-P"}) != nullptr; }

  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
  const Pod q_ = PodBuilder("Q").Claim("c1", "C").Container("c").Uses("c1");
};

TEST(ClaimWalkTest, TheDecisionsMoveAsTheTableSays) {
  const StateTable table("lib/claim/README.md");
  int cells = 0;
  for (const ClaimState state : AllNamed<ClaimState>(ClaimStateName)) {
    for (const ClaimEvent event : AllNamed<ClaimEvent>(ClaimEventName)) {
      SCOPED_TRACE(std::string(ClaimStateName(state)) + " x " +
                   std::string(ClaimEventName(event)));
      Walk walk;
      walk.BringTo(state);
      ASSERT_EQ(walk.Now(), state);
      const bool done = walk.Happens(event);
      if (!done) {
        EXPECT_EQ(walk.Now(), state) << "refused, and yet changed";
      }
      EXPECT_EQ(done ? ClaimStateName(walk.Now()) : "refused",
                table.At(ClaimStateName(state), ClaimEventName(event)));
      ++cells;
    }
  }
  EXPECT_EQ(cells, 45);
}

// Two pods share the claim: it is not the last reference that goes.
TEST(ClaimWalkTest, AReferenceThatIsNotTheLastMovesNothing) {
  for (const ClaimState state :
       {ClaimState::kPreparing, ClaimState::kPrepared}) {
    Walk walk;
    walk.BringTo(state);
    ASSERT_TRUE(walk.Happens(ClaimEvent::kReference));
    walk.Happens(ClaimEvent::kLastReferenceGone);  // of P; Q stays
    EXPECT_EQ(walk.Now(), state);
  }
}

}  // namespace
}  // namespace devmgr::claim
