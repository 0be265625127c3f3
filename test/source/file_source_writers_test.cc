// SPDX-License-Identifier: Apache-2.0
//
// Files that are being written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "source/file_source_fixture.h"

namespace devmgr::source {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(FileSourceTest, FileBeingWrittenKeepsItsContentUntilItIsClosed) {
  const std::string both = Documents({PodText("a"), PodText("b")});
  const std::string first = Documents({PodText("a")});
  folder_.Put("a.yaml", both);
  folder_.Put("c.yaml", PodText("c"));
  Start();
  const SnapshotPtr before = AwaitPods({"a", "b", "c"});

  // The first half parses, and must not cost pod b its place.
  SlowWriter writer(folder_ / "a.yaml");
  writer.Write(first);
  const SnapshotPtr during = Sync();
  EXPECT_EQ(during->pods, before->pods);
  EXPECT_THAT(Problems(during),
              HasSubstr("a.yaml: is still being written; last good content is "
                        "kept"));
  // Whatever else is done to the file does not end the writing.
  ASSERT_EQ(::chmod((folder_ / "a.yaml").c_str(), 0640), 0);
  EXPECT_EQ(Sync()->pods, before->pods);
  writer.Write(both.substr(first.size()));
  EXPECT_EQ(Sync()->pods, before->pods);
  writer.Close();
  const SnapshotPtr after = listener_->Await(
      [](const ObjectSnapshot& s) { return s.problems.empty(); });
  // The same bytes give the same objects.
  EXPECT_EQ(after->pods, before->pods);
}

TEST_F(FileSourceTest, NewFileBeingWrittenMakesTheSnapshotIncomplete) {
  Start();
  AwaitPods({});
  SlowWriter writer(folder_ / "a.yaml");
  writer.Write(Documents({PodText("a")}));
  EXPECT_THAT(Problems(Sync(false)),
              HasSubstr("a.yaml: is still being written"));
  EXPECT_THAT(source_->Snapshot()->pods, IsEmpty());
  writer.Write(Documents({PodText("b")}));
  writer.Close();
  EXPECT_THAT(AwaitPods({"a", "b"})->problems, IsEmpty());
}

TEST_F(FileSourceTest, FileBeingWrittenMayBeReplaced) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  SlowWriter writer(folder_ / "a.yaml");
  writer.Write(Documents({PodText("x")}));
  Sync();
  folder_.Put("a.yaml", PodText("a", 3));
  EXPECT_THAT(AwaitPriority("a", 3)->problems, IsEmpty());
}

TEST_F(FileSourceTest, WriterThatGivesUpLeavesABadFile) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  {
    SlowWriter writer(folder_ / "a.yaml");
    writer.Write(kBroken);
    Sync();
  }
  const SnapshotPtr bad = listener_->Await([](const ObjectSnapshot& s) {
    return !s.problems.empty() && s.problems[0].line > 0;
  });
  EXPECT_EQ(SourceListener::PodNames(*bad), Names{"a"});
}

TEST_F(FileSourceTest, TargetOfALinkBeingWrittenKeepsItsContent) {
  const fs::path target = folder_.root() / "target";
  {
    SlowWriter writer(target);
    writer.Write(Documents({PodText("a"), PodText("b")}));
  }
  fs::create_symlink("../target", folder_ / "l.yaml");
  Start();
  AwaitPods({"a", "b"});
  SlowWriter writer(target);
  writer.Write(Documents({PodText("a")}));
  AwaitProblem("is still being written; last good content is kept");
  AwaitPods({"a", "b"});
  writer.Write(Documents({PodText("c")}));
  writer.Close();
  EXPECT_THAT(AwaitPods({"a", "c"})->problems, IsEmpty());
}

}  // namespace
}  // namespace devmgr::source
