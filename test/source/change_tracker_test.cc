// SPDX-License-Identifier: Apache-2.0
#include "source/change_tracker.h"

#include <gtest/gtest.h>

#include <string>

namespace devmgr::source {
namespace {

using EventKind = watcher::DirectoryEvent::Kind;
using Keys = std::vector<EntryKey>;

class ChangeTrackerTest : public testing::Test {
 protected:
  void Note(EventKind kind, const std::string& name = "",
            const std::string& directory = "") {
    tracker_.Note(directory, {kind, name});
  }

  const Keys a_{{"", "a.yaml"}};
  const Keys linked_{{"", "l.yaml"}, {"/far", "data"}};
  ChangeTracker tracker_;
};

TEST_F(ChangeTrackerTest, RescanTouchesEveryFileOfItsDirectory) {
  EXPECT_FALSE(tracker_.pending().any());
  Note(EventKind::kRescan);
  const ChangeTracker::Changes changes = tracker_.Take();
  EXPECT_TRUE(changes.shape);
  EXPECT_TRUE(changes.Touch(a_));
  EXPECT_TRUE(changes.Touch(linked_));
  EXPECT_FALSE(tracker_.pending().any());

  Note(EventKind::kRescan, "", "/far");
  EXPECT_FALSE(tracker_.pending().Touch(a_));
  EXPECT_TRUE(tracker_.pending().Touch(linked_));
}

TEST_F(ChangeTrackerTest, WriterLastsUntilTheFileIsClosed) {
  Note(EventKind::kWriting, "a.yaml");
  EXPECT_TRUE(tracker_.IsBeingWritten(a_));
  EXPECT_TRUE(tracker_.Take().Touch(a_));
  EXPECT_TRUE(tracker_.IsBeingWritten(a_));
  Note(EventKind::kChanged, "a.yaml");
  EXPECT_FALSE(tracker_.IsBeingWritten(a_));
  EXPECT_TRUE(tracker_.pending().Touch(a_));
  EXPECT_FALSE(tracker_.pending().shape);
}

TEST_F(ChangeTrackerTest, WriterIsOfNoInterestOnceTheFileIsReplacedOrGone) {
  for (const EventKind kind : {EventKind::kAppeared, EventKind::kVanished}) {
    Note(EventKind::kWriting, "a.yaml");
    Note(kind, "a.yaml");
    EXPECT_FALSE(tracker_.IsBeingWritten(a_));
    EXPECT_TRUE(tracker_.Take().shape);
  }
}

// A chmod used to pass for the end of the writing.
TEST_F(ChangeTrackerTest, WriterOutlastsAChangeOfAttributes) {
  Note(EventKind::kWriting, "a.yaml");
  tracker_.Take();
  Note(EventKind::kAttributes, "a.yaml");
  EXPECT_TRUE(tracker_.IsBeingWritten(a_));
  EXPECT_TRUE(tracker_.pending().Touch(a_));
  EXPECT_FALSE(tracker_.pending().shape);
}

TEST_F(ChangeTrackerTest, WritingToOtherFilesIsNoNews) {
  Note(EventKind::kWriting, "notes.txt");
  Note(EventKind::kChanged, "notes.txt");
  Note(EventKind::kWriting, ".a.yaml");
  EXPECT_FALSE(tracker_.pending().any());
}

TEST_F(ChangeTrackerTest, AnyEntryThatComesOrGoesMayBePartOfALink) {
  Note(EventKind::kAppeared, "..data");
  EXPECT_TRUE(tracker_.pending().shape);
  EXPECT_FALSE(tracker_.pending().Touch(a_));
}

TEST_F(ChangeTrackerTest, FollowsWhatLinksLeadTo) {
  Note(EventKind::kWriting, "data", "/far");
  EXPECT_FALSE(tracker_.pending().any());
  tracker_.SetLinkTargets({{"/far", "data"}});
  Note(EventKind::kAppeared, "other", "/far");
  EXPECT_FALSE(tracker_.pending().any());
  Note(EventKind::kWriting, "data", "/far");
  EXPECT_TRUE(tracker_.IsBeingWritten(linked_));
  EXPECT_TRUE(tracker_.pending().Touch(linked_));
  EXPECT_FALSE(tracker_.pending().Touch(a_));
  tracker_.SetLinkTargets({});
  EXPECT_FALSE(tracker_.IsBeingWritten(linked_));
}

// A kRescan after a queue overflow: the end of the writing may be among what
// was lost.
TEST_F(ChangeTrackerTest, WritersFromBeforeARescanAreDoubtful) {
  Note(EventKind::kWriting, "a.yaml");
  Note(EventKind::kWriting, "b.yaml");
  EXPECT_FALSE(tracker_.HasDoubtful());
  Note(EventKind::kRescan);
  EXPECT_TRUE(tracker_.HasDoubtful());
  EXPECT_TRUE(tracker_.IsBeingWritten(a_));
  Note(EventKind::kWriting, "b.yaml");
  tracker_.Take();

  tracker_.ForgetDoubtful();
  EXPECT_FALSE(tracker_.HasDoubtful());
  EXPECT_FALSE(tracker_.IsBeingWritten(a_));
  EXPECT_TRUE(tracker_.pending().Touch(a_));
  EXPECT_TRUE(tracker_.IsBeingWritten({{"", "b.yaml"}}));
}

TEST_F(ChangeTrackerTest, TooManyEntriesBecomeARescan) {
  for (std::size_t i = 0; i <= ChangeTracker::kMaxEntries; ++i) {
    Note(EventKind::kWriting, std::to_string(i) + ".yaml");
  }
  EXPECT_TRUE(tracker_.pending().shape);
  EXPECT_EQ(tracker_.pending().touched.size(), 1u);
  EXPECT_TRUE(tracker_.pending().Touch(a_));
}

}  // namespace
}  // namespace devmgr::source
