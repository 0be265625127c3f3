// SPDX-License-Identifier: Apache-2.0
//
// DW-14: a claim is deleted and created anew, or allocated anew, while the pod
// that booked it is still waiting for a driver.
#include "manager/manager_fixture.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
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

}  // namespace
}  // namespace devmgr
