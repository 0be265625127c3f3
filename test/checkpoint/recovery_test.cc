// SPDX-License-Identifier: Apache-2.0
//
// What opening a store tells about how it was found, and what becomes of a
// damaged one.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/keys.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "checkpoint/store_support.h"
#include "checkpoint/table_frame.h"
#include "checkpoint/witness.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kNowMs = 1'700'000'000'000;  // 2023-11-14T22:13:20Z

class RecoveryTest : public ::testing::Test {
 protected:
  fs::path Dir() const { return folder_.path() / "state"; }
  fs::path Killed() const { return folder_.path() / "killed"; }

  static RocksDbStoreOptions Options(const fs::path& directory,
                                     Recovery recovery) {
    RocksDbStoreOptions options;
    options.directory = directory;
    options.recovery = recovery;
    options.now_ms = [] { return kNowMs; };
    return options;
  }
  absl::StatusOr<std::unique_ptr<LedgerStore>> Open(
      Recovery recovery = Recovery::kStrict) const {
    return OpenRocksDbStore(Options(Dir(), recovery));
  }

  /// Batches up to `last`; `Killed` gets what a kill would leave then.
  void Fill(std::uint64_t last) const {
    const auto store = MustOpen(Dir());
    for (std::uint64_t seq = store->Load()->seq + 1; seq <= last; ++seq) {
      const state::Batch batch = WorkloadBatch(seq);
      ASSERT_TRUE(store->Append({&batch, 1}).ok());
    }
    fs::remove_all(Killed());
    fs::copy(Dir(), Killed(), fs::copy_options::recursive);
  }
  void BecomeKilled() const {
    fs::remove_all(Dir());
    fs::copy(Killed(), Dir(), fs::copy_options::recursive);
  }

