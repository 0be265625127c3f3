// SPDX-License-Identifier: Apache-2.0
#include "endpoint/object_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/database_objects.h"
#include "checkpoint/ledger_store.h"
#include "endpoint/node_uid.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::endpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr char kSlice[] = "resource.k8s.io/resourceslices//s";
constexpr char kNode[] = "/nodes//n1";
constexpr char kClaim[] = "resource.k8s.io/resourceclaims/default/c";

enum class Kept { kInMemory, kInLedger };

/// What a journal does, whatever its objects are kept in. Each call is one of
/// a process that has just started.
class ObjectJournalTest : public ::testing::TestWithParam<Kept> {
 protected:
  ObjectJournalTest() { OpenSpace(); }

  std::filesystem::path Dir() const { return folder_.path() / "objects"; }
  ObjectJournal Journal(bool drops_damaged = false) {
    if (GetParam() == Kept::kInLedger) OpenSpace();
    ObjectJournal::Options options;
    options.folder = Dir();
    options.drops_damaged = drops_damaged;
    options.log = [this](const std::string& line) { log_.push_back(line); };
    return {space_, std::move(options)};
  }
  void Append(std::uint64_t revision, const std::string& key,
              const std::string& value) {
    ASSERT_THAT(Journal().Append({revision, key, value}), IsOk());
  }
  std::map<std::string, std::string> Entries(std::uint64_t last,
                                             bool drops_damaged = false) {
    std::map<std::string, std::string> entries;
    const auto content = Journal(drops_damaged).Replay();
    EXPECT_TRUE(content.ok()) << content.status();
    if (!content.ok()) return entries;
    EXPECT_EQ(content->last_revision, last);
    for (const JournalEntry& entry : content->entries) {
      entries[entry.key] = entry.value;
    }
    return entries;
  }
  std::string ReplayError() {
    const absl::Status status = Journal().Replay().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  }
  /// Bypasses the journal.
  void PutRaw(const std::string& key, const std::string& value) {
    const ObjectSpace::Change change{key, value};
    ASSERT_THAT(space_->Write({&change, 1}), IsOk());
  }
  void PutFile(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((Dir() / name).parent_path());
    std::ofstream(Dir() / name) << text;
  }

  const TempFolder folder_;
  std::shared_ptr<ObjectSpace> space_;
  std::vector<std::string> log_;

 private:
  void OpenSpace() {
    if (GetParam() == Kept::kInMemory) {
      space_ = checkpoint::NewInMemoryObjects();
      return;
    }
    store_.reset();
    auto store = checkpoint::OpenRocksDbStore({folder_.path() / "state"});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    store_->OpenObjects([](const absl::Status&) {});
    space_ = store_->Objects();
  }

  std::unique_ptr<checkpoint::LedgerStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Kept, ObjectJournalTest,
                         ::testing::Values(Kept::kInMemory, Kept::kInLedger),
                         [](const auto& kept) {
                           return kept.param == Kept::kInMemory ? "InMemory"
                                                                : "InLedger";
                         });

TEST_P(ObjectJournalTest, IsEmptyAtFirst) {
  EXPECT_THAT(Entries(0), IsEmpty());
  EXPECT_FALSE(*Journal().IsUsed());
  EXPECT_FALSE(std::filesystem::exists(Dir()));
}

TEST_P(ObjectJournalTest, HasTheLatestOfEachObject) {
  Append(1, kSlice, "{\"a\":1}");
  Append(2, kNode, "{}");
  Append(3, kClaim, "text\nof two lines");
  Append(4, kSlice, "{\"a\":2}");
  EXPECT_THAT(Entries(4),
              ElementsAre(Pair(kNode, "{}"), Pair(kClaim, "text\nof two lines"),
                          Pair(kSlice, "{\"a\":2}")));
  EXPECT_TRUE(*Journal().IsUsed());
}

/// More than are read at a time.
TEST_P(ObjectJournalTest, HasManyObjects) {
  ObjectJournal journal = Journal();
  for (std::uint64_t i = 1; i <= 200; ++i) {
    ASSERT_THAT(journal.Append({i, kSlice + std::to_string(i), "{}"}), IsOk());
  }
  EXPECT_THAT(Entries(200), SizeIs(200));
}

/// A version that was given to a client is not given again.
TEST_P(ObjectJournalTest, KeepsTheRevisionOfWhatIsGone) {
  Append(1, kSlice, "{}");
  Append(9, kSlice, "");
  EXPECT_THAT(Entries(9), IsEmpty());
  // It need not have been there.
  Append(11, kClaim, "");
  EXPECT_THAT(Entries(11), IsEmpty());
  EXPECT_TRUE(*Journal().IsUsed());
}

