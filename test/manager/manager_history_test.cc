// SPDX-License-Identifier: Apache-2.0
//
// Looking back: the history of a manager that lives, and its earlier states.
#include <atomic>
#include <thread>

#include "manager/manager_fixture.h"
#include "state/views.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ManagerHistoryTest : public ManagerTest {
 protected:
  /// A pod with a claim becomes Ready and goes again.
  void LiveAndDie() {
    node_.Publish(ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) +
                  PodYaml("p", "u-p", {"c1"}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    node_.Publish("");
    ASSERT_TRUE(node_.WaitUntilGone("p"));
  }

  /// The states that the ledger's batches lead to, one after the other.
  std::vector<state::State> StatesByBatches() {
    std::vector<state::State> states(1);
    const auto history = node_.store.Open()->History(0);
    EXPECT_THAT(history, IsOk());
    for (const state::Batch& batch : *history) {
      states.push_back(states.back());
      EXPECT_THAT(state::Apply(states.back(), batch), IsOk());
    }
    return states;
  }

  void ExpectAllStates() {
    const std::vector<state::State> states = StatesByBatches();
    ASSERT_GT(states.size(), 4u);
    for (std::uint64_t seq = 0; seq < states.size(); ++seq) {
      const auto then = node_.manager().maintenance().StateAt(seq);
      ASSERT_THAT(then, IsOk());
      EXPECT_EQ(then->sequence, seq);
      EXPECT_THAT(
          DifferenceOf(*then, state::LedgerViewOf(states[seq], /*time_ms=*/0)),
          IsEmpty())
          << "after decision " << seq;
    }
  }
};

TEST_F(ManagerHistoryTest, TellsEveryStateOfAPodsLife) {
  node_.Start();
  LiveAndDie();
  ExpectAllStates();
  std::vector<PodState> seen;
  const std::uint64_t last = node_.manager().View()->Node().ledger_sequence;
  for (std::uint64_t seq = 0; seq <= last; ++seq) {
    const auto then = node_.manager().maintenance().StateAt(seq);
    ASSERT_THAT(then, IsOk());
    if (then->pods.empty()) continue;
    if (seen.empty() || seen.back() != then->pods[0].state) {
      seen.push_back(then->pods[0].state);
    }
  }
  EXPECT_THAT(seen,
              ::testing::ElementsAre(PodState::kPreparing, PodState::kReady,
                                     PodState::kReleasing));
  EXPECT_THAT(node_.manager().maintenance().StateAt({})->pods, IsEmpty());
}

TEST_F(ManagerHistoryTest, ARestartForgetsNoState) {
  node_.Start();
  LiveAndDie();
  node_.Restart();
  ExpectAllStates();
  LiveAndDie();
  ExpectAllStates();
}

TEST_F(ManagerHistoryTest, ATimeIsTheStateAfterTheLastDecisionUntilThen) {
  node_.Start();
  LiveAndDie();
  const auto history = node_.manager().maintenance().History(0);
  ASSERT_THAT(history, IsOk());
  const DecisionInfo& some = (*history)[history->size() / 2];
  const auto then = node_.manager().maintenance().StateAt(some.time);
  ASSERT_THAT(then, IsOk());
  // Several decisions may fall into one millisecond.
  EXPECT_GE(then->sequence, some.sequence);
  EXPECT_EQ(then->time, some.time);
  EXPECT_EQ(node_.manager().maintenance().StateAt(WallTime())->sequence, 0u);
}

TEST_F(ManagerHistoryTest, SaysWhatItDoesNotKnow) {
  node_.Start();
  LiveAndDie();
  node_.Sync();
  const std::uint64_t next = node_.manager().View()->Node().ledger_sequence + 1;
  EXPECT_THAT(
      node_.manager().maintenance().StateAt(next),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("is yet to come")));
}

TEST_F(ManagerHistoryTest, DecisionsNameUidsAndComeInParts) {
  node_.Start();
  LiveAndDie();
  const auto all = node_.manager().maintenance().History(0);
  ASSERT_THAT(all, IsOk());
  for (const DecisionInfo& decision : *all) {
    EXPECT_THAT(decision.uids, Contains("u-p")) << decision.kind.name();
  }
  const auto part = node_.manager().maintenance().History(1, 2);
  ASSERT_THAT(part, IsOk());
  ASSERT_THAT(*part, SizeIs(2));
  EXPECT_EQ(part->front().sequence, 2u);
}

TEST_F(ManagerHistoryTest, MayBeReadWhileDecisionsAreMade) {
  node_.Start();
  std::atomic<bool> done = false;
  std::vector<absl::Status> failures;
  int reads = 0;
  std::thread reader([&] {
    for (std::uint64_t i = 0; !done || reads == 0; ++i, ++reads) {
      const auto now = node_.manager().maintenance().StateAt({});
      const auto then =
          now.ok()
              ? node_.manager().maintenance().StateAt(i % (now->sequence + 1))
              : now;
      if (!then.ok()) failures.push_back(then.status());
    }
  });
  for (int i = 0; i < 5; ++i) LiveAndDie();
  done = true;
  reader.join();
  EXPECT_THAT(failures, Each(IsOk()));
  EXPECT_GT(reads, 0);
}

}  // namespace
}  // namespace devmgr
