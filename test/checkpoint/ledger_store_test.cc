// SPDX-License-Identifier: Apache-2.0
//
// What every store does, whatever it keeps its batches in.
#include "checkpoint/ledger_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "checkpoint/codec.h"
#include "checkpoint/store_support.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

enum class StoreKind { kInMemory, kRocksDb };

class LedgerStoreTest : public ::testing::TestWithParam<StoreKind> {
 protected:
  std::unique_ptr<LedgerStore> Open(HistoryLimits limits = {}) {
    if (GetParam() == StoreKind::kInMemory) return NewInMemoryStore(limits);
    return MustOpen(folder_.path() / "state", limits);
  }
  static std::vector<std::uint64_t> Numbers(LedgerStore& store,
                                            std::uint64_t after = 0) {
    const auto history = store.History(after);
    EXPECT_TRUE(history.ok()) << history.status();
    std::vector<std::uint64_t> numbers;
    for (const state::Batch& batch : *history) numbers.push_back(batch.seq);
    return numbers;
  }

  const TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Stores, LedgerStoreTest,
                         ::testing::Values(StoreKind::kInMemory,
                                           StoreKind::kRocksDb),
                         [](const auto& kind) {
                           return kind.param == StoreKind::kInMemory
                                      ? "InMemory"
                                      : "RocksDb";
                         });

TEST_P(LedgerStoreTest, IsEmptyAtFirst) {
  const auto store = Open();
  const auto state = store->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(*state == state::State());
  EXPECT_THAT(Numbers(*store), IsEmpty());
}

TEST_P(LedgerStoreTest, ProjectsAllBatches) {
  const auto store = Open();
  const auto batches = state::PreparedPodBatches();
  ASSERT_TRUE(store->Append(batches).ok());
  EXPECT_TRUE(*store->Load() == Project(batches));
  const auto end = state::ReleasedPodBatches();
  for (const state::Batch& batch : end) {
    ASSERT_TRUE(store->Append({&batch, 1}).ok());
  }
  const auto state = store->Load();
  EXPECT_EQ(state->seq, 7u);
  EXPECT_THAT(state->pods, IsEmpty());
  EXPECT_THAT(state->claims, IsEmpty());
  EXPECT_THAT(state->identities, IsEmpty());
}

TEST_P(LedgerStoreTest, NoBatchesAreNoWrite) {
  const auto store = Open();
  EXPECT_TRUE(store->Append({}).ok());
  EXPECT_EQ(store->Load()->seq, 0u);
}

TEST_P(LedgerStoreTest, HistoryHasTheBatchesAsTheyWereWritten) {
  const auto store = Open();
  const auto batches = state::PreparedPodBatches();
  ASSERT_TRUE(store->Append(batches).ok());
  EXPECT_EQ(Encoded(*store->History(0)), Encoded(batches));
  EXPECT_THAT(Numbers(*store, 2), ElementsAre(3, 4));
  EXPECT_THAT(Numbers(*store, 4), IsEmpty());
  EXPECT_THAT(Numbers(*store, ~std::uint64_t{0}), IsEmpty());
  EXPECT_EQ(Encoded(*store->History(1, 2)), Encoded({batches[1], batches[2]}));
  EXPECT_THAT(*store->History(3, 2), SizeIs(1));
  EXPECT_THAT(*store->History(0, 0), IsEmpty());
}

TEST_P(LedgerStoreTest, HistoryIsBoundedByBatches) {
  const auto store = Open({.batches = 3});
  for (std::uint64_t seq = 1; seq <= 20; ++seq) {
    const state::Batch batch = WorkloadBatch(seq);
    ASSERT_TRUE(store->Append({&batch, 1}).ok());
    EXPECT_LE(Numbers(*store).size(), 3u);
    EXPECT_EQ(Numbers(*store).back(), seq);
  }
  EXPECT_THAT(Numbers(*store), ElementsAre(18, 19, 20));
  EXPECT_TRUE(*store->Load() == WorkloadState(20));
}

TEST_P(LedgerStoreTest, HistoryIsBoundedInsideOneWriteToo) {
  const auto store = Open({.batches = 2});
  const auto batches = state::PreparedPodBatches();
  ASSERT_TRUE(store->Append(batches).ok());
  EXPECT_THAT(Numbers(*store), ElementsAre(3, 4));
  EXPECT_TRUE(*store->Load() == Project(batches));
}

