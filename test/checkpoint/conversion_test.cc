// SPDX-License-Identifier: Apache-2.0
//
// A store of an older format, as the version that knew no newer one left it,
// becomes one of ours when it is opened, and loses nothing wherever that is cut
// off. One of ours becomes one of format 2 when an operator says so, and what
// that loses is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "checkpoint/convert.h"
#include "checkpoint/full_ledger.h"
#include "checkpoint/keys.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "checkpoint/store_support.h"
#include "checkpoint/test_data.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/temp_folder.h"

namespace devmgr::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConversionTest : public ::testing::TestWithParam<int> {
 protected:
  ConversionTest() { MakeStore(Dir(), Old(), GoldenRecords(Old())); }

  static int Old() { return GetParam(); }

  std::filesystem::path Dir() const { return folder_.path(); }
  std::string FormatFile() const { return ReadFile(Dir() / "format"); }
  std::string FormatOfDatabase() const {
    return RawRecords(Dir()).at(FormatKey());
  }

  /// The store opens as our format with all there was, and goes on from there.
  void ExpectConverts() {
    const auto old = FullLedgerOfFormat(Old());
    auto store = MustOpen(Dir());
    EXPECT_EQ(FormatFile(), FormatText(kFormatVersion));
    EXPECT_TRUE(*store->Load() == Project(old));
    EXPECT_EQ(Encoded(*store->History(0)), Encoded(old));
    const state::Batch next = FullLedger()[old.size()];
    ASSERT_TRUE(store->Append({&next, 1}).ok());
    store.reset();
    EXPECT_EQ(FormatOfDatabase(), EncodeNumber(kFormatVersion));
    store = MustOpen(Dir());
    EXPECT_EQ(store->Load()->seq, next.seq);
    EXPECT_EQ(Encoded(*store->History(next.seq - 1)), Encoded({next}));
  }

  const TempFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(From, ConversionTest, ::testing::Values(1, 2));

TEST_P(ConversionTest, HappensOnOpening) { ExpectConverts(); }

TEST_P(ConversionTest, ReadingAStoppedStoreDoesNotConvert) {
  const auto before = TreeOf(Dir());
  const auto contents = ReadStoppedStore(Dir());
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_TRUE(contents->state == Project(FullLedgerOfFormat(Old())));
  EXPECT_EQ(contents->history.size(), FullLedgerOfFormat(Old()).size());
  EXPECT_EQ(TreeOf(Dir()), before);
}

TEST_P(ConversionTest, ComesAfterACreationThatWasCutOff) {
  std::filesystem::rename(Dir() / "db", Dir() / "db.new");
  ExpectConverts();
}

TEST_P(ConversionTest, EndsWhatACrashCutOff) {
  PutRaw(Dir(), {{FormatKey(), EncodeNumber(kFormatVersion)},
                 {FirstKey(), EncodeNumber(1)}});
  WriteFile(Dir() / "format.new", "devmgr led");
  EXPECT_EQ(FormatFile(), FormatText(Old()));
  ASSERT_TRUE(ReadStoppedStore(Dir()).ok());
  ExpectConverts();
}

TEST_P(ConversionTest, TheFormatFileChangesLast) {
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
    EXPECT_EQ(FormatFile(), FormatText(Old()));
  }
  ExpectConverts();
}

TEST_P(ConversionTest, ADirectoryThatCannotBeWrittenStaysAsItIs) {
  // A folder in the place of the draft: it cannot be written.
  std::filesystem::create_directory(Dir() / "format.new");
  EXPECT_FALSE(OpenRocksDbStore({Dir(), {}}).ok());
  EXPECT_EQ(FormatFile(), FormatText(Old()));
  std::filesystem::remove(Dir() / "format.new");
  ExpectConverts();
}

// The files of a store as a version of format 2 wrote them.
TEST(LedgerOfFormat2Test, IsOpened) {
  const TempFolder folder;
  std::filesystem::copy(
      std::filesystem::path(DEVMGR_CHECKPOINT_DATA) / "v2" / "ledger",
      folder.path(), std::filesystem::copy_options::recursive);
  const auto store = MustOpen(folder.path());
  EXPECT_TRUE(store->Recovered().closed_cleanly);
  EXPECT_TRUE(*store->Load() == Project(FullLedgerOfFormat2()));
  EXPECT_EQ(Encoded(*store->History(0)), Encoded(FullLedgerOfFormat2()));
}