  /// Damages the middle of the newest log.
  void DamageLog() const {
    const fs::path log = DatabaseFiles(Dir(), ".log").back();
    std::string bytes = ReadFile(log);
    char& byte = bytes[bytes.size() / 2];
    byte = static_cast<char>(byte ^ 1);
    WriteFile(log, bytes);
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(Dir())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  const TempFolder folder_;
};

// ---- how it was found

TEST_F(RecoveryTest, ANewStoreIsClean) {
  const RecoveryReport report = (*Open())->Recovered();
  EXPECT_TRUE(report.closed_cleanly);
  EXPECT_EQ(Describe(report), "the ledger is empty");
}

TEST_F(RecoveryTest, TellsThatItWasClosedCleanly) {
  Fill(3);
  const std::string text =
      "the ledger was closed cleanly at batch 3 of 2023-11-14T22:13:20Z";
  EXPECT_EQ(Describe(ReadStoppedStore(Dir())->report), text);
  const auto store = Open();
  EXPECT_TRUE((*store)->Recovered().closed_cleanly);
  EXPECT_EQ(Describe((*store)->Recovered()), text);
}

TEST_F(RecoveryTest, TellsThatItWasNot) {
  Fill(3);
  BecomeKilled();
  const std::string text =
      "the ledger was not closed cleanly; recovered to batch 3 of "
      "2023-11-14T22:13:20Z";
  EXPECT_EQ(Describe(ReadStoppedStore(Dir())->report), text);
  const RecoveryReport report = (*Open())->Recovered();
  EXPECT_FALSE(report.closed_cleanly);
  EXPECT_EQ(report.last_batch, 3u);
  EXPECT_EQ(report.last_time_ms, WorkloadBatch(3).time_ms);
  EXPECT_EQ(Describe(report), text);
  // And only once.
  EXPECT_TRUE((*Open())->Recovered().closed_cleanly);
}

TEST_F(RecoveryTest, AKillWithoutAWriteChangesNothingOfThat) {
  Fill(3);
  {
    const auto store = Open();
    fs::remove_all(Killed());
    fs::copy(Dir(), Killed(), fs::copy_options::recursive);
  }
  BecomeKilled();
  EXPECT_TRUE((*Open())->Recovered().closed_cleanly);
  // With the next write it does.
  Fill(4);
  BecomeKilled();
  EXPECT_FALSE((*Open())->Recovered().closed_cleanly);
}

TEST_F(RecoveryTest, TellsWhatAnUnfinishedWriteLeft) {
  Fill(3);
  BecomeKilled();
  const fs::path log = DatabaseFiles(Dir(), ".log").back();
  const auto size = fs::file_size(log);
  fs::resize_file(log, size - 5);
  const RecoveryReport report = (*Open())->Recovered();
  EXPECT_EQ(report.last_batch, 2u);
  ASSERT_EQ(report.dropped.size(), 1u);
  EXPECT_THAT(report.dropped[0],
              AllOf(HasSubstr("bytes of an unfinished write at offset"),
                    HasSubstr(log.filename().string())));
}

TEST_F(RecoveryTest, MissesBatchesThatTheWitnessSaw) {
  Fill(3);
  Fill(5);
  const std::string witness = ReadFile(WitnessPath(Dir()));
  EXPECT_THAT(witness, HasSubstr("devmgr ledger held batch 5\nclosed\n"));
  const fs::path log = DatabaseFiles(Dir(), ".log").back();
  WriteFile(log, "");
  for (const absl::Status& status :
       {Open().status(), ReadStoppedStore(Dir()).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(MessageOf(status),
                AllOf(HasSubstr("ends with batch 3, but has held batch 5"),
                      HasSubstr(log.filename().string())));
  }
}

TEST_F(RecoveryTest, AnOlderWitnessIsThatOfAKill) {
  Fill(3);
  const std::string old = ReadFile(WitnessPath(Dir()));
  Fill(5);
  WriteFile(WitnessPath(Dir()), old);
  const RecoveryReport report = (*Open())->Recovered();
  EXPECT_FALSE(report.closed_cleanly);
  EXPECT_EQ(report.last_batch, 5u);
}

TEST_F(RecoveryTest, ADirectoryOfWhichOnlyTheWitnessIsLeftIsNotNew) {
  Fill(3);
  fs::remove_all(Dir() / "db");
  fs::remove(Dir() / "format");
  for (const Recovery recovery : {Recovery::kStrict, Recovery::kLenient}) {
    const absl::Status status = Open(recovery).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(MessageOf(status), HasSubstr("witness' is there, but"));
  }
}

TEST_F(RecoveryTest, StrictlySaysWhatToDo) {
  Fill(3);
  DamageLog();
  const auto before = TreeOf(Dir() / "db");
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(HasSubstr(".log' is damaged at offset"),
            HasSubstr("nothing was changed: restore the state directory, or "
                      "open it with recovery 'lenient'")));
  EXPECT_EQ(TreeOf(Dir() / "db"), before);
}

// ---- lenient

TEST_F(RecoveryTest, LenientlyKeepsTheDamagedDatabaseAndSaysSo) {
  Fill(9);
  DamageLog();
  const auto damaged = TreeOf(Dir() / "db").size();
  auto store = Open(Recovery::kLenient);
  ASSERT_TRUE(store.ok()) << store.status();
  const RecoveryReport report = (*store)->Recovered();
  EXPECT_EQ(report.skipped, 1u);
  EXPECT_THAT(report.damage, HasSubstr(".log' is damaged at offset"));
  EXPECT_EQ(report.kept, Dir() / "db.damaged-20231114T221320Z");
  EXPECT_EQ(TreeOf(report.kept).size(), damaged);
  EXPECT_THAT(Describe(report),
              AllOf(HasSubstr("recovered to batch 10"),
                    HasSubstr("1 record skipped ('"),
                    HasSubstr("kept in '" + report.kept.string() + "'")));
  const auto history = (*store)->History(9);
  ASSERT_EQ(history->size(), 1u);
  const state::Batch& last = history->back();
  EXPECT_EQ(last.seq, 10u);
  EXPECT_EQ(last.time_ms, kNowMs);
  EXPECT_EQ(last.decision.kind, state::DecisionKind::kRecovered);
  EXPECT_THAT(last.decision.message, HasSubstr("1 record skipped"));
  EXPECT_THAT(Names(), Not(Contains("db.salvage")));
  // Once more in the same second: nothing kept is overwritten.
  state::Batch next = WorkloadBatch(11);
  ASSERT_TRUE((*store)->Append({&next, 1}).ok());
  store->reset();
  DamageLog();
  store = Open(Recovery::kLenient);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Recovered().kept,
            Dir() / "db.damaged-20231114T221320Z-2");
  EXPECT_EQ(TreeOf(report.kept).size(), damaged);
}

