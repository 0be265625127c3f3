// SPDX-License-Identifier: Apache-2.0
//
// The state directory of the RocksDB store: who may open it, what is made in
// it, and what happens when something in it is not as it should be.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "checkpoint/codec.h"
#include "checkpoint/disk.h"
#include "checkpoint/keys.h"
#include "checkpoint/store_support.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// What all files but `lock` hold, by their paths.
std::map<std::string, std::string> RawFiles(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename() == "lock") continue;
    files[entry.path().string()] = ReadFile(entry.path());
  }
  return files;
}

class RocksDbStoreTest : public ::testing::Test {
 protected:
  fs::path Dir() const { return folder_.path() / "state"; }

  absl::Status OpenStatus() const {
    return OpenRocksDbStore({Dir(), {}}).status();
  }
  /// Opening, or loading what was opened, must fail.
  void ExpectRefused(absl::StatusCode code, const std::string& message) const {
    for (const bool pods_first : {false, true}) {
      auto store =
          OpenRocksDbStore({.directory = Dir(), .pods_first = pods_first});
      const absl::Status status =
          store.ok() ? (*store)->Load().status() : store.status();
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(MessageOf(status), HasSubstr(message));
      if (!store.ok()) continue;
      // For good.
      EXPECT_EQ((*store)->Load().status(), status);
      EXPECT_EQ((*store)->Reopen().status(), status);
      const state::Batch batch = WorkloadBatch(4);
      EXPECT_EQ((*store)->Append({&batch, 1}), status);
      EXPECT_EQ((*store)->History(0).status(), status);
    }
  }
  void Fill(std::uint64_t first, std::uint64_t last) const {
    const auto store = MustOpen(Dir());
    for (std::uint64_t seq = first; seq <= last; ++seq) {
      const state::Batch batch = WorkloadBatch(seq);
      ASSERT_TRUE(store->Append({&batch, 1}).ok());
    }
  }

  const TempFolder folder_;
};

