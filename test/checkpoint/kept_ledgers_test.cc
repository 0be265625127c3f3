// SPDX-License-Identifier: Apache-2.0
//
// Stores of every format, as their files lie on disk: in
// test/data/checkpoint/vN/ledger for good. Each is opened, becomes one of ours,
// one of format 2 and one of ours again, and its pods keep what they have. To
// write the current format's anew, which only a format of its own may need, run
// with DEVMGR_REGENERATE_GOLDEN=1.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "checkpoint/convert.h"
#include "checkpoint/full_ledger.h"
#include "checkpoint/keys.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/store_support.h"
#include "checkpoint/test_data.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

fs::path KeptLedger(int format) {
  return fs::path(DEVMGR_CHECKPOINT_DATA) / fmt::format("v{}", format) /
         "ledger";
}

/// What of a store is its data: not its lock, logs for people, and options.
bool IsData(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".sst") || name.ends_with(".log") ||
         name.starts_with("MANIFEST-") || name == "CURRENT" ||
         name == "format" || name == "witness";
}

void CopyData(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::create_directories(to / "db");
  for (const fs::path& below : {fs::path("db"), fs::path()}) {
    for (const auto& entry : fs::directory_iterator(from / below)) {
      if (!entry.is_regular_file() || !IsData(entry.path())) continue;
      fs::copy_file(entry.path(), to / below / entry.path().filename());
    }
  }
}

class KeptLedgersTest : public ::testing::TestWithParam<int> {
 protected:
  static int Format() { return GetParam(); }
  const fs::path& Dir() const { return folder_.path(); }
  std::string FormatFile() const { return ReadFile(Dir() / "format"); }

  static void SetUpTestSuite() {
    if (::getenv("DEVMGR_REGENERATE_GOLDEN") == nullptr) return;
    if (!fs::exists(KeptLedger(1))) {
      const TempFolder folder;
      MakeStore(folder.path(), 1, GoldenRecords(1));
      CopyData(folder.path(), KeptLedger(1));
    }
    const TempFolder folder;
    ASSERT_TRUE(MustOpen(folder.path())->Append(FullLedger()).ok());
    CopyData(folder.path(), KeptLedger(kFormatVersion));
  }
  KeptLedgersTest() { CopyData(KeptLedger(Format()), Dir()); }

  /// But for the lock, which names its last holder.
  std::map<std::string, std::string> Tree() const {
    auto tree = TreeOf(Dir());
    tree.erase((Dir() / "lock").string());
    return tree;
  }

  Conversion Down() const {
    // What is lost is named before anything is written.
    const auto before = Tree();
    const auto shown = ConvertStoppedStore(Dir(), 2, /*apply=*/false);
    EXPECT_TRUE(shown.ok()) << shown.status();
    EXPECT_EQ(Tree(), before);
    const auto done = ConvertStoppedStore(Dir(), 2, /*apply=*/true);
    EXPECT_TRUE(done.ok()) << done.status();
    if (!shown.ok() || !done.ok()) return {};
    EXPECT_EQ(shown->lost, done->lost);
    EXPECT_EQ(FormatFile(), FormatText(2));
    return *done;
  }
  /// Opens it, which makes it one of ours.
  state::State Up() const {
    const auto store = MustOpen(Dir());
    EXPECT_EQ(FormatFile(), FormatText(kFormatVersion));
    return *store->Load();
  }

  const TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, KeptLedgersTest, ::testing::Values(1, 2, 3));

/// Pods with their devices, claims and answers, claims with what drivers have
/// prepared.
void ExpectSameHoldings(const state::State& now, const state::State& before) {
  ASSERT_EQ(now.pods.size(), before.pods.size());
  for (const auto& [uid, pod] : before.pods) {
    const state::PodRecord* same = now.FindPod(uid);
    ASSERT_NE(same, nullptr) << uid.value;
    EXPECT_EQ(same->phase, pod->phase) << uid.value;
    EXPECT_EQ(same->claims, pod->claims) << uid.value;
    ASSERT_EQ(same->holds.size(), pod->holds.size()) << uid.value;
    for (std::size_t i = 0; i < pod->holds.size(); ++i) {
      state::DeviceHold hold = pod->holds[i];
      // Exports write it anew from the rest.
      hold.edits.response = same->holds[i].edits.response;
      EXPECT_EQ(same->holds[i], hold) << uid.value;
    }
    ASSERT_EQ(same->answer == nullptr, pod->answer == nullptr) << uid.value;
    if (pod->answer != nullptr) {
      EXPECT_EQ(*same->answer, *pod->answer) << uid.value;
    }
  }
  EXPECT_EQ(now.claims.size(), before.claims.size());
  for (const auto& [uid, claim] : before.claims) {
    const state::ClaimRecord* same = now.FindClaim(uid);
    ASSERT_NE(same, nullptr) << uid.value;
    EXPECT_EQ(*same, *claim) << uid.value;
  }
  EXPECT_EQ(now.resources.size(), before.resources.size());
  for (const auto& [name, resource] : before.resources) {
    const state::ResourceRecord* same = now.FindResource(name);
    ASSERT_NE(same, nullptr) << name.value;
    EXPECT_EQ(*same, *resource) << name.value;
  }
}