TEST_P(ObjectJournalTest, RefusesWhatIsNoObject) {
  for (const std::string key :
       {"", "a", "a/b/c", "a/b/c/d/e", "a//c/d", "a/b/c/", "last-revision"}) {
    EXPECT_EQ(Journal().Append({1, key, "{}"}).code(),
              absl::StatusCode::kInvalidArgument)
        << key;
    EXPECT_EQ(Journal().AppendLater({1, key, "{}"}).code(),
              absl::StatusCode::kInvalidArgument)
        << key;
  }
  EXPECT_THAT(Entries(0), IsEmpty());
}

TEST_P(ObjectJournalTest, HasWhatNeedNotBeDurableUnlessItIsCutShort) {
  ASSERT_THAT(Journal().Reserve(1'000), IsOk());
  ASSERT_THAT(Journal().AppendLater({7, kClaim, "{\"a\":1}"}), IsOk());
  EXPECT_THAT(Entries(1'000), ElementsAre(Pair(kClaim, "{\"a\":1}")));
  EXPECT_TRUE(Journal().Replay()->entries[0].is_later);
  // A power failure.
  const auto file =
      folder_.path() / "objects-later/resource.k8s.io/resourceclaims/default/c";
  for (const std::string& text :
       {std::string(), std::string("7"), std::string(20, '\0'),
        std::string("7 0000000000000000\n{\"a\":1}")}) {
    ASSERT_THAT(Journal().AppendLater({8, kClaim, "{\"a\":2}"}), IsOk());
    std::ofstream(file) << text;
    EXPECT_THAT(Entries(1'000), IsEmpty()) << text;
    EXPECT_FALSE(std::filesystem::exists(file));
  }
  // What is durable stands.
  ASSERT_THAT(Journal().AppendLater({9, kClaim, "{\"a\":3}"}), IsOk());
  ASSERT_THAT(Journal().Append({10, kClaim, "{\"a\":4}"}), IsOk());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_THAT(Entries(1'000), ElementsAre(Pair(kClaim, "{\"a\":4}")));
  ASSERT_THAT(Journal().AppendLater({9, kClaim, "{\"a\":3}"}), IsOk());
  EXPECT_THAT(Entries(1'000), ElementsAre(Pair(kClaim, "{\"a\":4}")));
  ASSERT_THAT(Journal().End(10), IsOk());
  EXPECT_THAT(Entries(10), ElementsAre(Pair(kClaim, "{\"a\":4}")));
}

/// Not every name that an object may have is one that a file may have.
TEST_P(ObjectJournalTest, KeepsObjectsOfAnyName) {
  const auto later = folder_.path() / "objects-later";
  const auto files = [&] {
    std::filesystem::recursive_directory_iterator all(later);
    return std::count_if(begin(all), end(all), [](const auto& entry) {
      return entry.is_regular_file();
    });
  };
  const auto named = [](std::size_t bytes) {
    return "resource.k8s.io/resourceclaims/default/" + std::string(bytes, 'x');
  };
  std::map<std::string, std::string> expected;
  for (const std::string& key :
       {std::string(kClaim) + ".tmp", std::string("a/b/c/.."),
        std::string("../b/c/d"), named(244), named(245), named(253)}) {
    ASSERT_THAT(Journal().AppendLater({1, key, "{\"a\":1}"}), IsOk()) << key;
    ASSERT_THAT(Journal().AppendLater({2, key, "{\"a\":2}"}), IsOk()) << key;
    expected[key] = "{\"a\":2}";
  }
  EXPECT_EQ(Entries(2), expected);
  EXPECT_EQ(files(), 6);
  // Versions before have named files so, as far as they could.
  EXPECT_TRUE(std::filesystem::exists(later / named(244)));
  for (const auto& [key, value] : expected) {
    ASSERT_THAT(Journal().Append({3, key, value}), IsOk()) << key;
  }
  EXPECT_EQ(files(), 0);
  EXPECT_EQ(Entries(3), expected);
  ASSERT_THAT(Journal().AppendLater({4, named(254), "{}"}), IsOk());
  ASSERT_THAT(Journal().AppendLater({5, named(254), ""}), IsOk());
  EXPECT_EQ(files(), 0);
}

TEST_P(ObjectJournalTest, RemovesWhatAKillLeftOfAWrite) {
  const std::string odd = std::string(kClaim) + ".tmp";
  ASSERT_THAT(Journal().AppendLater({1, kClaim, "{}"}), IsOk());
  ASSERT_THAT(Journal().AppendLater({2, odd, "{}"}), IsOk());
  std::vector<std::filesystem::path> written;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           folder_.path() / "objects-later")) {
    if (entry.is_regular_file()) written.push_back(entry.path());
  }
  ASSERT_THAT(written, SizeIs(2));
  for (const std::filesystem::path& file : written) {
    std::filesystem::copy(file, file.string() + ".AbC123.tmp");
  }
  EXPECT_THAT(Entries(2), ElementsAre(Pair(kClaim, "{}"), Pair(odd, "{}")));
  for (const std::filesystem::path& file : written) {
    EXPECT_TRUE(std::filesystem::exists(file));
    EXPECT_FALSE(std::filesystem::exists(file.string() + ".AbC123.tmp"));
  }
}

TEST_P(ObjectJournalTest, NamesTheObjectThatItDidNotWrite) {
  for (const std::string text : {"", "7", "x\n{}", "\n{}", "7 \n{}", "7\n"}) {
    PutRaw(kSlice, text);
    EXPECT_THAT(ReplayError(), HasSubstr(kSlice)) << text;
  }
  PutRaw(kSlice, "7\n{}");
  PutRaw("stray", "7\n{}");
  EXPECT_THAT(ReplayError(), HasSubstr("stray"));
}

/// As a ledger of a node that recovers leniently: with the revision, if that
/// can be read.
TEST_P(ObjectJournalTest, DropsSuchAnObjectWhereDamageIsToBeRecovered) {
  Append(3, kNode, "{\"object\":{}}");
  PutRaw(kSlice, "12\nnot JSON");
  PutRaw("reserved-revision", "x");
  EXPECT_THAT(Entries(12, /*drops_damaged=*/true),
              ElementsAre(Pair(kNode, "{\"object\":{}}")));
  EXPECT_THAT(log_,
              ElementsAre(HasSubstr("reserved-revision"), HasSubstr(kSlice)));
  EXPECT_THAT(Entries(12), ElementsAre(Pair(kNode, "{\"object\":{}}")));
}

/// As versions before this one have left them.
TEST_P(ObjectJournalTest, TakesOverFilesOnce) {
  PutFile("resource.k8s.io/resourceslices/_/s", "7\n{\"a\":1}");
  PutFile("resource.k8s.io/resourceslices/_/x.AbCdEf.tmp", "half");
  PutFile("core/nodes/_/n1", "2\n{}");
  PutFile("last-revision", "9\n");
  PutFile("reserved-revision", "1009\n");
  ASSERT_THAT(Journal().AppendLater({11, kClaim, "{}"}), IsOk());
  EXPECT_TRUE(*Journal().IsUsed());
  EXPECT_THAT(Entries(1'009), ElementsAre(Pair(kNode, "{}"), Pair(kClaim, "{}"),
                                          Pair(kSlice, "{\"a\":1}")));
  EXPECT_FALSE(std::filesystem::exists(Dir()));
  EXPECT_THAT(std::distance(std::filesystem::directory_iterator(folder_.path()),
                            std::filesystem::directory_iterator()),
              GetParam() == Kept::kInLedger ? 2 : 1);
  EXPECT_THAT(Entries(1'009), SizeIs(3));
  Append(1'010, kSlice, "");
  EXPECT_THAT(Entries(1'010), SizeIs(2));
}

/// The earlier version was started once more; what it has is newer.
TEST_P(ObjectJournalTest, TakesOverFilesInThePlaceOfWhatIsThere) {
  Append(40, kSlice, "{\"a\":1}");
  Append(41, kNode, "{}");
  PutFile("resource.k8s.io/resourceslices/_/s", "3\n{\"a\":2}");
  EXPECT_THAT(Entries(41), ElementsAre(Pair(kSlice, "{\"a\":2}")));
  EXPECT_THAT(Entries(41), ElementsAre(Pair(kSlice, "{\"a\":2}")));
}

/// Files of a taking-over that was cut off are no newer ones.
TEST_P(ObjectJournalTest, RemovesWhatACrashLeftOfFilesThatWereTakenOver) {
  Append(40, kSlice, "{\"a\":1}");
  const auto leftover = folder_.path() / "objects.taken-over";
  std::filesystem::create_directories(leftover);
  std::ofstream(leftover / "last-revision") << "9\n";
  EXPECT_THAT(Entries(40), ElementsAre(Pair(kSlice, "{\"a\":1}")));
  EXPECT_FALSE(std::filesystem::exists(leftover));
}

TEST_P(ObjectJournalTest, NamesTheFileThatNoVersionWrote) {
  const auto file = Dir() / "resource.k8s.io/resourceslices/_/s";
  for (const std::string text : {"", "7", "x\n{}", "\n{}", "7 \n{}", "7\n"}) {
    PutFile("resource.k8s.io/resourceslices/_/s", text);
    EXPECT_THAT(ReplayError(), HasSubstr(file.string())) << text;
    EXPECT_TRUE(std::filesystem::exists(file));
  }
  PutFile("resource.k8s.io/resourceslices/_/s", "7\n{}");
  PutFile("stray", "7\n{}");
  EXPECT_THAT(ReplayError(), HasSubstr("stray"));
}

TEST(NodeUidTest, IsMadeOnceAndKept) {
  const TempFolder folder;
  const auto file = folder.path() / "endpoint/node-uid";
  const auto uid = KeepNodeUid(file);
  ASSERT_TRUE(uid.ok()) << uid.status();
  EXPECT_EQ(*KeepNodeUid(file), *uid);
  EXPECT_NE(*KeepNodeUid(folder.path() / "other"), *uid);
  std::ofstream(file) << "x";
  EXPECT_EQ(KeepNodeUid(file).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace devmgr::endpoint
