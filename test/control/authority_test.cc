// SPDX-License-Identifier: Apache-2.0
#include "control/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "common/status.h"
#include "state/record_builders.h"
#include "support/status_matchers.h"

namespace devmgr::control {
namespace {

using state::Party;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AuthorityTest : public ::testing::Test {
 protected:
  const state::AuthorityRecord& Record() { return *state_.FindAuthority(); }

  void Commit(state::Decision decision) {
    ASSERT_FALSE(decision.changes.empty()) << decision.message;
    state::Batch batch{state_.seq + 1, 0, std::move(decision), {}};
    ASSERT_THAT(state::ApplyNew(state_, batch), IsOk());
    // It can be taken back, and is the same when it is applied again.
    state::State before = state_;
    ASSERT_THAT(state::Revert(before, batch), IsOk());
    ASSERT_THAT(state::Apply(before, batch), IsOk());
    ASSERT_EQ(before, state_);
  }
  /// The node has allocated something.
  void Allocate() {
    state_.Put(std::make_shared<const state::LocalClaimRecord>(
        state::MakeLocalClaim("local")));
  }

  state::State state_;
};

TEST_F(AuthorityTest, TheNodeIsItWithoutAnyRecord) {
  EXPECT_EQ(StandingOf(state_, Party::kNode), Standing{Party::kNode});
  EXPECT_THAT(DecideConfigured(state_, Party::kNode, 1).changes, IsEmpty());
  EXPECT_THAT(CheckAllocates(state_, Party::kNode), IsOk());
}

TEST_F(AuthorityTest, ASchedulerIsItAtOnceWhereNothingIsHandedOver) {
  EXPECT_EQ(StandingOf(state_, Party::kScheduler), Standing{Party::kScheduler});
  Commit(DecideConfigured(state_, Party::kScheduler, 7));
  EXPECT_EQ(Record().since_ms, 7);
  EXPECT_EQ(StandingOf(state_, Party::kScheduler), Standing{Party::kScheduler});
  EXPECT_THAT(DecideConfigured(state_, Party::kScheduler, 8).changes,
              IsEmpty());
  EXPECT_EQ(CheckAllocates(state_, Party::kScheduler).code(),
            absl::StatusCode::kAborted);
}

TEST_F(AuthorityTest, WhatTheNodeAllocatedIsHandedOver) {
  Allocate();
  const Standing changing{Party::kNode, Party::kScheduler};
  // Before it is recorded, too: nothing is decided meanwhile.
  EXPECT_EQ(StandingOf(state_, Party::kScheduler), changing);
  EXPECT_FALSE(CheckAllocates(state_, Party::kScheduler).ok());
  Commit(DecideConfigured(state_, Party::kScheduler, 7));
  EXPECT_EQ(StandingOf(state_, Party::kScheduler), changing);
  EXPECT_EQ(ChangingText(changing),
            "authority changing: from node to scheduler");
  const state::Decision end = DecideHandedOver(state_, 9);
  EXPECT_THAT(
      end.message,
      HasSubstr("scheduler is the authority, not node any more; 1 claim "
                "allocated by this node"));
  Commit(end);
  EXPECT_EQ(StandingOf(state_, Party::kScheduler), Standing{Party::kScheduler});
  EXPECT_EQ(Record().since_ms, 9);
  EXPECT_THAT(DecideHandedOver(state_, 10).changes, IsEmpty());
  EXPECT_FALSE(state_.local_claims.empty());
}

TEST_F(AuthorityTest, WhatAnOperatorSaidOutlivesTheConfiguration) {
  Commit(DecideConfigured(state_, Party::kScheduler, 1));
  auto decision = DecideHandOver(state_, Party::kScheduler, Party::kNode,
                                 "the server is gone", 2);
  ASSERT_THAT(decision, IsOk());
  Commit(*decision);
  EXPECT_EQ(StandingOf(state_, Party::kScheduler),
            (Standing{Party::kScheduler, Party::kNode}));
  Commit(DecideHandedOver(state_, 3));
  EXPECT_EQ(StandingOf(state_, Party::kScheduler), Standing{Party::kNode});
  EXPECT_EQ(Record().by_operator, "the server is gone");
  // The same configuration says nothing new.
  EXPECT_THAT(DecideConfigured(state_, Party::kScheduler, 4).changes,
              IsEmpty());
  // Another one does, though it only says what is the case.
  Commit(DecideConfigured(state_, Party::kNode, 5));
  EXPECT_EQ(StandingOf(state_, Party::kNode), Standing{Party::kNode});
  EXPECT_EQ(Record().by_operator, "");
  EXPECT_EQ(Record().since_ms, 3);
}

TEST_F(AuthorityTest, AHandOverCanBeCalledOff) {
  Commit(*DecideHandOver(state_, Party::kNode, Party::kScheduler, "try", 2));
  EXPECT_FALSE(
      DecideHandOver(state_, Party::kNode, Party::kScheduler, "again", 3).ok());
  Commit(*DecideHandOver(state_, Party::kNode, Party::kNode, "no", 4));
  EXPECT_EQ(StandingOf(state_, Party::kNode), Standing{Party::kNode});
  EXPECT_THAT(DecideHandedOver(state_, 5).changes, IsEmpty());
}

TEST_F(AuthorityTest, WhatAnOperatorMayNotSay) {
  EXPECT_EQ(DecideHandOver(state_, Party::kNode, Party::kScheduler, "", 1)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  const auto code = [&](Party configured, Party to) {
    return DecideHandOver(state_, configured, to, "so", 1).status().code();
  };
  EXPECT_EQ(code(Party::kNode, Party::kNode),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(Party::kNode, Party::kSplit),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(Party::kSplit, Party::kNode),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(AuthorityTest, AConfigurationThatChangesBackCallsItOff) {
  Allocate();
  Commit(DecideConfigured(state_, Party::kScheduler, 7));
  EXPECT_EQ(StandingOf(state_, Party::kNode), Standing{Party::kNode});
  Commit(DecideConfigured(state_, Party::kNode, 8));
  EXPECT_FALSE(Record().to.has_value());
  EXPECT_THAT(CheckAllocates(state_, Party::kNode), IsOk());
}

}  // namespace
}  // namespace devmgr::control
