// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/piece_reader.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/ledger_store.h"
#include "support/random_lives.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

using ::testing::IsEmpty;

TEST(CutPointsTest, LieEvenlyBetweenTheKeys) {
  const std::vector<std::string> cuts = CutPoints("c/a0", "c/a8", 4);
  ASSERT_EQ(cuts.size(), 3u);
  EXPECT_EQ(cuts[0].substr(0, 4), "c/a2");
  EXPECT_EQ(cuts[1].substr(0, 4), "c/a4");
  EXPECT_EQ(cuts[2].substr(0, 4), "c/a6");
}

TEST(CutPointsTest, ThereAreNoneWhereNothingLiesBetween) {
  EXPECT_THAT(CutPoints("c/a", "c/a", 4), IsEmpty());
  EXPECT_THAT(CutPoints("c/b", "c/a", 4), IsEmpty());
  EXPECT_THAT(CutPoints("", std::string(6, '\0'), 4), IsEmpty());
}

TEST(CutPointsTest, AreInOrderAndBetweenWhateverTheKeys) {
  const auto key = [](Luck& luck) {
    std::string text = luck.Chance(50) ? "c/" : "c/0000";
    for (auto left = luck.Below(12); left > 0; --left) {
      text.push_back(static_cast<char>(luck.Chance(25) ? luck() : '0'));
    }
    return text;
  };
  LiveEach({1, 2'000}, [&](Luck& luck) {
    std::string first = key(luck);
    std::string last = key(luck);
    if (last < first) std::swap(first, last);
    std::vector<std::string> all = CutPoints(first, last, 8);
    if (all.empty()) return;
    EXPECT_LT(first, all.front());
    EXPECT_LT(all.back(), last);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  });
}

/// A thousand records, or one, with UIDs of some kind.
std::vector<std::string> Uids(std::string_view kind) {
  Luck luck(TestSeed(2));
  std::vector<std::string> uids;
  for (int i = 0; i < (kind == "one" ? 1 : 1'000); ++i) {
    uids.push_back(
        kind == "number"
            ? std::to_string(i)
            : fmt::format("{:08x}-0000-4000-8000-{:012x}", luck(), i));
  }
  return uids;
}

template <typename Record>
std::shared_ptr<Record> RecordOf(const std::string& uid) {
  auto record = std::make_shared<Record>();
  record->uid.value = uid;
  record->name = {"default", "of-" + uid};
  return record;
}

// UIDs of any kind, and of any distribution.
TEST(PieceReaderTest, ReadsAllPodsAndClaims) {
  for (const std::string_view kind : {"uuid", "number", "one"}) {
    SCOPED_TRACE(kind);
    state::Batch batch;
    batch.seq = 1;
    state::State state;
    state.seq = 1;
    for (const std::string& uid : Uids(kind)) {
      const auto pod = RecordOf<state::PodRecord>(uid);
      pod->phase = state::PodPhase::kReady;
      pod->answer = std::make_shared<PodDevices>(
          PodDevices{pod->name, pod->uid, {{.name = "main"}}});
      batch.decision.changes.emplace_back(state::PutPod{pod});
      state.Put(pod);
      const auto claim = RecordOf<state::ClaimRecord>(uid);
      claim->drivers["d.example.com"].allocated = {{"pool", "device", false}};
      batch.decision.changes.emplace_back(state::PutClaim{claim});
      state.Put(claim);
    }
    const TempFolder folder;
    const RocksDbStoreOptions options{.directory = folder.path() / "state",
                                      .pods_first = true};
    ASSERT_TRUE((*OpenRocksDbStore(options))->Append({&batch, 1}).ok());
    const auto store = OpenRocksDbStore(options);
    ASSERT_TRUE(store.ok()) << store.status();
    const auto pods = (*store)->PodsFirst();
    ASSERT_TRUE(pods.has_value());
    EXPECT_EQ(pods->pods.size(), state.pods.size());
    EXPECT_EQ(pods->pod_names, state.pod_names);
    EXPECT_TRUE(pods->claims.empty());
    const auto loaded = (*store)->Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(*loaded == state);
    EXPECT_EQ(loaded->claim_names, state.claim_names);
  }
}

}  // namespace
}  // namespace devmgr::checkpoint