class ConversionToFormat2Test : public ::testing::Test {
 protected:
  ConversionToFormat2Test() {
    EXPECT_TRUE(MustOpen(Dir())->Append(FullLedger()).ok());
  }
  std::filesystem::path Dir() const { return folder_.path(); }

  absl::StatusOr<Conversion> Convert(bool apply = true) const {
    return ConvertStoppedStore(Dir(), 2, apply);
  }

  /// All but the records of kinds that format 2 does not know.
  static state::State Expected() {
    state::State state = Project(FullLedger());
    state.sources.clear();
    state.Erase(state::ContainerId{"c0ffee"});
    state.Erase(state::LocalClaimUid{"local"});
    return state;
  }

  const TempFolder folder_;
};

TEST_F(ConversionToFormat2Test, LosesWhatFormat2DoesNotKnowAndSaysSo) {
  const auto conversion = Convert();
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  EXPECT_EQ(conversion->batches, 0);
  EXPECT_THAT(
      conversion->lost,
      ElementsAre(HasSubstr("that foreign container c0ffee (pod default/stray) "
                            "holds 5 devices: an older version gives them"),
                  HasSubstr("that this node has allocated claim "
                            "'default/a-extended-resources-local'"),
                  HasSubstr("how the source 'directory /m' is recognised"),
                  HasSubstr("the history up to batch 28 (28 of 28 batches)")));
  EXPECT_EQ(ReadFile(Dir() / "format"), FormatText(2));
  const auto records = RawRecords(Dir());
  EXPECT_EQ(records.at(FormatKey()), EncodeNumber(2));
  EXPECT_EQ(records.at(FirstKey()), EncodeNumber(29));
  for (const auto& [key, value] : records) {
    EXPECT_FALSE(MayBeIgnored(key));
    EXPECT_NE(KindOf(key), KeyKind::kHolder);
  }
}

TEST_F(ConversionToFormat2Test, IsShownWithoutChangingAnything) {
  const auto shown = Convert(/*apply=*/false);
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->lost.size(), 4);
  EXPECT_EQ(ReadFile(Dir() / "format"), FormatText(kFormatVersion));
  EXPECT_TRUE(*MustOpen(Dir())->Load() == Project(FullLedger()));
}

TEST_F(ConversionToFormat2Test, KeepsPodsClaimsAndTheHistorySince) {
  const state::Batch later =
      MakeBatch(29, state::DecisionKind::kSeen,
                {Put(state::MakePod(PodUid{"later"}, "later",
                                    state::PodPhase::kWaiting))});
  ASSERT_TRUE(MustOpen(Dir())->Append({&later, 1}).ok());
  const auto conversion = Convert();
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  EXPECT_EQ(conversion->batches, 1);
  const auto contents = ReadStoppedStore(Dir());
  ASSERT_TRUE(contents.ok()) << contents.status();
  state::State expected = Expected();
  ASSERT_TRUE(Apply(expected, later).ok());
  EXPECT_TRUE(contents->state == expected);
  EXPECT_EQ(contents->history.size(), 1);
  // And it opens as ours again.
  EXPECT_TRUE(*MustOpen(Dir())->Load() == expected);
}

TEST_F(ConversionToFormat2Test, ForgetsWhatWasTriedForMissingSpecs) {
  const state::State before = Expected();
  ASSERT_FALSE(before.claims.empty());
  state::ClaimRecord claim = *before.claims.begin()->second;
  state::DriverRecord& driver = claim.drivers["new.example.com"];
  driver.spec_recovery = state::SpecRecovery::kUnprepareFirst;
  const state::Batch later =
      MakeBatch(29, state::DecisionKind::kRepair, {Put(claim)});
  ASSERT_TRUE(MustOpen(Dir())->Append({&later, 1}).ok());
  const auto conversion = Convert();
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  EXPECT_THAT(conversion->lost,
              ::testing::Contains(HasSubstr("missing CDI specs of claim")));
  const auto contents = ReadStoppedStore(Dir());
  ASSERT_TRUE(contents.ok()) << contents.status();
  driver.spec_recovery = state::SpecRecovery::kNone;
  EXPECT_TRUE(*contents->state.FindClaim(claim.uid) == claim);
}

