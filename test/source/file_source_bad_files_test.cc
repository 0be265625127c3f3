// SPDX-License-Identifier: Apache-2.0
//
// Files that cannot be used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "source/file_source_fixture.h"
#include "support/unprivileged.h"

namespace devmgr::source {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(FileSourceTest, BadFileKeepsItsLastGoodContentAndTheRestIsServed) {
  folder_.Put("a.yaml", PodText("a"));
  folder_.Put("b.yaml", PodText("b"));
  Start();
  const SnapshotPtr before = AwaitPods({"a", "b"});
  folder_.Put("a.yaml", kBroken);
  const SnapshotPtr bad = AwaitProblem("last good content is kept");
  EXPECT_EQ(bad->pods, before->pods);
  ASSERT_EQ(bad->problems.size(), 1u);
  EXPECT_EQ(bad->problems[0].file, (folder_ / "a.yaml").string());
  EXPECT_GT(bad->problems[0].line, 0);

  folder_.Put("b.yaml", PodText("b2"));
  AwaitPods({"a", "b2"});
  folder_.Put("a.yaml", PodText("a", 5));
  EXPECT_THAT(AwaitPriority("a", 5)->problems, IsEmpty());
}

TEST_F(FileSourceTest, WrongTypeIsReportedWithLineAndField) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  folder_.Put("a.yaml",
              "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n"
              "  priority: high\n");
  const SnapshotPtr bad = AwaitProblem("last good content is kept");
  EXPECT_EQ(bad->problems[0].line, 6);
  EXPECT_EQ(bad->problems[0].field, "spec.priority");
  EXPECT_EQ(SourceListener::PodNames(*bad), Names{"a"});
}

TEST_F(FileSourceTest, ExpressionThatDoesNotCompileIsReportedWithItsPlace) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  folder_.Put("c.yaml",
              "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
              "metadata: {name: c}\nspec:\n  selectors:\n"
              "  - cel: {expression: device.drivr == 'a'}\n");
  const SnapshotPtr bad = AwaitProblem("line 1, column 7", false);
  EXPECT_EQ(bad->problems[0].line, 6);
  EXPECT_EQ(bad->problems[0].field, "spec.selectors[0].cel.expression");
  EXPECT_EQ(bad->problems[0].excerpt,
            " | device.drivr == 'a'\n"
            " | ......^");
  EXPECT_THAT(bad->device_classes, IsEmpty());
}

TEST_F(FileSourceTest, ObjectsOfABadFileAreNamedWithTheirProblem) {
  folder_.Put("a.yaml", PodText("a"));
  folder_.Put("b.yaml", PodText("b"));
  Start();
  AwaitPods({"a", "b"});
  const std::string bad_pod =
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: new\nspec:\n"
      "  priority: high\n";
  folder_.Put("a.yaml", bad_pod);
  const SnapshotPtr bad = AwaitProblem("last good content is kept");
  const std::string where = (folder_ / "a.yaml").string() + ":6: spec.priority";
  ASSERT_EQ(bad->object_problems.size(), 2u);
  EXPECT_EQ(bad->object_problems[0].object, (ObjectName{"default", "a"}));
  EXPECT_THAT(bad->object_problems[0].problem,
              AllOf(HasSubstr(where), HasSubstr("last good content is kept")));
  EXPECT_EQ(bad->object_problems[1].object_kind, "Pod");
  EXPECT_EQ(bad->object_problems[1].object, (ObjectName{"default", "new"}));
  EXPECT_THAT(bad->object_problems[1].problem,
              AllOf(HasSubstr(where), Not(HasSubstr("is kept"))));
  folder_.Put("a.yaml", PodText("a", 5));
  EXPECT_THAT(AwaitPriority("a", 5)->object_problems, IsEmpty());
}

TEST_F(FileSourceTest, GoodDocumentsOfABadFileAreNotTaken) {
  folder_.Put("a.yaml", Documents({PodText("a"), kBroken}));
  Start();
  AwaitProblem("a.yaml:", false);
  AwaitPods({}, false);
}

TEST_F(FileSourceTest, BadFileThatIsDeletedIsGone) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  folder_.Put("a.yaml", kBroken);
  AwaitProblem("last good content is kept");
  folder_.Remove("a.yaml");
  EXPECT_THAT(AwaitPods({})->problems, IsEmpty());
}

