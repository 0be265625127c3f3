// SPDX-License-Identifier: Apache-2.0
//
// Objects beside a ledger: they last as its batches do, and the ledger is what
// it is without them.
#include "checkpoint/database_objects.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/iostats_context.h>
#include <rocksdb/perf_context.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "checkpoint/convert.h"
#include "checkpoint/keys.h"
#include "checkpoint/ledger_reader.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "checkpoint/store_support.h"
#include "common/status.h"
#include "support/random_lives.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Kind = DiskOperation::Kind;

using Objects = std::map<std::string, std::string>;

absl::Status Put(ObjectSpace& space, const std::string& key,
                 const std::string& value) {
  const ObjectSpace::Change change{key, value};
  return space.Write({&change, 1});
}

/// All of them, a few at a time.
absl::StatusOr<Objects> ReadAll(ObjectSpace& space) {
  Objects all;
  std::string after;
  for (;;) {
    DEVMGR_ASSIGN_OR_RETURN(const auto page, space.Read(after, 3));
    for (const auto& [key, value] : page) all[key] = value;
    if (page.size() < 3) return all;
    after = page.back().key;
  }
}

Objects MustRead(ObjectSpace& space) {
  auto objects = ReadAll(space);
  EXPECT_TRUE(objects.ok()) << objects.status();
  return objects.ok() ? *std::move(objects) : Objects();
}

absl::Status Append(LedgerStore& store, std::uint64_t seq) {
  const state::Batch batch = WorkloadBatch(seq);
  return store.Append({&batch, 1});
}

/// A store whose objects are open.
struct OpenStore {
  explicit OpenStore(std::unique_ptr<LedgerStore> opened)
      : store(std::move(opened)), objects(store->Objects()) {
    EXPECT_TRUE(store->Load().ok());
    store->OpenObjects([this](const absl::Status&) { ++failures; });
  }
  std::unique_ptr<LedgerStore> store;
  std::shared_ptr<ObjectSpace> objects;
  std::atomic<int> failures = 0;
};

class DatabaseObjectsTest : public ::testing::Test {
 protected:
  DatabaseObjectsTest() {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
  fs::path Dir() const { return folder_.path() / "state"; }

  const SharedFolder folder_;
};

TEST_F(DatabaseObjectsTest, LastOverARestart) {
  {
    const OpenStore opened(MustOpen(Dir()));
    EXPECT_THAT(MustRead(*opened.objects), IsEmpty());
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(Put(*opened.objects, fmt::format("k{}", i), "v").ok());
    }
    const ObjectSpace::Change changes[] = {
        {"k0", std::string("new\0bytes", 9)}, {"k1", std::nullopt}, {"~", ""}};
    ASSERT_TRUE(opened.objects->Write(changes).ok());
    EXPECT_EQ(Put(*opened.objects, "", "v").code(),
              absl::StatusCode::kInvalidArgument);
  }
  const OpenStore opened(MustOpen(Dir()));
  EXPECT_THAT(
      MustRead(*opened.objects),
      ElementsAre(Pair("k0", std::string("new\0bytes", 9)), Pair("k2", "v"),
                  Pair("k3", "v"), Pair("k4", "v"), Pair("k5", "v"),
                  Pair("k6", "v"), Pair("k7", "v"), Pair("~", "")));
}

TEST_F(DatabaseObjectsTest, AreRefusedBeforeTheyAreOpenAndAfterTheStoreIsGone) {
  MustOpen(Dir()).reset();
  std::shared_ptr<ObjectSpace> objects;
  const auto expect_refused = [&] {
    EXPECT_EQ(Put(*objects, "k", "v").code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(objects->Read("", 1).status().code(),
              absl::StatusCode::kUnavailable);
  };
  {
    auto store = OpenRocksDbStore({.directory = Dir(), .pods_first = true});
    ASSERT_TRUE(store.ok()) << store.status();
    objects = (*store)->Objects();
    expect_refused();
    ASSERT_TRUE((*store)->Load().ok());
    expect_refused();
    int failures = 0;
    (*store)->OpenObjects([&](const absl::Status&) { ++failures; });
    EXPECT_TRUE(Put(*objects, "k", "v").ok());
    (*store)->CloseObjects();
    expect_refused();
    EXPECT_EQ(failures, 0);
  }
  expect_refused();
}

/// The ledger neither reads them nor counts them.
TEST_F(DatabaseObjectsTest, AreNoPartOfTheLedger) {
  {
    const OpenStore opened(MustOpen(Dir()));
    ASSERT_TRUE(Append(*opened.store, 1).ok());
    ASSERT_TRUE(Put(*opened.objects, "k", "no record of ours").ok());
    EXPECT_THAT(*opened.store->History(0), SizeIs(1));
  }
  const auto read = ReadStoppedStore(Dir());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->state == WorkloadState(1));
  EXPECT_TRUE(read->report.closed_cleanly);
  // A version that does not know them leaves them alone.
  EXPECT_TRUE(MayBeIgnored(ObjectKey("k")));
}