TEST_F(RecoveryTest, LenientlyChangesNothingAboutAGoodStore) {
  Fill(9);
  const auto store = Open(Recovery::kLenient);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->Recovered().closed_cleanly);
  EXPECT_TRUE(*(*store)->Load() == WorkloadState(9));
}

TEST_F(RecoveryTest, LenientlyKeepsDamagedFilesBesideTheDatabase) {
  Fill(9);
  WriteFile(WitnessPath(Dir()), "devmgr ledger held batch 8\nclosed\n");
  WriteFile(Dir() / "format", "devmgr ledger format 3\n");
  const auto store = Open(Recovery::kLenient);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(Names(), AllOf(Contains("witness.damaged-20231114T221320Z"),
                             Contains("format.damaged-20231114T221320Z")));
  EXPECT_EQ(ReadFile(Dir() / "format"), FormatText(kFormatVersion));
  EXPECT_EQ((*store)->Recovered().skipped, 0u);
  EXPECT_EQ((*store)->History(0)->size(), 10u);
}

TEST_F(RecoveryTest, LenientlyFindsTablesThatTheManifestDoesNotName) {
  Fill(5);
  Fill(9);
  for (const fs::path& manifest : fs::directory_iterator(Dir() / "db")) {
    if (manifest.filename().string().starts_with("MANIFEST")) {
      fs::remove(manifest);
    }
  }
  const auto store = Open(Recovery::kLenient);
  ASSERT_TRUE(store.ok()) << store.status();
  state::State expected = WorkloadState(9);
  expected.seq = 10;
  EXPECT_TRUE(*(*store)->Load() == expected);
}

TEST_F(RecoveryTest, LenientlySkipsRecordsThatCannotBeDecoded) {
  Fill(9);
  PutRaw(Dir(), {{"p/pod-1", "\xff"}, {"x/1", "odd"}});
  const auto store = Open(Recovery::kLenient);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Recovered().skipped, 2u);
  // The history knows the pod.
  EXPECT_NE((*store)->Load()->FindPod({"pod-1"}), nullptr);
}

/// Some of these flips made RocksDB's assertions end the process.
TEST_F(RecoveryTest, TellsWhetherRocksDbCanOpenATable) {
  Fill(9);
  MustOpen(Dir()).reset();
  const std::string good = ReadFile(DatabaseFiles(Dir(), ".sst").back());
  ASSERT_TRUE(FrameIsWhole(good));
  // Behind the records: properties, indexes, footer with unused bytes.
  constexpr std::size_t kFooter = 53, kUnused = 40;
  for (std::size_t at = good.size() - 900; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      const bool whole = FrameIsWhole(bytes);
      if (at + kFooter < good.size() || at + kFooter > good.size() + kUnused) {
        EXPECT_FALSE(whole)
            << "bit " << bit << " of byte " << at << " of " << good.size();
      }
    }
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(FrameIsWhole(good.substr(0, size))) << size;
  }
}

