// SPDX-License-Identifier: Apache-2.0
//
// Devices of claims whose pods have gone before a driver unprepared them:
// nobody else gets them, whatever the driver has said of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "claim/claim_fixture.h"
#include "claim/spec_recovery.h"

namespace devmgr::claim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class KeptDevicesTest : public ClaimTest {
 protected:
  KeptDevicesTest() { rules_.by_driver[kDriver] = {DebtPolicy::Kind::kDefer}; }

  /// P books C, and the driver may answer.
  void BookC(const ResourceClaim& c) {
    objects_ = SnapshotOf({c});
    ASSERT_EQ(Prepare(p_).kind, Kind::kAdmit);
  }
  /// P goes; the driver is away, and owes C.
  void DeferC() {
    ledger_.Take(BeginRelease(state(), PodUid{"u-P"},
                              {{{kDriver, "it is away"}}, rules_, 1'000}));
    ASSERT_THAT(Forget(p_), IsOk());
    ASSERT_THAT(PodsOf("u-C"), IsEmpty());
  }
  /// The control plane takes C for gone, and gives its device to D.
  Verdict GiveToD() {
    objects_ = SnapshotOf({ClaimBuilder("D").From(kDriver).For("u-Q", "Q")});
    return Prepare(PodBuilder("Q").Claim("c1", "D").Container("c").Uses("c1"));
  }
  void ExpectKept() {
    const Verdict verdict = GiveToD();
    EXPECT_EQ(verdict.reason, "DeviceBeingUnprepared");
    EXPECT_THAT(verdict.message, HasSubstr("ns/C"));
    EXPECT_THAT(verdict.waiting_for,
                ElementsAre(WaitingFor{WaitingFor::Kind::kClaim, "ns/C"}));
    Unprepared(kDriver, {"u-C"});
    EXPECT_EQ(GiveToD().kind, Kind::kAdmit);
  }

  DebtRules rules_;
  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
};

TEST_F(KeptDevicesTest, OfAClaimThatTheDriverNeverAnswered) {
  BookC(ClaimForP());
  DeferC();
  ExpectKept();
}

TEST_F(KeptDevicesTest, OfAClaimThatAnotherBootPrepared) {
  BookC(ClaimForP());
  AnswerAll();
  ledger_.Reboot("boot-2");
  Book(p_, nullptr);
  ASSERT_THAT(ClaimOf("u-C").drivers.at(kDriver).devices, IsEmpty());
  DeferC();
  ExpectKept();
}

TEST_F(KeptDevicesTest, OfAClaimThatWasToBePreparedAgain) {
  BookC(ClaimForP());
  AnswerAll();
  ledger_.Take(PrepareAgain(state(), ClaimUid{"u-C"}, kDriver));
  DeferC();
  ExpectKept();
}

TEST_F(KeptDevicesTest, OfADriverThatNamesNoDevices) {
  BookC(ClaimForP());
  state::PreparedDevice answer;
  answer.cdi_device_ids = {"example.com/x=1"};
  Answers(kDriver, {{ClaimUid{"u-C"}, {answer}}});
  DeferC();
  ExpectKept();
}

TEST_F(KeptDevicesTest, AdminAccessKeepsNothingFromOthers) {
  BookC(ClaimForP().AdminAccess());
  AnswerAll();
  DeferC();
  EXPECT_EQ(GiveToD().kind, Kind::kAdmit);
}

TEST_F(KeptDevicesTest, AShareKeepsNothingFromOthers) {
  ResourceClaim claim = ClaimForP();
  claim.status.allocation->results[0].share_id = "share-1";
  BookC(claim);
  AnswerAll();
  DeferC();
  EXPECT_EQ(GiveToD().kind, Kind::kAdmit);
}

TEST_F(KeptDevicesTest, NothingIsKeptWhileAPodHasTheClaim) {
  BookC(ClaimForP());
  AnswerAll();
  EXPECT_EQ(GiveToD().kind, Kind::kAdmit);
}

// A ledger of before the allocation was kept: what the driver answered counts.
TEST_F(KeptDevicesTest, OfARecordThatDoesNotKnowItsAllocation) {
  BookC(ClaimForP());
  AnswerAll();
  auto old = std::make_shared<state::ClaimRecord>(ClaimOf("u-C"));
  old->drivers.at(kDriver).allocated.clear();
  state::Decision decision;
  decision.changes = {state::PutClaim{old}};
  ledger_.Take(decision);
  DeferC();
  ExpectKept();
}

TEST_F(KeptDevicesTest, TheNextPodThatBooksItTellsARecordItsAllocation) {
  ResourceClaim claim = ClaimForP().For("u-R", "R");
  BookC(claim);
  const auto allocated = ClaimOf("u-C").drivers.at(kDriver).allocated;
  EXPECT_THAT(allocated,
              ElementsAre(state::AllocatedDevice{"pool-1", "dev-1", false}));
  auto old = std::make_shared<state::ClaimRecord>(ClaimOf("u-C"));
  old->drivers.at(kDriver).allocated.clear();
  state::Decision decision;
  decision.changes = {state::PutClaim{old}};
  ledger_.Take(decision);
  Prepare(PodBuilder("R").Claim("c1", "C").Container("c").Uses("c1"));
  EXPECT_EQ(ClaimOf("u-C").drivers.at(kDriver).allocated, allocated);
}

}  // namespace
}  // namespace devmgr::claim