TEST_P(KeptLedgersTest, IsWhatItsHistorySays) {
  const auto stopped = ReadStoppedStore(Dir());
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  const auto store = MustOpen(Dir());
  EXPECT_TRUE(store->Recovered().dropped.empty());
  EXPECT_TRUE(*store->Load() == stopped->state);
  EXPECT_TRUE(Project(*store->History(0)) == stopped->state);
  EXPECT_FALSE(stopped->state.pods.empty());
  EXPECT_FALSE(stopped->state.claims.empty());
  if (Format() < static_cast<int>(kFormatVersion)) {
    EXPECT_TRUE(stopped->state == Project(FullLedgerOfFormat(Format())));
  }
}

TEST_P(KeptLedgersTest, GoesUpDownAndUp) {
  const state::State before = Up();
  const Conversion down = Down();
  EXPECT_EQ(down.lost.empty(), before.sources.empty() &&
                                   before.foreign_holders.empty() &&
                                   before.local_claims.empty())
      << ::testing::PrintToString(down.lost);
  ASSERT_NO_FATAL_FAILURE(ExpectSameHoldings(Up(), before));
  // It was written by an older version in between, and by ours since.
  const state::Batch next = MakeBatch(
      before.seq + 1, state::DecisionKind::kSeen,
      {Put(state::MakePod(PodUid{"later"}, "l", state::PodPhase::kWaiting))});
  ASSERT_TRUE(MustOpen(Dir())->Append({&next, 1}).ok());
  state::State with_later = before;
  ASSERT_TRUE(Apply(with_later, next).ok());
  const Conversion again = Down();
  EXPECT_EQ(again.batches, down.batches + 1);
  EXPECT_THAT(again.lost, IsEmpty());
  ASSERT_NO_FATAL_FAILURE(ExpectSameHoldings(Up(), with_later));
}

/// A pod that runs, with a record of each kind that format 2 lacks beside it.
TEST_P(KeptLedgersTest, ARunningPodKeepsItsDevicesBesideNewKindsOfRecords) {
  state::State before = Up();
  state::PodRecord running =
      state::MakePod(PodUid{"running"}, "running", state::PodPhase::kWaiting);
  running.phase = state::PodPhase::kReady;
  running.claims.clear();
  running.boot_id = "boot-1";
  running.holds = {state::MakeHold({"running-0", "running-1"})};
  running.holds[0].pre_start = true;
  auto answer = std::make_shared<PodDevices>();
  answer->name = running.name;
  answer->uid = running.uid;
  running.answer = std::move(answer);
  state::SourceRecord source;
  source.name = "directory /kept";
  source.marker = "4:7";
  const state::Batch next = MakeBatch(
      before.seq + 1, state::DecisionKind::kAllocated,
      {Put(running), Put(source), Put(state::MakeHolder("f00", {"stray-0"})),
       Put(state::MakeLocalClaim("kept-local"))});
  ASSERT_TRUE(MustOpen(Dir())->Append({&next, 1}).ok());
  ASSERT_TRUE(Apply(before, next).ok());
  const Conversion down = Down();
  EXPECT_THAT(down.lost, Contains(HasSubstr("directory /kept")));
  EXPECT_THAT(down.lost, Contains(HasSubstr("foreign container f00")));
  EXPECT_THAT(down.lost, Contains(HasSubstr("kept-local")));
  const state::State after = Up();
  ASSERT_NO_FATAL_FAILURE(ExpectSameHoldings(after, before));
  EXPECT_TRUE(after.sources.empty());
  EXPECT_TRUE(after.foreign_holders.empty());
  EXPECT_TRUE(after.local_claims.empty());
  EXPECT_THAT(Down().lost, IsEmpty());
  ASSERT_NO_FATAL_FAILURE(ExpectSameHoldings(Up(), before));
}

}  // namespace
}  // namespace devmgr::checkpoint
