// SPDX-License-Identifier: Apache-2.0
#include <devmgr/status_types.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "state/record_builders.h"
#include "state/views.h"

namespace devmgr::state {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Kind = LedgerChange::Kind;
using Field = LedgerChange::Field;

/// What the ledger held after so many batches of a pod's life.
LedgerView ViewAfter(std::size_t count) {
  std::vector<Batch> batches = PreparedPodBatches();
  for (Batch& batch : ReleasedPodBatches()) batches.push_back(batch);
  State state;
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(Apply(state, batches[i]).ok());
  }
  return LedgerViewOf(state, 0);
}

TEST(DifferenceTest, OfAViewToItselfIsNone) {
  for (std::size_t i = 0; i <= 7; ++i) {
    EXPECT_THAT(DifferenceOf(ViewAfter(i), ViewAfter(i)), IsEmpty());
  }
  // Nothing is left of the pod in the end.
  EXPECT_THAT(DifferenceOf(ViewAfter(0), ViewAfter(7)), IsEmpty());
}

TEST(DifferenceTest, TellsFieldsBeforeAndAfter) {
  const auto changes = DifferenceOf(ViewAfter(3), ViewAfter(4));
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].object_kind, "Pod");
  EXPECT_EQ(changes[0].kind, Kind::kChanged);
  EXPECT_EQ(changes[0].uid, "pod-a");
  EXPECT_THAT(changes[0].fields,
              ElementsAre(Field{"state", "Preparing", "Ready"}));
  EXPECT_EQ(changes[1].object_kind, "Claim");
  EXPECT_EQ(changes[1].name.ToString(), "default/gpu");
  EXPECT_THAT(changes[1].fields,
              ElementsAre(Field{"state", "Preparing", "Prepared"},
                          Field{"d.example.com/state", "Preparing", "Prepared"},
                          Field{"d.example.com/devices", "", "pool/gpu-0"},
                          Field{"d.example.com/cdiDevices", "",
                                "example.com/gpu=gpu-0"}));
}

TEST(DifferenceTest, TellsWhatCameAndWhatWent) {
  const auto came = DifferenceOf(ViewAfter(0), ViewAfter(4));
  ASSERT_THAT(came, SizeIs(2));
  EXPECT_EQ(came[0].kind, Kind::kAdded);
  EXPECT_EQ(came[1].kind, Kind::kAdded);
  EXPECT_THAT(came[0].fields, Contains(Field{"state", "", "Ready"}));
  // What it never had is not told.
  EXPECT_THAT(came[0].fields, Not(Contains(Field{"reason", "", ""})));
  const auto went = DifferenceOf(ViewAfter(4), ViewAfter(0));
  ASSERT_THAT(went, SizeIs(2));
  EXPECT_EQ(went[0].kind, Kind::kRemoved);
  EXPECT_THAT(went[1].fields, Contains(Field{"pods", "default/a", ""}));
}

TEST(DifferenceTest, ANewUidIsAnotherObject) {
  LedgerView before, after;
  before.pods.push_back(PodInfoOf(MakePod(kPodA, "x", PodPhase::kWaiting), {}));
  after.pods.push_back(PodInfoOf(MakePod(kPodB, "x", PodPhase::kWaiting), {}));
  const auto changes = DifferenceOf(before, after);
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].kind, Kind::kRemoved);
  EXPECT_EQ(changes[0].uid, "pod-a");
  EXPECT_EQ(changes[1].kind, Kind::kAdded);
  EXPECT_EQ(changes[1].uid, "pod-b");
}

TEST(DifferenceTest, ADriverThatIsGoneIsTold) {
  LedgerView before = ViewAfter(4), after = ViewAfter(4);
  after.claims[0].drivers.clear();
  const auto changes = DifferenceOf(before, after);
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_THAT(changes[0].fields,
              Contains(Field{"d.example.com/state", "Prepared", ""}));
}

TEST(DifferenceTest, TellsOfForeignHolders) {
  State state;
  Batch found = MakeBatch(1, DecisionKind::kHolderFound,
                          {Put(MakeHolder("c1", {"0", "1"}))});
  ASSERT_TRUE(Apply(state, found).ok());
  const LedgerView before = LedgerViewOf(state, 0);
  ForeignHolderRecord freed = MakeHolder("c1", {"0", "1"});
  freed.freed = "it hangs";
  Batch batch = MakeBatch(2, DecisionKind::kHolderFreed, {Put(freed)});
  ASSERT_TRUE(Apply(state, batch).ok());
  const LedgerView after = LedgerViewOf(state, 0);

  const auto came = DifferenceOf(LedgerView(), before);
  ASSERT_THAT(came, SizeIs(1));
  EXPECT_EQ(came[0].kind, Kind::kAdded);
  EXPECT_EQ(came[0].object_kind, "ForeignHolder");
  EXPECT_EQ(came[0].name.ToString(), "default/stray");
  EXPECT_EQ(came[0].uid, "c1");
  EXPECT_THAT(came[0].fields, Contains(Field{"example.com/tpu", "", "0, 1"}));
  const auto changed = DifferenceOf(before, after);
  ASSERT_THAT(changed, SizeIs(1));
  EXPECT_THAT(changed[0].fields, ElementsAre(Field{"freed", "", "it hangs"}));
}

TEST(DifferenceTest, NamesEveryEnumerator) {
  EXPECT_EQ(LedgerChangeKindName(Kind::kAdded), "Added");
  EXPECT_EQ(LedgerChangeKindName(Kind::kRemoved), "Removed");
  EXPECT_EQ(LedgerChangeKindName(Kind::kChanged), "Changed");
}

}  // namespace
}  // namespace devmgr::state
