// SPDX-License-Identifier: Apache-2.0
#include "state/history.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "state/record_builders.h"
#include "state/views.h"
#include "support/status_matchers.h"

namespace devmgr::state {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Of the batches that MakeBatch makes.
std::int64_t TimeOfBatch(std::uint64_t seq) {
  return 1'700'000'000'000 + static_cast<std::int64_t>(seq);
}

/// A ledger with all the states it went through.
class PastStatesTest : public ::testing::Test {
 protected:
  PastStatesTest() {
    std::vector<Batch> batches = PreparedPodBatches();
    for (Batch& batch : ReleasedPodBatches()) batches.push_back(batch);
    for (Batch& batch : batches) Append(std::move(batch));
  }

  void Append(Batch batch) {
    State next = states_.back();
    EXPECT_THAT(ApplyNew(next, batch), IsOk());
    states_.push_back(std::move(next));
    history_.push_back(std::move(batch));
  }

  absl::StatusOr<StateThen> At(const LedgerPoint& at) {
    reads_ = 0;
    return StateAt(
        states_.back(), at,
        [this](std::uint64_t after,
               std::size_t most) -> absl::StatusOr<std::vector<Batch>> {
          ++reads_;
          auto part = BatchesAfter(history_, after, most);
          read_batches_ += part.size();
          if (!disk_.ok()) return disk_;
          return part;
        });
  }
  absl::StatusOr<StateThen> AtTime(std::int64_t unix_ms) {
    return At(WallTimeOf(unix_ms));
  }

  void ExpectState(const absl::StatusOr<StateThen>& then, std::uint64_t seq) {
    ASSERT_THAT(then, IsOk());
    EXPECT_EQ(then->state.seq, seq);
    EXPECT_TRUE(then->state == states_[seq]);
  }

  std::vector<State> states_ = {State()};
  std::vector<Batch> history_;
  absl::Status disk_;
  int reads_ = 0;
  std::size_t read_batches_ = 0;
};

TEST_F(PastStatesTest, TellsTheStateAfterEachDecision) {
  for (std::uint64_t seq = 0; seq < states_.size(); ++seq) {
    SCOPED_TRACE(fmt::format("after {}", seq));
    const auto then = At(seq);
    ExpectState(then, seq);
    EXPECT_EQ(then->time_ms, seq == 0 ? 0 : TimeOfBatch(seq));
  }
}

TEST_F(PastStatesTest, TellsTheStateNow) { ExpectState(At({}), 7); }

TEST_F(PastStatesTest, TellsTheStateAtATime) {
  ExpectState(AtTime(TimeOfBatch(3)), 3);
  ExpectState(AtTime(TimeOfBatch(4)), 4);
  ExpectState(AtTime(TimeOfBatch(1'000)), 7);
  // Before the first decision of all there was nothing.
  ExpectState(AtTime(TimeOfBatch(0)), 0);
}

TEST_F(PastStatesTest, ATimeOfAClockThatWentBackIsTheLatestSuchState) {
  Batch late = MakeBatch(8, DecisionKind::kSeen,
                         {Put(MakePod(kPodB, "b", PodPhase::kWaiting))});
  late.time_ms = TimeOfBatch(2);
  Append(std::move(late));
  ExpectState(AtTime(TimeOfBatch(2)), 8);
  ExpectState(AtTime(TimeOfBatch(1)), 1);
}

TEST_F(PastStatesTest, ADecisionThatIsYetToComeIsOutOfRange) {
  EXPECT_THAT(
      At(std::uint64_t{8}),
      StatusIs(absl::StatusCode::kOutOfRange,
               HasSubstr("decision 8 is yet to come: the last one is 7")));
}

TEST_F(PastStatesTest, SaysHowFarABoundedHistoryReaches) {
  history_.erase(history_.begin(), history_.begin() + 3);
  const auto refused =
      StatusIs(absl::StatusCode::kOutOfRange,
               HasSubstr("has the states after decisions 3 to 7"));
  const auto oldest = At(std::uint64_t{3});
  ExpectState(oldest, 3);
  EXPECT_EQ(oldest->time_ms, 0);
  EXPECT_THAT(At(std::uint64_t{2}), refused);
  EXPECT_THAT(AtTime(TimeOfBatch(3)), refused);
  ExpectState(AtTime(TimeOfBatch(4)), 4);
}

TEST_F(PastStatesTest, AnEmptyHistoryTellsThePresentOnly) {
  history_.clear();
  ExpectState(At(std::uint64_t{7}), 7);
  ExpectState(At({}), 7);
  EXPECT_THAT(At(std::uint64_t{6}),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("after decision 6 is not known")));
  EXPECT_THAT(AtTime(TimeOfBatch(7)), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(PastStatesTest, EndsAtBatchesThatCannotBeTakenBack) {
  for (std::size_t i = 0; i < 4; ++i) history_[i].undo.clear();
  ExpectState(At(std::uint64_t{4}), 4);
  EXPECT_EQ(At(std::uint64_t{4})->time_ms, TimeOfBatch(4));
  EXPECT_THAT(At(std::uint64_t{3}),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("has the states after decisions 4 to 7")));
}

TEST_F(PastStatesTest, PassesOverWhatIsNewerThanNow) {
  const State now = states_[5];
  const auto then =
      StateAt(now, std::uint64_t{2},
              [this](std::uint64_t after,
                     std::size_t most) -> absl::StatusOr<std::vector<Batch>> {
                return BatchesAfter(history_, after, most);
              });
  ExpectState(then, 2);
}

TEST_F(PastStatesTest, ReadsNoMoreThanItNeeds) {
  for (std::uint64_t seq = 8; seq <= 2'000; ++seq) {
    Append(MakeBatch(
        seq, DecisionKind::kSeen,
        {Put(MakePod(kPodB, fmt::format("b{}", seq), PodPhase::kWaiting))}));
  }
  ExpectState(At(std::uint64_t{1'999}), 1'999);
  EXPECT_EQ(reads_, 1);
  EXPECT_LT(read_batches_, 500u);
  read_batches_ = 0;
  ExpectState(At(std::uint64_t{3}), 3);
  EXPECT_LT(read_batches_, 2'500u);
}

TEST_F(PastStatesTest, AHistoryThatDoesNotLeadHereIsDataLoss) {
  history_[6].undo = {ErasePod{PodUid{"nobody"}}, ErasePod{PodUid{"nobody"}}};
  EXPECT_THAT(At(std::uint64_t{2}), StatusIs(absl::StatusCode::kDataLoss,
                                             HasSubstr("undo of batch 7")));
}

TEST_F(PastStatesTest, PassesOnWhatTheDiskSays) {
  disk_ = absl::UnavailableError("in doubt");
  EXPECT_THAT(At(std::uint64_t{2}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(BatchesAfterTest, TakesAPartOfWhatIsThere) {
  const std::vector<Batch> batches = PreparedPodBatches();
  EXPECT_THAT(BatchesAfter(batches, 4, 10), IsEmpty());
  EXPECT_THAT(BatchesAfter(batches, 0, 0), IsEmpty());
  const auto part = BatchesAfter(batches, 1, 2);
  ASSERT_EQ(part.size(), 2u);
  EXPECT_EQ(part.front().seq, 2u);
  EXPECT_EQ(BatchesAfter(batches, 3, 10).size(), 1u);
}

}  // namespace
}  // namespace devmgr::state
