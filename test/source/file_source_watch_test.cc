// SPDX-License-Identifier: Apache-2.0
//
// By what is known that a directory is the one it was: an unbroken watch, and
// the marker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "source/file_source_fixture.h"

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

}  // namespace
}  // namespace devmgr::source
