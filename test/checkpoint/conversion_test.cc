// SPDX-License-Identifier: Apache-2.0
//
// A store of format 1, as the version that knew no other left it, becomes one
// of format 2 when it is opened, and loses nothing wherever that is cut off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "checkpoint/full_ledger.h"
#include "checkpoint/keys.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "checkpoint/store_support.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

using ::testing::HasSubstr;

class ConversionTest : public ::testing::Test {
 protected:
  ConversionTest() { MakeStore(Dir(), 1, GoldenRecords(1)); }

  std::filesystem::path Dir() const { return folder_.path(); }
  std::string FormatFile() const { return ReadFile(Dir() / "format"); }
  std::string FormatOfDatabase() const {
    return RawRecords(Dir()).at(FormatKey());
  }

  /// The store opens as format 2 with all there was, and goes on from there.
  void ExpectConverts() {
    const auto old = FullLedgerOfFormat1();
    auto store = MustOpen(Dir());
    EXPECT_EQ(FormatFile(), FormatText(2));
    EXPECT_TRUE(*store->Load() == Project(old));
    EXPECT_EQ(Encoded(*store->History(0)), Encoded(old));
    const state::Batch next = FullLedger()[old.size()];
    ASSERT_TRUE(store->Append({&next, 1}).ok());
    store.reset();
    EXPECT_EQ(FormatOfDatabase(), EncodeNumber(2));
    store = MustOpen(Dir());
    EXPECT_EQ(store->Load()->seq, next.seq);
    EXPECT_EQ(Encoded(*store->History(next.seq - 1)), Encoded({next}));
  }

  const TempFolder folder_;
};

TEST_F(ConversionTest, HappensOnOpening) { ExpectConverts(); }

TEST_F(ConversionTest, ReadingAStoppedStoreDoesNotConvert) {
  const auto before = TreeOf(Dir());
  const auto contents = ReadStoppedStore(Dir());
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_TRUE(contents->state == Project(FullLedgerOfFormat1()));
  EXPECT_EQ(contents->history.size(), FullLedgerOfFormat1().size());
  EXPECT_EQ(TreeOf(Dir()), before);
}

TEST_F(ConversionTest, ComesAfterACreationThatWasCutOff) {
  std::filesystem::rename(Dir() / "db", Dir() / "db.new");
  ExpectConverts();
}

TEST_F(ConversionTest, EndsWhatACrashCutOff) {
  PutRaw(Dir(),
         {{FormatKey(), EncodeNumber(2)}, {FirstKey(), EncodeNumber(1)}});
  WriteFile(Dir() / "format.new", "devmgr led");
  EXPECT_EQ(FormatFile(), FormatText(1));
  ASSERT_TRUE(ReadStoppedStore(Dir()).ok());
  ExpectConverts();
}

TEST_F(ConversionTest, TheFormatFileChangesLast) {
  using Kind = DiskOperation::Kind;
  SimulatedDisk disk(Dir());
  for (const auto& [kind, fault] :
       {std::pair(Kind::kAppend, DiskFault::kError),
        std::pair(Kind::kAppend, DiskFault::kShort),
        std::pair(Kind::kSync, DiskFault::kError)}) {
    disk.SetHook([kind = kind, fault = fault](const DiskOperation& operation) {
      const bool fails =
          operation.kind == kind && operation.path.ends_with(".log");
      return fails ? fault : DiskFault::kNone;
    });
    const auto store =
        OpenRocksDbStoreOn({Dir(), {}}, LedgerOptions(disk.env()));
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(store.status()), HasSubstr("cannot convert"));
    EXPECT_EQ(FormatFile(), FormatText(1));
  }
  ExpectConverts();
}

TEST_F(ConversionTest, ADirectoryThatCannotBeWrittenStaysOfFormat1) {
  // A folder in the place of the draft: it cannot be written.
  std::filesystem::create_directory(Dir() / "format.new");
  EXPECT_FALSE(OpenRocksDbStore({Dir(), {}}).ok());
  EXPECT_EQ(FormatFile(), FormatText(1));
  std::filesystem::remove(Dir() / "format.new");
  ExpectConverts();
}

}  // namespace
}  // namespace devmgr::checkpoint
