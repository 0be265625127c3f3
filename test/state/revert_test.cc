// SPDX-License-Identifier: Apache-2.0
//
// Revert is the inverse of Apply.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "state/record_builders.h"
#include "state/state.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"

namespace devmgr::state {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void ExpectSame(const State& a, const State& b) {
  EXPECT_TRUE(a == b);
  EXPECT_EQ(a.pod_names, b.pod_names);
  EXPECT_EQ(a.claim_names, b.claim_names);
  EXPECT_EQ(a.foreign_devices, b.foreign_devices);
}

TEST(RevertTest, GoesBackThroughAPodsLife) {
  std::vector<Batch> batches = PreparedPodBatches();
  for (Batch& batch : ReleasedPodBatches()) batches.push_back(batch);
  std::vector<State> states(1);
  for (Batch& batch : batches) {
    states.push_back(states.back());
    ASSERT_THAT(ApplyNew(states.back(), batch), IsOk());
    EXPECT_THAT(batch.undo, SizeIs(batch.decision.changes.size()));
  }
  State state = states.back();
  while (state.seq > 0) {
    ASSERT_THAT(Revert(state, batches[state.seq - 1]), IsOk());
    ExpectSame(state, states[state.seq]);
  }
  EXPECT_THAT(state.pods, IsEmpty());
}

TEST(RevertTest, HoldsRecordsAsTheyWereNotCopies) {
  State state;
  std::vector<Batch> batches = PreparedPodBatches();
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_THAT(ApplyNew(state, batches[i]), IsOk());
  }
  const PodRecord* const pod = state.FindPod(kPodA);
  ASSERT_THAT(ApplyNew(state, batches[3]), IsOk());
  ASSERT_THAT(Revert(state, batches[3]), IsOk());
  EXPECT_EQ(state.FindPod(kPodA), pod);
}

TEST(RevertTest, RefusesAnyButTheLastBatch) {
  State state;
  std::vector<Batch> batches = PreparedPodBatches();
  for (Batch& batch : batches) ASSERT_THAT(ApplyNew(state, batch), IsOk());
  const State before = state;
  for (const std::uint64_t seq : {0, 3, 5}) {
    Batch batch = batches[3];
    batch.seq = seq;
    const absl::Status status = Revert(state, batch);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(MessageOf(status),
                HasSubstr("is not the last one, which is 4"));
  }
  State empty;
  EXPECT_EQ(Revert(empty, Batch()).code(), absl::StatusCode::kDataLoss);
  ExpectSame(state, before);
}

TEST(RevertTest, RefusesWhatCannotBeKnown) {
  State state;
  Batch old = PreparedPodBatches()[0];
  ASSERT_THAT(Apply(state, old), IsOk());
  EXPECT_FALSE(CanRevert(old));
  EXPECT_EQ(Revert(state, old).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(state.seq, 1u);
  Batch recovered = MakeBatch(2, DecisionKind::kRecovered, {});
  ASSERT_THAT(ApplyNew(state, recovered), IsOk());
  EXPECT_FALSE(CanRevert(recovered));
  Batch empty = MakeBatch(3, DecisionKind::kRepair, {});
  ASSERT_THAT(ApplyNew(state, empty), IsOk());
  EXPECT_TRUE(CanRevert(empty));
}

TEST(RevertTest, AnUndoThatDoesNotFitChangesNothing) {
  State state;
  std::vector<Batch> batches = PreparedPodBatches();
  for (Batch& batch : batches) ASSERT_THAT(ApplyNew(state, batch), IsOk());
  const State before = state;
  Batch batch = batches[3];
  batch.undo[1] = ErasePod{kPodB};
  const absl::Status status = Revert(state, batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status),
              HasSubstr("undo of batch 4: pod with uid 'pod-b' is not known"));
  ExpectSame(state, before);
}

TEST(RevertTest, ARefusedBatchGetsNoUndo) {
  State state;
  Batch batch = MakeBatch(
      1, DecisionKind::kSeen,
      {Put(MakePod(kPodA, "a", PodPhase::kWaiting)), ErasePod{kPodB}});
  EXPECT_FALSE(ApplyNew(state, batch).ok());
  EXPECT_THAT(batch.undo, IsEmpty());
}

/// Changes that make sense to Apply only: put, renamed, erased, several times
/// in one batch.
class RandomChanges {
 public:
  explicit RandomChanges(Luck& luck) : luck_(luck) {}

  std::vector<Change> For(State state) {
    std::vector<Change> changes;
    for (std::size_t n = luck_.Below(8); n > 0; --n) {
      Batch probe = MakeBatch(state.seq + 1, DecisionKind::kSeen, {One()});
      if (Apply(state, probe).ok()) {
        changes.push_back(probe.decision.changes.front());
      }
    }
    return changes;
  }

 private:
  std::string Name() { return fmt::format("n{}", luck_.Below(5)); }

  Change One() {
    const std::string uid = Name();
    switch (luck_.Below(8)) {
      case 0:
        return ErasePod{PodUid{uid}};
      case 1:
        return EraseClaim{ClaimUid{uid}};
      case 2:
        return EraseIdentity{"Pod", {"default", uid}};
      case 3: {
        ClaimRecord claim = MakeClaim(DriverPhase::kPrepared, {PodUid{Name()}});
        claim.uid.value = uid;
        claim.name.name = Name();
        return Put(std::move(claim));
      }
      case 4:
        return Put(MakeIdentity(uid, Name()));
      case 5:
        return EraseHolder{{uid}};
      case 6: {
        ForeignHolderRecord holder = MakeHolder(uid, {Name(), Name()});
        if (luck_.Below(4) == 0) holder.freed = "so";
        return Put(std::move(holder));
      }
      default:
        return Put(MakePod(PodUid{uid}, Name(),
                           static_cast<PodPhase>(1 + luck_.Below(5))));
    }
  }

  Luck& luck_;
};

TEST(RevertTest, IsTheInverseOfApply) {
  LiveEach({0, 200}, [](Luck& luck) {
    RandomChanges random(luck);
    std::vector<State> states(1);
    std::vector<Batch> batches;
    for (std::uint64_t seq = 1; seq <= 20; ++seq) {
      states.push_back(states.back());
      batches.push_back(
          MakeBatch(seq, DecisionKind::kSeen, random.For(states.back())));
      ASSERT_THAT(ApplyNew(states.back(), batches.back()), IsOk());
    }
    State state = states.back();
    while (state.seq > 0) {
      ASSERT_THAT(Revert(state, batches[state.seq - 1]), IsOk());
      ASSERT_NO_FATAL_FAILURE(ExpectSame(state, states[state.seq]));
    }
    // And there again.
    for (const Batch& batch : batches) ASSERT_THAT(Apply(state, batch), IsOk());
    ExpectSame(state, states.back());
  });
}

}  // namespace
}  // namespace devmgr::state