/// Only so much of a table is lost as cannot be read.
TEST_F(RecoveryTest, LenientlyReadsATableOnBothSidesOfTheDamage) {
  Fill(60);
  MustOpen(Dir()).reset();
  fs::path table;
  for (const fs::path& file : DatabaseFiles(Dir(), ".sst")) {
    if (table.empty() || fs::file_size(file) > fs::file_size(table)) {
      table = file;
    }
  }
  std::string bytes = ReadFile(table);
  ASSERT_GT(bytes.size(), 40'000u);
  bytes[bytes.size() / 4] ^= 1;
  bytes[bytes.size() / 2] ^= 1;
  WriteFile(table, bytes);
  const auto store = Open(Recovery::kLenient);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Recovered().skipped, 2u)
      << Describe((*store)->Recovered());
  // What is lost of the projection is in the history, or the other way round.
  state::State expected = WorkloadState(60);
  expected.seq = 61;
  EXPECT_TRUE(*(*store)->Load() == expected);
}

TEST_F(RecoveryTest, LenientlyRefusesWhatCannotBeReadAtAll) {
  Fill(9);
  for (const auto& file : fs::directory_iterator(Dir() / "db")) {
    WriteFile(file.path(), "nonsense");
  }
  const auto before = TreeOf(Dir() / "db");
  const absl::Status status = Open(Recovery::kLenient).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(MessageOf(status), HasSubstr("nothing of it can be read"));
  EXPECT_EQ(TreeOf(Dir() / "db"), before);
}

TEST_F(RecoveryTest, LenientlyRefusesANewerFormat) {
  Fill(9);
  WriteFile(Dir() / "format", FormatText(kFormatVersion + 1));
  EXPECT_EQ(Open(Recovery::kLenient).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(RecoveryTest, ANewDatabaseThatWasLeftIsNotTakenForALostOne) {
  Fill(3);
  fs::copy(Dir() / "db", Dir() / "db.new", fs::copy_options::recursive);
  Fill(4);
  EXPECT_FALSE(fs::exists(Dir() / "db.new"));
}

/// A recovery that ends at any of its calls, by a kill or a power failure, is
/// begun again, or is done; the damaged log is still there.
TEST_F(RecoveryTest, MayBeCutOffAnywhere) {
  Fill(9);
  DamageLog();
  const std::string log_name =
      DatabaseFiles(Dir(), ".log").back().filename().string();
  const std::string log = ReadFile(Dir() / "db" / log_name);
  const fs::path good = folder_.path() / "good";
  fs::copy(Dir(), good, fs::copy_options::recursive);
  const auto expect_recovers = [&](const fs::path& directory) {
    const auto store = OpenRocksDbStore(Options(directory, Recovery::kLenient));
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->Load()->seq, 10u);
    EXPECT_EQ((*store)->History(9)->back().decision.kind,
              state::DecisionKind::kRecovered);
    int kept = 0;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (ReadFile(entry.path() / log_name) == log) ++kept;
    }
    EXPECT_EQ(kept, 1);
  };
  const std::uint64_t stride = TestScale() == 1 ? 13 : 1;
  std::uint64_t cut = 1;
  for (bool done = false; !done && !HasFailure(); cut += stride) {
    SCOPED_TRACE(fmt::format("cut off at call {}", cut));
    fs::remove_all(Dir());
    fs::copy(good, Dir(), fs::copy_options::recursive);
    SimulatedDisk disk(Dir());
    std::uint64_t calls = 0;
    disk.SetHook([&](const DiskOperation& operation) {
      if (operation.changes()) ++calls;
      return operation.changes() && calls >= cut ? DiskFault::kError
                                                 : DiskFault::kNone;
    });
    done = OpenRocksDbStoreOn(Options(Dir(), Recovery::kLenient),
                              LedgerOptions(disk.env()))
               .ok();
    for (const auto data : {Survival::Data::kLost, Survival::Data::kWhole}) {
      for (const auto names : {Survival::Names::kLost, Survival::Names::kAll}) {
        const fs::path image = folder_.path() / "image";
        fs::remove_all(image);
        fs::create_directory(image);
        WriteImage(disk.AfterPowerFailure({data, names}), image);
        expect_recovers(image);
      }
    }
    expect_recovers(Dir());
  }
  EXPECT_GT(cut, 30u);
}

}  // namespace
}  // namespace devmgr::checkpoint
