// SPDX-License-Identifier: Apache-2.0
//
// By what is known that a directory is the one it was: an unbroken watch, and
// the marker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>

#include <atomic>
#include <cerrno>

#include "source/file_source_fixture.h"
#include "support/test_mount.h"

namespace devmgr::source {
namespace {

TEST_F(FileSourceTest, TheWatchLastsWhileFilesComeAndGo) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  const SnapshotPtr first = AwaitPods({"a"});
  EXPECT_FALSE(first->vouched);
  EXPECT_NE(first->watch, 0u);
  folder_.Put("b.yaml", PodText("b"));
  EXPECT_EQ(AwaitPods({"a", "b"})->watch, first->watch);
  folder_.Remove("a.yaml");
  folder_.Remove("b.yaml");
  EXPECT_EQ(AwaitPods({})->watch, first->watch);
}

TEST_F(FileSourceTest, TheWatchLastsOverALinkThatIsSwapped) {
  for (const char* version : {"one", "two"}) {
    fs::create_directory(folder_.root() / version);
    SlowWriter writer(folder_.root() / version / "a.yaml");
    writer.Write(PodText(version));
  }
  fs::remove(folder_.path());
  fs::create_directory_symlink("one", folder_.path());
  Start();
  const SnapshotPtr one = AwaitPods({"one"});
  fs::create_directory_symlink("two", folder_.root() / "next");
  fs::rename(folder_.root() / "next", folder_.path());
  EXPECT_EQ(AwaitPods({"two"})->watch, one->watch);
}

TEST_F(FileSourceTest, TheWatchEndsWithItsDirectory) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  const SnapshotPtr first = AwaitPods({"a"});
  // In one step, and with the same name.
  fs::create_directory(folder_.root() / "new");
  fs::rename(folder_.path(), folder_.root() / "old");
  fs::rename(folder_.root() / "new", folder_.path());
  EXPECT_GT(AwaitPods({})->watch, first->watch);
  // Removed and made anew, perhaps with the same inode.
  fs::remove_all(folder_.path());
  folder_.Make();
  folder_.Put("b.yaml", PodText("b"));
  EXPECT_GT(AwaitPods({"b"})->watch, first->watch + 1);
}

// It used to count as unbroken when the new directory was listed before the
// watcher had found it.
TEST_F(FileSourceTest, TheWatchEndsWhenTheDirectoryIsListedBeforeItIsWatched) {
  folder_.Put("a.yaml", PodText("a"));
  std::atomic<bool> gone = false;
  FileSourceOptions options = Options();
  options.watch.add_watch = [&](int inotify, const char* path,
                                std::uint32_t mask) {
    const bool is_folder = fs::path(path) == folder_.path() / "";
    if (!is_folder || !gone.exchange(false)) {
      return ::inotify_add_watch(inotify, path, mask);
    }
    fs::remove_all(folder_.path());
    const int watch = ::inotify_add_watch(inotify, path, mask);
    const int error = errno;
    folder_.Make();
    folder_.Put("b.yaml", PodText("b"));
    errno = error;
    return watch;
  };
  Start(options);
  const SnapshotPtr first = AwaitPods({"a"});
  gone = true;
  fs::rename(folder_.path(), folder_.root() / "old");
  fs::rename(folder_.root() / "old", folder_.path());
  EXPECT_GT(AwaitPods({"b"})->watch, first->watch);
  Stop();
}

TEST_F(FileSourceTest, CarriesTheMarkItIsAskedTo) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  const SnapshotPtr first = AwaitPods({"a"});
  EXPECT_EQ(first->marker, "");
  source_->Mark("not-this", first->watch + 1);
  source_->Mark("this", first->watch);
  const SnapshotPtr marked = listener_->Await(
      [](const ObjectSnapshot& snapshot) { return !snapshot.marker.empty(); });
  EXPECT_EQ(marked->marker, "this");
  EXPECT_EQ(marked->pods, first->pods);
  Start();
  EXPECT_EQ(AwaitPods({"a"})->marker, "this");
}

class UnmarkedTest : public FileSourceTest {
 protected:
  /// What became of the wish to carry a mark.
  SnapshotPtr Mark() {
    source_->Mark("this", source_->Snapshot()->watch);
    return listener_->Await([](const ObjectSnapshot& snapshot) {
      return !snapshot.marker.empty() || !snapshot.marker_problem.empty();
    });
  }
};

// It used to be forgotten with the next look at the directory.
TEST_F(UnmarkedTest, ADirectoryThatIsFullSaysSoUntilItIsMarked) {
  TestMount mount(folder_.path(), "32k");
  if (!mount.mounted()) GTEST_SKIP() << "nothing can be mounted here";
  folder_.Write("a.yaml", PodText("a"));
  folder_.Write("b.yaml", PodText("b"));
  mount.Fill("filler");
  Start();
  AwaitPods({"a", "b"});
  SnapshotPtr now = Mark();
  EXPECT_TRUE(now->complete);
  EXPECT_THAT(Problems(now), testing::HasSubstr("No space left on device"));
  EXPECT_FALSE(fs::exists(folder_.path() / ".devmgr-source.new"));
  fs::remove(folder_ / "a.yaml");  // A page; filled again before it is used.
  mount.Fill("filler2");
  now = AwaitPods({"b"});
  EXPECT_THAT(now->marker_problem, testing::HasSubstr("cannot be written"));
  fs::remove(folder_ / "filler");
  source_->Mark("this", now->watch);
  now = listener_->Await(
      [](const ObjectSnapshot& snapshot) { return !snapshot.marker.empty(); });
  EXPECT_EQ(now->marker, "this");
  EXPECT_EQ(now->marker_problem, "");
  EXPECT_THAT(now->problems, testing::IsEmpty());
}

TEST_F(UnmarkedTest, ADirectoryThatCannotBeWrittenIsReadAllTheSame) {
  TestMount mount(folder_.path(), "32k");
  if (!mount.mounted()) GTEST_SKIP() << "nothing can be mounted here";
  folder_.Write("a.yaml", PodText("a"));
  ASSERT_TRUE(mount.MakeReadOnly());
  Start();
  AwaitPods({"a"});
  const SnapshotPtr now = Mark();
  EXPECT_TRUE(now->complete);
  EXPECT_THAT(Problems(now),
              testing::AllOf(testing::HasSubstr(folder_.path().string() + ": "),
                             testing::HasSubstr("Read-only file system")));
}

}  // namespace
}  // namespace devmgr::source