/// 10,000 devices, as a driver publishes them.
TEST_F(DatabaseObjectsTest, DoNotSlowDownTheLoadOfTheLedger) {
  constexpr int kSlices = 80;
  {
    const OpenStore opened(MustOpen(Dir()));
    ASSERT_TRUE(Append(*opened.store, 1).ok());
    for (int i = 0; i < kSlices; ++i) {
      ASSERT_TRUE(Put(*opened.objects, fmt::format("{:03}", i),
                      std::string(60'000, 'x'))
                      .ok());
    }
    // A record behind all of them.
    ASSERT_TRUE(Append(*opened.store, 2).ok());
  }
  rocksdb::DB* raw = nullptr;
  ASSERT_TRUE(rocksdb::DB::OpenForReadOnly(LedgerOptions(nullptr),
                                           (Dir() / "db").string(), &raw)
                  .ok());
  const std::unique_ptr<rocksdb::DB> db(raw);
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
  rocksdb::get_perf_context()->Reset();
  const auto state = ReadState(*db);
  const std::uint64_t bytes = rocksdb::get_perf_context()->block_read_byte;
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_TRUE(*state == WorkloadState(2));
  EXPECT_LT(bytes, kSlices * 60'000U / 8);
}

TEST_F(DatabaseObjectsTest, WhatWasAnsweredOutlivesAKill) {
  const fs::path answered = folder_.path() / "answered";
  const auto write_until_killed = [&](std::chrono::microseconds delay) {
    const OpenStore opened(MustOpen(Dir()));
    std::thread([delay] {
      std::this_thread::sleep_for(delay);  // The moment of the crash.
      ::kill(::getpid(), SIGKILL);
    }).detach();
    const Objects before = MustRead(*opened.objects);
    int value = before.empty() ? 0 : std::stoi(before.at("a"));
    for (;;) {
      const std::string text = std::to_string(++value);
      const ObjectSpace::Change changes[] = {{"a", text}, {"b", text}};
      if (!opened.objects->Write(changes).ok()) ::_exit(1);
      WriteFile(folder_.path() / "answered.new", text);
      fs::rename(folder_.path() / "answered.new", answered);
    }
  };
  LiveEach({20'261'128, 4}, [&](Luck& luck) {
    const std::chrono::microseconds delay(30'000 + luck.Below(30'000));
    ASSERT_EXIT(write_until_killed(delay), ::testing::KilledBySignal(SIGKILL),
                "");
    if (folder_.is_child()) return;
    const OpenStore opened(MustOpen(Dir()));
    const Objects objects = MustRead(*opened.objects);
    const std::string text = ReadFile(answered);
    const int last = text.empty() ? 0 : std::stoi(text);
    if (last == 0) return;
    EXPECT_EQ(objects.at("a"), objects.at("b"));
    EXPECT_GE(std::stoi(objects.at("a")), last);
    EXPECT_LE(std::stoi(objects.at("a")), last + 1);
  });
}

/// Decisions on one thread, objects on another, and the store opened again
/// amid all that.
TEST_F(DatabaseObjectsTest, AreWrittenBesideDecisions) {
  OpenStore opened(MustOpen(Dir()));
  std::atomic<bool> ended = false;
  std::atomic<int> refused = 0;
  int written = 0;
  std::thread driver([&] {
    while (!ended || written < 50) {
      const absl::Status status =
          Put(*opened.objects, "k", std::to_string(written + 1));
      if (status.ok()) {
        ++written;
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        ++refused;
      }
    }
  });
  for (std::uint64_t seq = 1; seq <= 60; ++seq) {
    ASSERT_TRUE(Append(*opened.store, seq).ok());
    if (seq % 20 == 0) {
      ASSERT_TRUE(opened.store->Reopen().ok());
    }
  }
  ended = true;
  driver.join();
  EXPECT_EQ(opened.failures, refused);
  EXPECT_EQ(MustRead(*opened.objects).at("k"), std::to_string(written));
  EXPECT_TRUE(*opened.store->Load() == WorkloadState(60));
}

/// A damaged ledger is recovered with the objects that can be read.
TEST_F(DatabaseObjectsTest, OutliveARecovery) {
  {
    const OpenStore opened(MustOpen(Dir()));
    ASSERT_TRUE(Append(*opened.store, 1).ok());
    ASSERT_TRUE(Put(*opened.objects, "k", "v").ok());
  }
  PutRaw(Dir(), {{"p/broken", "\xff"}});
  auto store =
      OpenRocksDbStore({.directory = Dir(), .recovery = Recovery::kLenient});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->Recovered().damage.empty());
  const OpenStore opened(*std::move(store));
  EXPECT_THAT(MustRead(*opened.objects), ElementsAre(Pair("k", "v")));
}

TEST_F(DatabaseObjectsTest, AreLostWithAConversionWhichSaysSo) {
  {
    const OpenStore opened(MustOpen(Dir()));
    ASSERT_TRUE(Append(*opened.store, 1).ok());
    ASSERT_TRUE(Put(*opened.objects, "k", "v").ok());
    ASSERT_TRUE(Put(*opened.objects, "l", "v").ok());
  }
  const auto converted = ConvertStoppedStore(Dir(), 2, /*apply=*/true);
  ASSERT_TRUE(converted.ok()) << converted.status();
  EXPECT_THAT(converted->lost,
              ElementsAre(HasSubstr("what drivers have published to this node "
                                    "(2 records)")));
  for (const auto& [key, value] : RawRecords(Dir())) {
    EXPECT_FALSE(MayBeIgnored(key)) << key;
  }
  const OpenStore opened(MustOpen(Dir()));
  EXPECT_THAT(MustRead(*opened.objects), IsEmpty());
  EXPECT_EQ(opened.store->Load()->seq, 1u);
}

class FailingObjectsTest : public ::testing::Test {
 protected:
  std::unique_ptr<LedgerStore> Open() {
    auto store =
        OpenRocksDbStoreOn({folder_.path(), {}}, LedgerOptions(disk_.env()));
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  void Fail(Kind kind, DiskFault fault) {
    disk_.SetHook([kind, fault](const DiskOperation& operation) {
      const bool fails =
          operation.kind == kind && operation.path.ends_with(".log");
      return fails ? fault : DiskFault::kNone;
    });
  }
  void Heal() { disk_.SetHook(nullptr); }

  const TempFolder folder_;
  SimulatedDisk disk_{folder_.path()};
};

/// It needs no decision that fails, too, until objects can be written again.
TEST_F(FailingObjectsTest, AFullDiskHasTheStoreOpenedAgain) {
  OpenStore opened(Open());
  ASSERT_TRUE(Append(*opened.store, 1).ok());
  ASSERT_TRUE(Put(*opened.objects, "k", "1").ok());
  for (const DiskFault fault :
       {DiskFault::kNoSpace, DiskFault::kShortNoSpace, DiskFault::kShort}) {
    Fail(Kind::kAppend, fault);
    const int before = opened.failures;
    EXPECT_EQ(Put(*opened.objects, "k", "2").code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(opened.failures, before + 1);
    EXPECT_TRUE(opened.store->ObjectsFailed());
    // Each refusal asks for it once more.
    EXPECT_EQ(Put(*opened.objects, "k", "2").code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(opened.objects->Read("", 1).status().code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(opened.failures, before + 3);
    Heal();
    const auto state = opened.store->Reopen();
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_TRUE(*state == WorkloadState(1));
    EXPECT_FALSE(opened.store->ObjectsFailed());
    EXPECT_THAT(MustRead(*opened.objects), ElementsAre(Pair("k", "1")));
    ASSERT_TRUE(Put(*opened.objects, "k", "1").ok());
  }
}

/// The other way round: objects wait while the ledger is in doubt.
TEST_F(FailingObjectsTest, AreRefusedUntilTheLedgerIsOpenAgain) {
  OpenStore opened(Open());
  ASSERT_TRUE(Put(*opened.objects, "k", "1").ok());
  Fail(Kind::kSync, DiskFault::kError);
  EXPECT_FALSE(Append(*opened.store, 1).ok());
  disk_.SetHook([](const DiskOperation& operation) {
    return operation.kind == Kind::kOpen ? DiskFault::kError : DiskFault::kNone;
  });
  EXPECT_FALSE(opened.store->Reopen().ok());
  EXPECT_EQ(Put(*opened.objects, "k", "2").code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(opened.failures, 1);
  Heal();
  ASSERT_TRUE(opened.store->Reopen().ok());
  EXPECT_TRUE(Put(*opened.objects, "k", "3").ok());
  EXPECT_THAT(MustRead(*opened.objects), ElementsAre(Pair("k", "3")));
}

/// The power goes off before each call: what was answered is there, and of a
/// write all or nothing.
TEST_F(FailingObjectsTest, WhatWasAnsweredOutlivesAPowerFailure) {
  constexpr int kWrites = 12;
  const TempFolder folder;
  SimulatedDisk disk(folder.path());
  const fs::path state = folder.path() / "state";
  std::atomic<int> answered = 0;
  std::atomic<std::uint64_t> decided = 0;
  std::atomic<bool> watching = false;
  std::set<std::size_t> seen;
  const auto look = [&](const DiskImage& image) {
    std::string all;
    for (const auto& [path, contents] : image) {
      all += path + "\n" + contents.value_or("/") + "\n";
    }
    if (!seen.insert(std::hash<std::string>()(all)).second) return;
    const TempFolder copy;
    WriteImage(image, copy.path());
    // Real syncs would take most of the time.
    SimulatedDisk copied(copy.path());
    auto store = OpenRocksDbStoreOn({copy.path() / "state", {}},
                                    LedgerOptions(copied.env()));
    ASSERT_TRUE(store.ok()) << store.status();
    const OpenStore opened(*std::move(store));
    Objects objects = MustRead(*opened.objects);
    const int last = objects.empty() ? 0 : std::stoi(objects.at("a"));
    EXPECT_GE(last, answered);
    EXPECT_LE(last, answered + 1);
    EXPECT_EQ(objects["a"], objects["b"].substr(0, objects["a"].size()));
    EXPECT_GE(opened.store->Load()->seq, decided);
  };
  rocksdb::Options database = LedgerOptions(disk.env());
  database.write_buffer_size = 64 * 1024;
  auto store = OpenRocksDbStoreOn({state, {}}, database);
  ASSERT_TRUE(store.ok()) << store.status();
  OpenStore opened(*std::move(store));
  disk.SetHook([&](const DiskOperation& operation) {
    if (watching && operation.changes()) {
      using Data = Survival::Data;
      for (const Data data :
           {Data::kLost, Data::kTorn, Data::kZeroed, Data::kWhole}) {
        look(disk.AfterPowerFailure({data, Survival::Names::kAll}));
      }
      look(disk.AfterPowerFailure({Data::kLost, Survival::Names::kLost}));
    }
    return DiskFault::kNone;
  });
  watching = true;
  for (int i = 1; i <= kWrites; ++i) {
    const std::string text = fmt::format("{:04}", i);
    const ObjectSpace::Change changes[] = {
        {"a", text}, {"b", text + std::string(9'000, 'x')}};
    ASSERT_TRUE(opened.objects->Write(changes).ok());
    answered = i;
    if (i % 4 != 0) continue;
    ASSERT_TRUE(Append(*opened.store, decided + 1).ok());
    ++decided;
  }
  watching = false;
  disk.SetHook(nullptr);
  EXPECT_GT(seen.size(), 2U * kWrites);
}

}  // namespace
}  // namespace devmgr::checkpoint
