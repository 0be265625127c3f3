// SPDX-License-Identifier: Apache-2.0
#include "endpoint/file_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "endpoint/node_uid.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::endpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kSlice[] = "resource.k8s.io/resourceslices//s";
constexpr char kNode[] = "/nodes//n1";
constexpr char kClaim[] = "resource.k8s.io/resourceclaims/default/c";

class FileJournalTest : public ::testing::Test {
 protected:
  std::filesystem::path Dir() const { return folder_.path() / "objects"; }
  void Append(std::uint64_t revision, const std::string& key,
              const std::string& value) {
    ASSERT_THAT(FileJournal(Dir()).Append({revision, key, value}), IsOk());
  }
  std::map<std::string, std::string> Entries(std::uint64_t last) {
    std::map<std::string, std::string> entries;
    const auto content = FileJournal(Dir()).Replay();
    EXPECT_TRUE(content.ok()) << content.status();
    if (!content.ok()) return entries;
    EXPECT_EQ(content->last_revision, last);
    for (const JournalEntry& entry : content->entries) {
      entries[entry.key] = entry.value;
    }
    return entries;
  }
  std::string ReplayError() {
    const absl::Status status = FileJournal(Dir()).Replay().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    return std::string(status.message());
  }

  const TempFolder folder_;
};

TEST_F(FileJournalTest, IsEmptyAtFirst) { EXPECT_THAT(Entries(0), IsEmpty()); }

TEST_F(FileJournalTest, HasTheLatestOfEachObject) {
  Append(1, kSlice, "{\"a\":1}");
  Append(2, kNode, "{}");
  Append(3, kClaim, "text\nof two lines");
  Append(4, kSlice, "{\"a\":2}");
  EXPECT_THAT(Entries(4),
              ElementsAre(Pair(kNode, "{}"), Pair(kClaim, "text\nof two lines"),
                          Pair(kSlice, "{\"a\":2}")));
}

/// A version that was given to a client is not given again.
TEST_F(FileJournalTest, KeepsTheRevisionOfWhatIsGone) {
  Append(1, kSlice, "{}");
  Append(9, kSlice, "");
  EXPECT_THAT(Entries(9), IsEmpty());
  // It need not have been there.
  Append(11, kClaim, "");
  EXPECT_THAT(Entries(11), IsEmpty());
}

TEST_F(FileJournalTest, IsForItsOwnerAlone) {
  Append(1, kSlice, "{}");
  struct stat info {};
  const auto file = Dir() / "resource.k8s.io/resourceslices/_/s";
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(FileJournalTest, StaysBelowItsFolder) {
  for (const std::string key :
       {"", "a", "a/b/c", "a/b/c/d/e", "a/b/c/..", "../b/c/d", "a//c/d",
        "a/b/c/", "a/b/c/d.tmp"}) {
    FileJournal journal(Dir());
    EXPECT_EQ(journal.Append({1, key, "{}"}).code(),
              absl::StatusCode::kInvalidArgument)
        << key;
  }
  EXPECT_THAT(Entries(0), IsEmpty());
}

TEST_F(FileJournalTest, WhatAKillLeftBehindIsPassedOver) {
  Append(1, kSlice, "{}");
  std::ofstream(Dir() / "resource.k8s.io/resourceslices/_/x.tmp") << "half";
  EXPECT_THAT(Entries(1), ElementsAre(Pair(kSlice, "{}")));
}

TEST_F(FileJournalTest, HasWhatNeedNotBeDurableUnlessItIsCutShort) {
  FileJournal journal(Dir());
  ASSERT_THAT(journal.Reserve(1'000), IsOk());
  ASSERT_THAT(journal.AppendLater({7, kClaim, "{\"a\":1}"}), IsOk());
  EXPECT_THAT(Entries(1'000), ElementsAre(Pair(kClaim, "{\"a\":1}")));
  EXPECT_TRUE(FileJournal(Dir()).Replay()->entries[0].is_later);
  // A power failure.
  const auto file =
      folder_.path() / "objects-later/resource.k8s.io/resourceclaims/default/c";
  for (const std::string& text :
       {std::string(), std::string("7"), std::string(20, '\0'),
        std::string("7 0000000000000000\n{\"a\":1}")}) {
    ASSERT_THAT(journal.AppendLater({8, kClaim, "{\"a\":2}"}), IsOk());
    std::ofstream(file) << text;
    EXPECT_THAT(Entries(1'000), IsEmpty()) << text;
    EXPECT_FALSE(std::filesystem::exists(file));
  }
  // What is durable stands.
  ASSERT_THAT(journal.AppendLater({9, kClaim, "{\"a\":3}"}), IsOk());
  const std::string stale = "{\"a\":3}";
  ASSERT_THAT(journal.Append({10, kClaim, "{\"a\":4}"}), IsOk());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_THAT(Entries(1'000), ElementsAre(Pair(kClaim, "{\"a\":4}")));
  ASSERT_THAT(journal.AppendLater({9, kClaim, stale}), IsOk());
  EXPECT_THAT(Entries(1'000), ElementsAre(Pair(kClaim, "{\"a\":4}")));
  ASSERT_THAT(journal.End(10), IsOk());
  EXPECT_THAT(Entries(10), ElementsAre(Pair(kClaim, "{\"a\":4}")));
}

TEST_F(FileJournalTest, NamesTheFileThatItDidNotWrite) {
  Append(1, kSlice, "{}");
  const auto file = Dir() / "resource.k8s.io/resourceslices/_/s";
  for (const std::string text : {"", "7", "x\n{}", "\n{}", "7 \n{}", "7\n"}) {
    std::ofstream(file) << text;
    EXPECT_THAT(ReplayError(), HasSubstr(file.string())) << text;
  }
  std::ofstream(file) << "7\n{}";
  std::ofstream(Dir() / "stray") << "7\n{}";
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
