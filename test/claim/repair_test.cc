// SPDX-License-Identifier: Apache-2.0
//
// What a driver prepared is void, and is prepared again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claim/claim_fixture.h"

namespace devmgr::claim {
namespace {

using state::PodPhase;
using testing::IsEmpty;

class RepairTest : public ClaimTest {
 protected:
  void SetUp() override {
    objects_ = SnapshotOf({ClaimForP().For("u-Q", "Q")});
    Prepare(p_);
    Prepare(q_);
    AnswerAll();
  }

  bool Repair(const std::string& claim, const std::string& driver) {
    return ledger_.Take(PrepareAgain(state(), ClaimUid{claim}, driver));
  }

  const Pod p_ = PodBuilder("P").Claim("c1", "C").Container("c").Uses("c1");
  const Pod q_ = PodBuilder("Q").Claim("c1", "C").Container("c").Uses("c1");
};

TEST_F(RepairTest, TakesAllPodsOfTheClaimBackUntilTheDriverAnswers) {
  const auto before = CdiOf(p_, "c");
  EXPECT_TRUE(Repair("u-C", kDriver));
  for (const Pod* pod : {&p_, &q_}) {
    EXPECT_EQ(PodOf(*pod).phase, PodPhase::kPreparing);
    EXPECT_EQ(PodOf(*pod).answer, nullptr);
  }
  EXPECT_EQ(ToPrepare(), (Calls{{kDriver, {"u-C"}}}));
  EXPECT_FALSE(Repair("u-C", kDriver));
  Book(p_, nullptr);
  AnswerAll();
  EXPECT_EQ(CdiOf(p_, "c"), before);
  EXPECT_EQ(CdiOf(q_, "c"), before);
}

TEST_F(RepairTest, AReleaseInTheMiddleUnpreparesTheClaim) {
  EXPECT_TRUE(Repair("u-C", kDriver));
  EXPECT_TRUE(Release(p_));
  EXPECT_TRUE(Release(q_));
  EXPECT_THAT(ToPrepare(), IsEmpty());
  EXPECT_EQ(ToUnprepare(), (Calls{{kDriver, {"u-C"}}}));
  EXPECT_FALSE(Repair("u-C", kDriver));
  AnswerAll();
  EXPECT_FALSE(Knows("u-C"));
}

TEST_F(RepairTest, NothingElseIsTouched) {
  EXPECT_FALSE(Repair("u-nobody", kDriver));
  EXPECT_FALSE(Repair("u-C", "other.example.com"));
  EXPECT_EQ(PodOf(p_).phase, PodPhase::kReady);
}

}  // namespace
}  // namespace devmgr::claim