TEST_F(RocksDbStoreTest, MakesADirectoryThatOnlyWeMayUse) {
  const fs::path deep = Dir() / "a" / "b";
  ASSERT_TRUE(OpenRocksDbStore({deep / "", {}}).ok());
  struct stat info;
  ASSERT_EQ(::stat(deep.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(ReadFile(deep / "format"), FormatText(kFormatVersion));
  EXPECT_FALSE(fs::exists(deep / "db.new"));
  EXPECT_FALSE(fs::exists(deep / "db" / "LOG"));
}

TEST_F(RocksDbStoreTest, KeepsEverythingOverRestarts) {
  for (std::uint64_t seq = 1; seq <= 91; seq += 30) {
    Fill(seq, seq + 29);
    const auto store = MustOpen(Dir());
    EXPECT_TRUE(*store->Load() == WorkloadState(seq + 29));
    EXPECT_EQ(store->History(0)->size(), seq + 29);
  }
}

TEST_F(RocksDbStoreTest, GivesThePodsBeforeItLoadsTheRest) {
  const RocksDbStoreOptions options{.directory = Dir(), .pods_first = true};
  EXPECT_FALSE((*OpenRocksDbStore(options))->PodsFirst().has_value());
  Fill(1, 30);
  const auto before = RawFiles(Dir());
  {
    const auto store = *OpenRocksDbStore(options);
    const auto pods = store->PodsFirst();
    ASSERT_TRUE(pods.has_value());
    state::State expected;
    expected.seq = 30;
    for (const auto& [uid, pod] : WorkloadState(30).pods) expected.Put(pod);
    EXPECT_TRUE(*pods == expected);
    EXPECT_TRUE(store->Recovered().closed_cleanly);
    EXPECT_EQ(store->Recovered().last_batch, 30u);
    EXPECT_GT(store->Recovered().last_time_ms, 0);
  }
  EXPECT_EQ(RawFiles(Dir()), before);
  const auto store = *OpenRocksDbStore(options);
  EXPECT_TRUE(*store->Load() == WorkloadState(30));
  EXPECT_FALSE(store->PodsFirst().has_value());
  const state::Batch batch = WorkloadBatch(31);
  ASSERT_TRUE(store->Append({&batch, 1}).ok());
  EXPECT_TRUE(*store->Reopen() == WorkloadState(31));
  EXPECT_EQ(store->History(0)->size(), 31u);
}

TEST_F(RocksDbStoreTest, BoundsTheHistoryOverRestarts) {
  const HistoryLimits limits{.batches = 4};
  for (std::uint64_t seq = 1; seq <= 20; ++seq) {
    const auto store = MustOpen(Dir(), limits);
    const state::Batch batch = WorkloadBatch(seq);
    ASSERT_TRUE(store->Append({&batch, 1}).ok());
  }
  EXPECT_EQ(MustOpen(Dir(), limits)->History(0)->size(), 4u);
  // The database itself has no more either.
  int stored = 0;
  for (const auto& [key, value] : RawRecords(Dir())) {
    if (KindOf(key) == KeyKind::kHistory) ++stored;
  }
  EXPECT_EQ(stored, 4);
}

TEST_F(RocksDbStoreTest, ShortensAHistoryThatWasAllowedToBeLonger) {
  Fill(1, 20);
  const auto store = MustOpen(Dir(), {.batches = 3});
  const state::Batch batch = WorkloadBatch(21);
  ASSERT_TRUE(store->Append({&batch, 1}).ok());
  const auto history = *store->History(0);
  ASSERT_EQ(history.size(), 3u);
  EXPECT_EQ(history.front().seq, 19u);
}

// ---- who may open it

TEST_F(RocksDbStoreTest, NamesTheHolderToASecondOpener) {
  const auto store = MustOpen(Dir());
  const std::string holder =
      fmt::format("state directory '{}' is held by {} (pid {})", Dir().string(),
                  ::program_invocation_short_name, ::getpid());
  for (const absl::Status& status :
       {OpenStatus(), ReadStoppedStore(Dir()).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(MessageOf(status), holder);
  }
}

TEST_F(RocksDbStoreTest, IsFreeAgainWhenTheHolderIsGone) {
  MustOpen(Dir()).reset();
  EXPECT_TRUE(OpenStatus().ok());
}

TEST_F(RocksDbStoreTest, NamesNobodyWhenTheLockFileSaysNonsense) {
  const auto store = MustOpen(Dir());
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("a\033[1m pid 1\n"),
        std::string(100'000, 'x')}) {
    WriteFile(Dir() / "lock", text);
    EXPECT_THAT(MessageOf(OpenStatus()), HasSubstr("held by another process"));
  }
}

TEST_F(RocksDbStoreTest, RefusesAFileAsDirectory) {
  WriteFile(Dir(), "file");
  ExpectRefused(absl::StatusCode::kInvalidArgument, "is not a directory");
  EXPECT_EQ(ReadFile(Dir()), "file");
}

TEST_F(RocksDbStoreTest, RefusesADirectoryBelowAFile) {
  WriteFile(folder_.path() / "file", "");
  const auto store = OpenRocksDbStore({folder_.path() / "file" / "state", {}});
  EXPECT_EQ(store.status().code(), absl::StatusCode::kInvalidArgument)
      << store.status();
}

TEST_F(RocksDbStoreTest, RefusesNoDirectory) {
  EXPECT_EQ(OpenRocksDbStore({}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// ---- formats

TEST_F(RocksDbStoreTest, LeavesANewerFormatUntouched) {
  Fill(1, 3);
  WriteFile(Dir() / "format", Seal("devmgr ledger format 4\nand more\n"));
  const auto before = TreeOf(Dir());
  for (const absl::Status& status :
       {OpenStatus(), ReadStoppedStore(Dir()).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(MessageOf(status), AllOf(HasSubstr("has format 4"),
                                         HasSubstr("knows formats 1 to 3")));
  }
  EXPECT_EQ(TreeOf(Dir()), before);
}

TEST_F(RocksDbStoreTest, LeavesANewerFormatWithAnotherLayoutUntouched) {
  fs::create_directory(Dir());
  WriteFile(Dir() / "format", FormatText(4294967297));
  const auto before = TreeOf(Dir());
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "has format 4294967297");
  EXPECT_EQ(TreeOf(Dir()), before);
}

TEST_F(RocksDbStoreTest, RefusesAFormatFileThatSaysNothing) {
  Fill(1, 3);
  const auto before = TreeOf(Dir() / "db");
  for (const char* text :
       {"", "devmgr ledger format \n", "devmgr ledger format 1",
        "devmgr ledger format 1x\n", "devmgr ledger format -1\n", "1\n",
        "devmgr ledger format 1\nmore\n", "devmgr ledger format 2\n",
        "devmgr ledger format 99999999999999999999\n"}) {
    WriteFile(Dir() / "format", text);
    ExpectRefused(absl::StatusCode::kDataLoss, "format' is damaged");
  }
  EXPECT_EQ(TreeOf(Dir() / "db"), before);
}

TEST_F(RocksDbStoreTest, RefusesADatabaseOfAnotherFormat) {
  Fill(1, 3);
  for (const std::uint64_t format : {0, 4}) {
    PutRaw(Dir(), {{FormatKey(), EncodeNumber(format)}});
    ExpectRefused(absl::StatusCode::kFailedPrecondition,
                  fmt::format("the database has format {}", format));
  }
}

// ---- creation that was cut off, and what must not be mistaken for it

TEST_F(RocksDbStoreTest, BeginsAgainWhatWasNeverCompleted) {
  fs::create_directories(Dir() / "db.new");
  WriteFile(Dir() / "db.new" / "CURRENT", "half");
  WriteFile(Dir() / "format.new", "devm");
  EXPECT_EQ(ReadStoppedStore(Dir()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(MustOpen(Dir())->Load()->seq, 0u);
}

TEST_F(RocksDbStoreTest, TakesOverWhatWasCompletedButNotMoved) {
  Fill(1, 3);
  fs::rename(Dir() / "db", Dir() / "db.new");
  const auto read = ReadStoppedStore(Dir());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->state.seq, 3u);
  EXPECT_EQ(MustOpen(Dir())->Load()->seq, 3u);
}

TEST_F(RocksDbStoreTest, AMissingDatabaseIsNotAnEmptyOne) {
  Fill(1, 3);
  fs::rename(Dir() / "db", Dir() / "elsewhere");
  ExpectRefused(absl::StatusCode::kDataLoss, "db' is missing");
  EXPECT_EQ(ReadStoppedStore(Dir()).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(RocksDbStoreTest, AMissingFormatFileIsNotANewDirectory) {
  Fill(1, 3);
  fs::remove(Dir() / "format");
  ExpectRefused(absl::StatusCode::kDataLoss, "format' is missing");
  EXPECT_EQ(ReadStoppedStore(Dir()).status().code(),
            absl::StatusCode::kDataLoss);
}

// ---- damage

TEST_F(RocksDbStoreTest, RefusesRecordsItDoesNotUnderstand) {
  Fill(1, 3);
  const auto good = RawRecords(Dir());
  const std::string pod = PodKey({"pod-1"});
  const std::vector<std::tuple<std::string, std::string, std::string>> damage =
      {{"x/1", "value", "record 'x/1' is of an unknown kind"},
       {pod, "\xff", "record 'p/pod-1': its 1 bytes cannot be decoded"},
       {pod, good.at(PodKey({"pod-2"})),
        "record 'p/pod-1' holds record 'p/pod-2'"},
       {ClaimKey({"c"}), "\xff", "record 'c/c'"},
       {IdentityKeyOf("Pod", {"a", "b"}), "\xff", "record 'i/Pod\\x00a\\x00b'"},
       {SeqKey(), "three", "record 'meta/seq': its 5 bytes are not a number"},
       {SeqKey(), "", "record 'meta/seq' is missing"},
       {FormatKey(), "", "record 'meta/format' is missing"},
       {SeqKey(), EncodeNumber(4), "ends with batch 3, the ledger with 4"},
       {HistoryKey(2), "", "record 'h/3' does not follow 'h/1'"},
       {"h/odd", "value", "record 'h/odd' does not follow"}};
  for (const auto& [key, value, message] : damage) {
    PutRaw(Dir(), {{key, value}});
    ExpectRefused(absl::StatusCode::kDataLoss, message);
    const auto stopped = ReadStoppedStore(Dir());
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kDataLoss)
        << key << ": " << stopped.status();
    PutRaw(Dir(), {{key, good.contains(key) ? good.at(key) : ""}});
  }
  EXPECT_TRUE(*MustOpen(Dir())->Load() == WorkloadState(3));
}

TEST_F(RocksDbStoreTest, RefusesAHistoryItDoesNotUnderstand) {
  Fill(1, 3);
  for (const std::string& value :
       {std::string("\xff"), EncodeBatch(WorkloadBatch(3))}) {
    PutRaw(Dir(), {{HistoryKey(2), value}});
    const auto history = MustOpen(Dir())->History(0);
    EXPECT_EQ(history.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(MessageOf(history.status()), HasSubstr("record 'h/2'"));
  }
}

TEST_F(RocksDbStoreTest, RefusesMissingFiles) {
  Fill(1, 3);
  MustOpen(Dir()).reset();  // Moves the log into a table.
  for (const std::string suffix : {".sst", "CURRENT"}) {
    const auto files = DatabaseFiles(Dir(), suffix);
    ASSERT_FALSE(files.empty()) << suffix;
    const fs::path away = folder_.path() / "away";
    fs::rename(files[0], away);
    ExpectRefused(absl::StatusCode::kDataLoss, "db'");
    fs::rename(away, files[0]);
  }
  EXPECT_TRUE(OpenStatus().ok());
}

TEST_F(RocksDbStoreTest, RefusesADamagedTable) {
  Fill(1, 3);
  MustOpen(Dir()).reset();
  const auto files = DatabaseFiles(Dir(), ".sst");
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) {
    std::string bytes = ReadFile(file);
    bytes[20] = static_cast<char>(bytes[20] ^ 0x40);
    WriteFile(file, bytes);
  }
  ExpectRefused(absl::StatusCode::kDataLoss, "db'");
}

/// The log of five batches, the offset of each one's end, and a store to try
/// variants of that log on.
class RocksDbLogTest : public RocksDbStoreTest {
 protected:
  RocksDbLogTest() {
    const auto store = MustOpen(Dir());
    log_ = Dir() / "db" / "none";
    for (std::uint64_t seq = 1; seq <= 5; ++seq) {
      const state::Batch batch = WorkloadBatch(seq);
      EXPECT_TRUE(store->Append({&batch, 1}).ok());
      log_ = DatabaseFiles(Dir(), ".log").back();
      ends_.push_back(fs::file_size(log_));
    }
    fs::copy(Dir(), Killed(), fs::copy_options::recursive);
  }
  fs::path Killed() const { return folder_.path() / "killed"; }

  /// Number of batches a store with this log holds, or the error.
  absl::StatusOr<std::uint64_t> SeqWithLog(const std::string& bytes) {
    const fs::path copy = folder_.path() / "copy";
    fs::remove_all(copy);
    fs::copy(Killed(), copy, fs::copy_options::recursive);
    WriteFile(copy / "db" / log_.filename(), bytes);
    auto store = OpenRocksDbStore({copy, {}});
    if (!store.ok()) return store.status();
    auto state = (*store)->Load();
    if (!state.ok()) return state.status();
    EXPECT_TRUE(*state == WorkloadState(state->seq));
    return state->seq;
  }

  fs::path log_;
  std::vector<std::uint64_t> ends_;
};

TEST_F(RocksDbLogTest, DropsAnUnansweredWriteThatWasCutOff) {
  const std::string bytes = ReadFile(log_);
  ASSERT_EQ(bytes.size(), ends_[4]);
  for (std::uint64_t size = ends_[3]; size < ends_[4];
       size += 1 + (ends_[4] - ends_[3]) / 15) {
    const auto seq = SeqWithLog(bytes.substr(0, size));
    ASSERT_TRUE(seq.ok()) << size << ": " << seq.status();
    EXPECT_EQ(*seq, 4u) << size;
  }
}

TEST_F(RocksDbLogTest, IgnoresSpaceThatWasAllocatedAhead) {
  const std::string bytes = ReadFile(log_) + std::string(4'096, '\0');
  EXPECT_EQ(*SeqWithLog(bytes), 5u);
}

TEST_F(RocksDbLogTest, RefusesADamagedBatchInTheMiddle) {
  const std::string good = ReadFile(log_);
  for (std::uint64_t at = ends_[1]; at < ends_[2];
       at += 1 + (ends_[2] - ends_[1]) / 15) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    const auto seq = SeqWithLog(bytes);
    ASSERT_FALSE(seq.ok()) << at;
    EXPECT_EQ(seq.status().code(), absl::StatusCode::kDataLoss)
        << at << ": " << seq.status();
  }
}

}  // namespace
}  // namespace devmgr::checkpoint
