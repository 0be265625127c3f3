// SPDX-License-Identifier: Apache-2.0
#include "source/change_tracker.h"

#include <gtest/gtest.h>

#include <string>

namespace devmgr::source {
namespace {

using Kind = watcher::DirectoryEvent::Kind;
using Keys = std::vector<EntryKey>;

class ChangeTrackerTest : public testing::Test {
 protected:
  void Note(Kind kind, const std::string& name = "",
            const std::string& directory = "") {
    tracker_.Note(directory, {kind, name});
  }

  const Keys a_{{"", "a.yaml"}};
  const Keys linked_{{"", "l.yaml"}, {"/far", "data"}};
  ChangeTracker tracker_;
};

TEST_F(ChangeTrackerTest, RescanTouchesEveryFileOfItsDirectory) {
  EXPECT_FALSE(tracker_.pending().any());
  Note(Kind::kRescan);
  const ChangeTracker::Changes changes = tracker_.Take();
  EXPECT_TRUE(changes.shape);
  EXPECT_TRUE(changes.Touch(a_));
  EXPECT_TRUE(changes.Touch(linked_));
  EXPECT_FALSE(tracker_.pending().any());

  Note(Kind::kRescan, "", "/far");
  EXPECT_FALSE(tracker_.pending().Touch(a_));
  EXPECT_TRUE(tracker_.pending().Touch(linked_));
}

TEST_F(ChangeTrackerTest, WriterLastsUntilTheFileIsClosed) {
  Note(Kind::kWriting, "a.yaml");
  EXPECT_TRUE(tracker_.IsBeingWritten(a_));
  EXPECT_TRUE(tracker_.Take().Touch(a_));
  EXPECT_TRUE(tracker_.IsBeingWritten(a_));
  Note(Kind::kChanged, "a.yaml");
  EXPECT_FALSE(tracker_.IsBeingWritten(a_));
  EXPECT_TRUE(tracker_.pending().Touch(a_));
  EXPECT_FALSE(tracker_.pending().shape);
}

TEST_F(ChangeTrackerTest, WriterIsOfNoInterestOnceTheFileIsReplacedOrGone) {
  for (const Kind kind : {Kind::kAppeared, Kind::kVanished}) {
    Note(Kind::kWriting, "a.yaml");
    Note(kind, "a.yaml");
    EXPECT_FALSE(tracker_.IsBeingWritten(a_));
    EXPECT_TRUE(tracker_.Take().shape);
  }
}

// A chmod used to pass for the end of the writing.
TEST_F(ChangeTrackerTest, WriterOutlastsAChangeOfAttributes) {
  Note(Kind::kWriting, "a.yaml");
  tracker_.Take();
  Note(Kind::kAttributes, "a.yaml");
  EXPECT_TRUE(tracker_.IsBeingWritten(a_));
  EXPECT_TRUE(tracker_.pending().Touch(a_));
  EXPECT_FALSE(tracker_.pending().shape);
}

TEST_F(ChangeTrackerTest, WritingToOtherFilesIsNoNews) {
  Note(Kind::kWriting, "notes.txt");
  Note(Kind::kChanged, "notes.txt");
  Note(Kind::kWriting, ".a.yaml");
  EXPECT_FALSE(tracker_.pending().any());
}

TEST_F(ChangeTrackerTest, AnyEntryThatComesOrGoesMayBePartOfALink) {
  Note(Kind::kAppeared, "..data");
  EXPECT_TRUE(tracker_.pending().shape);
  EXPECT_FALSE(tracker_.pending().Touch(a_));
}

TEST_F(ChangeTrackerTest, FollowsWhatLinksLeadTo) {
  Note(Kind::kWriting, "data", "/far");
  EXPECT_FALSE(tracker_.pending().any());
  tracker_.SetLinkTargets({{"/far", "data"}});
  Note(Kind::kAppeared, "other", "/far");
  EXPECT_FALSE(tracker_.pending().any());
  Note(Kind::kWriting, "data", "/far");
  EXPECT_TRUE(tracker_.IsBeingWritten(linked_));
  EXPECT_TRUE(tracker_.pending().Touch(linked_));
  EXPECT_FALSE(tracker_.pending().Touch(a_));
  tracker_.SetLinkTargets({});
  EXPECT_FALSE(tracker_.IsBeingWritten(linked_));
}

// A kRescan after a queue overflow: the end of the writing may be among what
// was lost.
TEST_F(ChangeTrackerTest, WritersFromBeforeARescanAreDoubtful) {
  Note(Kind::kWriting, "a.yaml");
  Note(Kind::kWriting, "b.yaml");
  EXPECT_FALSE(tracker_.HasDoubtful());
  Note(Kind::kRescan);
  EXPECT_TRUE(tracker_.HasDoubtful());
  EXPECT_TRUE(tracker_.IsBeingWritten(a_));
  Note(Kind::kWriting, "b.yaml");
  tracker_.Take();

  tracker_.ForgetDoubtful();
  EXPECT_FALSE(tracker_.HasDoubtful());
  EXPECT_FALSE(tracker_.IsBeingWritten(a_));
  EXPECT_TRUE(tracker_.pending().Touch(a_));
  EXPECT_TRUE(tracker_.IsBeingWritten({{"", "b.yaml"}}));
}

TEST_F(ChangeTrackerTest, TooManyEntriesBecomeARescan) {
  for (std::size_t i = 0; i <= ChangeTracker::kMaxEntries; ++i) {
    Note(Kind::kWriting, std::to_string(i) + ".yaml");
  }
  EXPECT_TRUE(tracker_.pending().shape);
  EXPECT_EQ(tracker_.pending().touched.size(), 1u);
  EXPECT_TRUE(tracker_.pending().Touch(a_));
}

}  // namespace
}  // namespace devmgr::source