TEST_F(FileSourceTest, DeletedFileServesOnUntilTheBadOneIsSettled) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  folder_.Put("b.yaml", kBroken);
  AwaitPods({"a"}, false);
  folder_.Remove("a.yaml");
  AwaitProblem("not in the directory any more; last good content is kept",
               false);
  AwaitPods({"a"}, false);
  folder_.Put("b.yaml", PodText("b"));
  AwaitPods({"b"});
}

// A pod that the ledger knows and no file serves may be in the bad file.
TEST_F(FileSourceTest, NothingVanishesOverARestartWithABadFile) {
  folder_.Put("a.yaml", PodText("a"));
  folder_.Put("b.yaml", PodText("b"));
  Start();
  AwaitPods({"a", "b"});
  folder_.Put("b.yaml", kBroken);
  AwaitProblem("last good content is kept");

  Start();  // what the first one remembered is lost
  const SnapshotPtr restarted = AwaitPods({"a"}, false);
  EXPECT_THAT(Problems(restarted),
              AllOf(HasSubstr("b.yaml"), Not(HasSubstr("content is kept"))));
  folder_.Put("b.yaml", PodText("b"));
  EXPECT_THAT(AwaitPods({"a", "b"})->problems, IsEmpty());
}

TEST_F(FileSourceTest, EmptyFileCountsAsNotYetWritten) {
  folder_.Write("a.yaml", "");
  Start();
  AwaitProblem("a.yaml: is empty; perhaps not written yet", false);
  folder_.Write("a.yaml", PodText("a"));
  AwaitPods({"a"});
  folder_.Write("a.yaml", "\n");
  AwaitProblem("is empty; perhaps not written yet; last good content is kept");
  AwaitPods({"a"});
}

TEST_F(FileSourceTest, FileOfCommentsIsFineAndEmpty) {
  folder_.Put("a.yaml", "# nothing here, on purpose\n");
  folder_.Put("b.yaml", PodText("b"));
  Start();
  EXPECT_THAT(AwaitPods({"b"})->problems, IsEmpty());
  folder_.Put("b.yaml", "# neither\n");
  EXPECT_THAT(AwaitPods({})->problems, IsEmpty());
}

TEST_F(FileSourceTest, PipeIsReportedAndDoesNotBlock) {
  ASSERT_EQ(::mkfifo((folder_ / "p.yaml").c_str(), 0600), 0);
  folder_.Put("a.yaml", PodText("a"));
  Start();
  EXPECT_THAT(Problems(AwaitPods({"a"}, false)),
              HasSubstr("p.yaml: not a regular file but a pipe"));
  folder_.Remove("p.yaml");
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
}

TEST_F(FileSourceTest, DanglingLinkIsABadFileUntilItLeadsSomewhere) {
  fs::create_symlink(folder_.root() / "elsewhere.txt", folder_ / "l.yaml");
  Start();
  AwaitProblem("l.yaml: symbolic link without a target", false);
  {
    SlowWriter writer(folder_.root() / "elsewhere.txt");
    writer.Write(PodText("l"));
  }
  EXPECT_THAT(AwaitPods({"l"})->problems, IsEmpty());
  fs::remove(folder_.root() / "elsewhere.txt");
  AwaitProblem("symbolic link without a target; last good content is kept");
  AwaitPods({"l"});
}

TEST_F(FileSourceTest, UnreadableFileIsReadOnceItMayBe) {
  const Unprivileged user(folder_.root());
  folder_.Put("a.yaml", PodText("a"));
  ASSERT_EQ(::chmod((folder_ / "a.yaml").c_str(), 0), 0);
  Start();
  AwaitProblem("a.yaml: cannot be opened: Permission denied", false);
  ASSERT_EQ(::chmod((folder_ / "a.yaml").c_str(), 0600), 0);
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
}

// No event tells when a loop of links ends somewhere else than in the
// directory, so the source looks again by itself.
TEST_F(FileSourceTest, LooksAgainAtWhatCouldNotBeExamined) {
  const fs::path outside = folder_.root() / "outside";
  fs::create_directory(outside);
  fs::create_symlink("loop", outside / "loop");
  fs::create_symlink(outside / "loop" / "a", folder_ / "a.yaml");
  Start();
  AwaitProblem("a.yaml: cannot be examined", false);
  fs::remove(outside / "loop");
  fs::create_directory(outside / "loop");
  {
    SlowWriter writer(outside / "loop" / "a");
    writer.Write(PodText("a"));
  }
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
}

}  // namespace
}  // namespace devmgr::source