TEST_F(ConversionToFormat2Test, ForgetsThatPodsHaveToLeave) {
  state::PodRecord leaving =
      state::MakePod(PodUid{"leaving"}, "leaving", state::PodPhase::kWaiting);
  leaving.eviction = state::Eviction{"Tainted", "d1 is broken", 7};
  state::PodRecord left = leaving;
  left.uid = PodUid{"left"};
  left.name.name = "left";
  left.phase = state::PodPhase::kRejected;
  const state::Batch later =
      MakeBatch(29, state::DecisionKind::kEvict, {Put(leaving), Put(left)});
  ASSERT_TRUE(MustOpen(Dir())->Append({&later, 1}).ok());
  const auto conversion = Convert();
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  EXPECT_THAT(conversion->lost,
              ::testing::Contains(
                  HasSubstr("that pod 'default/leaving' has to leave")));
  EXPECT_THAT(conversion->lost,
              ::testing::Not(::testing::Contains(HasSubstr("default/left"))));
  const auto contents = ReadStoppedStore(Dir());
  ASSERT_TRUE(contents.ok()) << contents.status();
  leaving.eviction.reset();
  left.eviction.reset();
  EXPECT_TRUE(*contents->state.FindPod(leaving.uid) == leaving);
  EXPECT_TRUE(*contents->state.FindPod(left.uid) == left);
}

TEST_F(ConversionToFormat2Test, ForgetsThatPodsWereImported) {
  state::PodRecord imported =
      state::MakePod(PodUid{"imported"}, "i", state::PodPhase::kAdmitted);
  imported.claims.clear();
  imported.needs.clear();
  imported.imported = true;
  imported.holds = {state::MakeHold({"imported-0"})};
  imported.holds[0].edits.response = "bytes";
  imported.alignment = std::make_shared<const PodAlignmentInfo>();
  const state::Batch later =
      MakeBatch(29, state::DecisionKind::kImported, {Put(imported)});
  ASSERT_TRUE(MustOpen(Dir())->Append({&later, 1}).ok());
  const auto conversion = Convert();
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  EXPECT_THAT(
      conversion->lost,
      ::testing::Contains(HasSubstr("that pod 'default/i' was imported")));
  const auto contents = ReadStoppedStore(Dir());
  ASSERT_TRUE(contents.ok()) << contents.status();
  imported.imported = false;
  imported.holds[0].edits.response.reset();
  imported.alignment = nullptr;
  EXPECT_TRUE(*contents->state.FindPod(imported.uid) == imported);
}

TEST_F(ConversionToFormat2Test, IsDoneAgainAfterACrashInBetween) {
  ASSERT_TRUE(Convert().ok());
  WriteFile(Dir() / "format", FormatText(kFormatVersion));
  const auto conversion = Convert();
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  EXPECT_THAT(conversion->lost, IsEmpty());
  EXPECT_EQ(ReadFile(Dir() / "format"), FormatText(2));
  EXPECT_TRUE(*MustOpen(Dir())->Load() == Expected());
}

TEST_F(ConversionToFormat2Test, RemovesWhatAnEvenNewerVersionLetsItIgnore) {
  PutRaw(Dir(), {{"~z/x", "whatever"}});
  EXPECT_TRUE(*MustOpen(Dir())->Load() == Project(FullLedger()));
  const auto conversion = Convert();
  ASSERT_TRUE(conversion.ok()) << conversion.status();
  EXPECT_THAT(conversion->lost,
              ::testing::Contains("record '~z/x', of a newer version"));
  EXPECT_FALSE(RawRecords(Dir()).contains("~z/x"));
}

TEST_F(ConversionToFormat2Test, IsRefusedWhereThereIsNothingToConvert) {
  EXPECT_EQ(ConvertStoppedStore(Dir(), 1, true).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ConvertStoppedStore(Dir() / "none", 2, true).status().code(),
            absl::StatusCode::kNotFound);
  {
    const auto held = MustOpen(Dir());
    EXPECT_THAT(MessageOf(Convert().status()), HasSubstr("is held by"));
  }
  ASSERT_TRUE(Convert().ok());
  const auto before = TreeOf(Dir() / "db");
  EXPECT_THAT(MessageOf(Convert().status()), HasSubstr("has format 2 already"));
  EXPECT_EQ(TreeOf(Dir() / "db"), before);
}

}  // namespace
}  // namespace devmgr::checkpoint
