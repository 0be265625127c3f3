// SPDX-License-Identifier: Apache-2.0
#include "pods/call_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "manager/driver_names.h"

namespace devmgr::pods {
namespace {

using Need = CallQueue::Need;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CallQueueTest : public testing::Test {
 protected:
  void Add(const std::string& claim, Need need = Need::kPrepare,
           const std::string& driver = kDriver) {
    needs_[claim] = need;
    queue_.Add(driver, ClaimUid{claim});
  }
  /// The UIDs of the next call; `none` when there is none.
  std::vector<std::string> Next(const std::string& driver = kDriver) {
    const auto call = queue_.Next(
        driver, [&](const ClaimUid& uid) { return needs_[uid.value]; });
    if (!call.has_value()) return {"none"};
    last_need_ = call->need;
    std::vector<std::string> claims;
    for (const ClaimUid& uid : call->claims) claims.push_back(uid.value);
    return claims;
  }
  void Fill(std::size_t calls = CallQueue::kCallsAtOnce) {
    for (std::size_t i = 0; i < calls; ++i) {
      Add("fill-" + std::to_string(i));
      ASSERT_THAT(Next(), SizeIs(1));
    }
  }

  CallQueue queue_;
  std::map<std::string, Need> needs_;
  Need last_need_ = Need::kNothing;
};

TEST_F(CallQueueTest, AFewCallsGoAtOnceAndTheRestGoesTogether) {
  Fill();
  for (const char* claim : {"a", "b", "c"}) Add(claim);
  EXPECT_THAT(Next(), ElementsAre("none"));
  queue_.End(kDriver);
  EXPECT_THAT(Next(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Next(), ElementsAre("none"));
}

TEST_F(CallQueueTest, WhatIsDueAtTheSameTimeGoesTogetherAtOnce) {
  Add("a");
  Add("b");
  EXPECT_THAT(Next(), ElementsAre("a", "b"));
}

TEST_F(CallQueueTest, ACallHasSoManyClaimsAtMost) {
  for (std::size_t i = 0; i < CallQueue::kClaimsPerCall + 1; ++i) {
    Add(std::to_string(i));
  }
  EXPECT_THAT(Next(), SizeIs(CallQueue::kClaimsPerCall));
  EXPECT_THAT(Next(), ElementsAre(std::to_string(CallQueue::kClaimsPerCall)));
}

TEST_F(CallQueueTest, PrepareAndUnprepareTakeTurnsAndNobodyIsForgotten) {
  Fill(CallQueue::kCallsAtOnce - 1);
  Add("a", Need::kUnprepare);
  Add("b", Need::kPrepare);
  Add("c", Need::kUnprepare);
  EXPECT_THAT(Next(), ElementsAre("a", "c"));
  EXPECT_EQ(last_need_, Need::kUnprepare);
  Add("d", Need::kUnprepare);
  queue_.End(kDriver);
  EXPECT_THAT(Next(), ElementsAre("b"));
  EXPECT_EQ(last_need_, Need::kPrepare);
  queue_.End(kDriver);
  EXPECT_THAT(Next(), ElementsAre("d"));
}

TEST_F(CallQueueTest, WhatAClaimNeedsIsSeenWhenItsCallBegins) {
  Fill();
  Add("a");
  Add("b");
  Add("c");
  needs_["a"] = Need::kNothing;
  needs_["b"] = Need::kUnprepare;
  // That needs no call, and so no place.
  EXPECT_THAT(Next(), ElementsAre("a"));
  EXPECT_EQ(last_need_, Need::kNothing);
  queue_.End(kDriver);
  EXPECT_THAT(Next(), ElementsAre("b"));
  EXPECT_EQ(last_need_, Need::kUnprepare);
  queue_.End(kDriver);
  EXPECT_THAT(Next(), ElementsAre("c"));
}

TEST_F(CallQueueTest, AClaimUnderSuspicionGoesAlone) {
  queue_.Suspect(kDriver, ClaimUid{"b"});
  for (const char* claim : {"a", "b", "c"}) Add(claim);
  EXPECT_THAT(Next(), ElementsAre("a", "c"));
  Add("d");
  EXPECT_THAT(Next(), ElementsAre("b"));
  EXPECT_THAT(Next(), ElementsAre("d"));
  queue_.Clear(kDriver, ClaimUid{"b"});
  Add("b");
  Add("e");
  EXPECT_THAT(Next(), ElementsAre("b", "e"));
}

TEST_F(CallQueueTest, DriversDoNotWaitForEachOther) {
  Fill();
  Add("a");
  Add("a", Need::kPrepare, kOther);
  EXPECT_THAT(Next(), ElementsAre("none"));
  EXPECT_THAT(Next(kOther), ElementsAre("a"));
}

TEST_F(CallQueueTest, WhatIsDroppedIsNotDueAnywhere) {
  Add("a");
  Add("b");
  Add("a", Need::kPrepare, kOther);
  queue_.Drop(ClaimUid{"a"});
  EXPECT_THAT(Next(), ElementsAre("b"));
  EXPECT_THAT(Next(kOther), ElementsAre("none"));
}

TEST_F(CallQueueTest, TheLimitCanBeLower) {
  queue_ = CallQueue(1);
  Fill(1);
  Add("a");
  EXPECT_THAT(Next(), ElementsAre("none"));
  queue_.End(kDriver);
  EXPECT_THAT(Next(), ElementsAre("a"));
}

}  // namespace
}  // namespace devmgr::pods