TEST_P(LedgerStoreTest, HistoryIsBoundedByBytes) {
  const HistoryLimits limits{.batches = 1'000, .bytes = 10'000};
  const auto store = Open(limits);
  for (std::uint64_t seq = 1; seq <= 30; ++seq) {
    const state::Batch batch = WorkloadBatch(seq);
    ASSERT_TRUE(store->Append({&batch, 1}).ok());
    std::size_t bytes = 0;
    const auto history = *store->History(0);
    for (const auto& item : Encoded(history)) bytes += item.size();
    EXPECT_LE(bytes, limits.bytes);
    ASSERT_FALSE(history.empty());
    // One more would have been too many.
    if (history.front().seq > 1) {
      bytes += EncodeBatch(WorkloadBatch(history.front().seq - 1)).size();
      EXPECT_GT(bytes, limits.bytes);
    }
  }
}

TEST_P(LedgerStoreTest, ABatchLargerThanTheHistoryLeavesItEmpty) {
  const auto store = Open({.batches = 10, .bytes = 500});
  const auto batches = state::PreparedPodBatches();
  state::PodRecord pod =
      state::MakePod(state::kPodA, "a", state::PodPhase::kRejected);
  pod.message = std::string(1'000, 'x');
  state::Batch large = state::MakeBatch(1, state::DecisionKind::kReject,
                                        {state::Put(std::move(pod))});
  ASSERT_TRUE(store->Append({&large, 1}).ok());
  EXPECT_THAT(Numbers(*store), IsEmpty());
  EXPECT_EQ(store->Load()->seq, 1u);
  const state::Batch small = state::MakeBatch(2, state::DecisionKind::kRelease,
                                              {state::ErasePod{state::kPodA}});
  ASSERT_TRUE(store->Append({&small, 1}).ok());
  EXPECT_THAT(Numbers(*store), ElementsAre(2));
}

TEST_P(LedgerStoreTest, ReopensWithWhatWasThere) {
  const auto store = Open({.batches = 2});
  const auto batches = state::PreparedPodBatches();
  ASSERT_TRUE(store->Append(batches).ok());
  const auto state = store->Reopen();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(*state == Project(batches));
  EXPECT_THAT(Numbers(*store), ElementsAre(3, 4));
  const auto end = state::ReleasedPodBatches();
  ASSERT_TRUE(store->Append({end.data(), 1}).ok());
  EXPECT_THAT(Numbers(*store), ElementsAre(4, 5));
}

TEST_P(LedgerStoreTest, RefusesABatchOutOfOrder) {
  const auto store = Open();
  const state::Batch batch = WorkloadBatch(2);
  EXPECT_FALSE(store->Append({&batch, 1}).ok());
  ASSERT_TRUE(store->Reopen().ok());
  EXPECT_EQ(store->Load()->seq, 0u);
}

TEST_P(LedgerStoreTest, RefusesAChangeWithoutRecord) {
  const auto store = Open();
  const state::Batch batch =
      state::MakeBatch(1, state::DecisionKind::kSeen, {state::PutPod{nullptr}});
  EXPECT_FALSE(store->Append({&batch, 1}).ok());
  ASSERT_TRUE(store->Reopen().ok());
  EXPECT_EQ(store->Load()->seq, 0u);
}

TEST_P(LedgerStoreTest, HistoryMayBeReadWhileOthersWriteAndReopen) {
  const auto store = Open({.batches = 10});
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      const auto history = store->History(0);
      // While the store is reopened it says so.
      if (!history.ok()) {
        EXPECT_EQ(history.status().code(), absl::StatusCode::kUnavailable);
        continue;
      }
      for (std::size_t i = 1; i < history->size(); ++i) {
        EXPECT_EQ((*history)[i].seq, (*history)[i - 1].seq + 1);
      }
    }
  });
  for (std::uint64_t seq = 1; seq <= 200; ++seq) {
    const state::Batch batch = WorkloadBatch(seq);
    EXPECT_TRUE(store->Append({&batch, 1}).ok());
    if (seq % 50 == 0) {
      EXPECT_TRUE(store->Reopen().ok());
    }
  }
  done = true;
  reader.join();
  EXPECT_EQ(Numbers(*store).size(), 10u);
}

}  // namespace
}  // namespace devmgr::checkpoint
