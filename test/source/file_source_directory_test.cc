// SPDX-License-Identifier: Apache-2.0
//
// Directories that come, go and are exchanged.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "source/file_source_fixture.h"
#include "support/test_scale.h"
#include "support/unprivileged.h"

namespace devmgr::source {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(FileSourceTest, DirectoryMayAppearLater) {
  fs::remove(folder_.path());
  Start();
  AwaitProblem(folder_.path().string() + ": cannot be opened", false);
  // Together, so that it is never seen without its file.
  fs::create_directory(folder_.root() / "new");
  SlowWriter writer(folder_.root() / "new" / "a.yaml");
  writer.Write(PodText("a"));
  writer.Close();
  fs::rename(folder_.root() / "new", folder_.path());
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
}

TEST_F(FileSourceTest, NothingVanishesWhileTheDirectoryIsAway) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  const SnapshotPtr before = AwaitPods({"a"});
  fs::rename(folder_.path(), folder_.root() / "away");
  const SnapshotPtr away = AwaitPods({"a"}, false);
  EXPECT_EQ(away->pods, before->pods);
  EXPECT_THAT(Problems(away), HasSubstr("No such file or directory"));
  fs::rename(folder_.root() / "away", folder_.path());
  const SnapshotPtr back = AwaitPods({"a"});
  EXPECT_EQ(back->pods, before->pods);
  folder_.Put("b.yaml", PodText("b"));
  AwaitPods({"a", "b"});
}

TEST_F(FileSourceTest, NothingVanishesWhileTheDirectoryIsUnreadable) {
  const Unprivileged user(folder_.root());
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0300), 0);
  folder_.Put("b.yaml", PodText("b"));
  EXPECT_THAT(Problems(AwaitPods({"a"}, false)), HasSubstr("denied"));
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0700), 0);
  AwaitPods({"a", "b"});
}

// Others may have taken the user's last inotify watch.
TEST_F(FileSourceTest, SaysThatChangesMayGoUnnoticedWhileItIsSo) {
  std::atomic<bool> none_left = false;
  FileSourceOptions options = Options();
  options.watch.first_retry = options.first_retry;
  options.watch.max_retry = options.max_retry;
  options.watch.add_watch = [&](int inotify, const char* path,
                                std::uint32_t mask) {
    if (!none_left) return ::inotify_add_watch(inotify, path, mask);
    errno = ENOSPC;
    return -1;
  };
  folder_.Put("a.yaml", PodText("a"));
  Start(options);
  AwaitPods({"a"});
  none_left = true;
  fs::rename(folder_.path(), folder_.root() / "old");
  AwaitProblem("changes may go unnoticed: cannot watch '", false);
  fs::create_directory(folder_.path());
  folder_.Put("b.yaml", PodText("b"));
  AwaitPods({"a", "b"}, false);
  none_left = false;
  EXPECT_THAT(AwaitPods({"b"})->problems, IsEmpty());
}

// What root, too, cannot list.
TEST_F(FileSourceTest, NothingVanishesWhileThePathIsNoDirectory) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  const fs::path away = folder_.root() / "away";
  { SlowWriter writer(away); }
  // In one step: nothing tells one path that leads nowhere from another.
  ASSERT_EQ(::renameat2(AT_FDCWD, away.c_str(), AT_FDCWD,
                        folder_.path().c_str(), RENAME_EXCHANGE),
            0);
  AwaitProblem("Not a directory", false);
  AwaitPods({"a"}, false);
  fs::create_symlink(folder_.path().filename(), folder_.root() / "loop");
  fs::rename(folder_.root() / "loop", folder_.path());
  AwaitProblem("Too many levels of symbolic links", false);
  AwaitPods({"a"}, false);
  fs::remove(folder_.path());
  fs::rename(away, folder_.path());
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
  folder_.Put("b.yaml", PodText("b"));
  AwaitPods({"a", "b"});
}

TEST_F(FileSourceTest, DirectoryMayBeALinkThatIsSwapped) {
  const fs::path one = folder_.root() / "one";
  const fs::path two = folder_.root() / "two";
  for (const fs::path& version : {one, two}) {
    fs::create_directory(version);
    SlowWriter writer(version / "a.yaml");
    writer.Write(Documents({PodText("a", version == one ? 1 : 2),
                            PodText(version.filename().string())}));
  }
  fs::remove(folder_.path());
  fs::create_directory_symlink("one", folder_.path());
  Start();
  AwaitPods({"a", "one"});
  fs::create_directory_symlink("two", folder_.root() / "next");
  fs::rename(folder_.root() / "next", folder_.path());
  EXPECT_EQ(AwaitPods({"a", "two"})->pods.at(InDefault("a"))->spec.priority, 2);
  {
    SlowWriter writer(two / "b.yaml");
    writer.Write(PodText("b"));
  }
  AwaitPods({"a", "b", "two"});
}

/// A directory as a ConfigMap is mounted: `a.yaml -> ..data/a.yaml`,
/// `..data -> ..v1`, and a new version comes by renaming a new `..data`.
class ConfigMapTest : public FileSourceTest {
 protected:
  void Publish(const std::vector<std::pair<std::string, std::string>>& files) {
    const std::string version = fmt::format("..v{}", ++version_);
    fs::create_directory(folder_ / version);
    for (const auto& [name, text] : files) {
      folder_.Write(fmt::format("{}/{}", version, name), text);
    }
    fs::create_directory_symlink(version, folder_ / "..data_tmp");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
    for (const auto& [name, text] : files) {
      if (fs::is_symlink(folder_ / name)) continue;
      fs::create_symlink(fs::path("..data") / name, folder_ / name);
    }
    for (const fs::directory_entry& entry :
         fs::directory_iterator(folder_.path())) {
      if (entry.is_symlink() && !fs::exists(entry.path())) {
        fs::remove(entry.path());
      }
    }
    fs::remove_all(folder_ / fmt::format("..v{}", version_ - 1));
  }

  int version_ = 0;
};

TEST_F(ConfigMapTest, FollowsTheSwap) {
  Publish({{"a.yaml", PodText("a")}, {"b.yaml", PodText("b")}});
  Start();
  EXPECT_THAT(AwaitPods({"a", "b"})->problems, IsEmpty());
  Publish({{"a.yaml", PodText("a", 2)}, {"c.yaml", PodText("c")}});
  const SnapshotPtr snapshot = AwaitPods({"a", "c"});
  EXPECT_EQ(snapshot->pods.at(InDefault("a"))->spec.priority, 2);
  EXPECT_THAT(snapshot->problems, IsEmpty());
}

TEST_F(ConfigMapTest, UnchangedFilesKeepTheirObjectsOverTheSwap) {
  Publish({{"a.yaml", PodText("a")}, {"b.yaml", PodText("b")}});
  Start();
  const SnapshotPtr before = AwaitPods({"a", "b"});
  Publish({{"a.yaml", PodText("a")}, {"b.yaml", PodText("b", 2)}});
  const SnapshotPtr after = AwaitPriority("b", 2);
  EXPECT_EQ(before->pods.at(InDefault("a")), after->pods.at(InDefault("a")));
}

// A scan amid a swap sees some files of the old version and some of the new.
// Pod x moves to and fro between two files, and must never be missing.
TEST_F(ConfigMapTest, NoCompleteSnapshotShowsAMixture) {
  const int swaps = 100 * TestScale();
  const auto files = [](int round) {
    const std::string x = PodText("x", round);
    const std::string y = PodText("other", round);
    const bool even = round % 2 == 0;
    return std::vector<std::pair<std::string, std::string>>{
        {"a.yaml", even ? x : y}, {"b.yaml", even ? y : x}};
  };
  Publish(files(0));
  Start();
  AwaitPods({"other", "x"});
  listener_.reset();
  std::string mixture;
  source_->Subscribe([&] {
    const SnapshotPtr snapshot = source_->Snapshot();
    if (!snapshot->complete || !mixture.empty()) return;
    std::set<int> rounds;
    for (const auto& [name, pod] : snapshot->pods) {
      rounds.insert(pod->spec.priority);
    }
    if (snapshot->pods.size() == 2 && rounds.size() == 1) return;
    mixture = SourceListener::Describe(*snapshot);
  });
  for (int round = 1; round <= swaps; ++round) Publish(files(round));
  source_->Unsubscribe();
  EXPECT_EQ(mixture, "");
  listener_ = std::make_unique<SourceListener>(*source_);
  AwaitPriority("x", swaps);
  EXPECT_THAT(AwaitPods({"other", "x"})->problems, IsEmpty());
}

// A listing amid a renaming may show neither name.
TEST_F(FileSourceTest, RenamedFileIsNeverMissing) {
  folder_.Put("a.yaml", PodText("x"));
  for (int i = 0; i < 50; ++i) folder_.Put(fmt::format("{}.yaml", i), "# -");
  Start();
  AwaitPods({"x"});
  listener_.reset();
  std::atomic<int> changes = 0;
  std::atomic<bool> missing = false;
  source_->Subscribe([&] {
    const SnapshotPtr snapshot = source_->Snapshot();
    if (snapshot->complete && snapshot->pods.empty()) missing = true;
    ++changes;
  });
  const int enough = 60 * TestScale();
  for (int i = 0; i < 100'000 && changes < enough && !missing; ++i) {
    const bool even = i % 2 == 0;
    fs::rename(folder_ / (even ? "a.yaml" : "z.yaml"),
               folder_ / (even ? "z.yaml" : "a.yaml"));
    if (i % 8 == 0) folder_.Put("c.yaml", ClassText(fmt::format("c{}", i)));
    std::this_thread::yield();
  }
  source_->Unsubscribe();
  EXPECT_FALSE(missing);
  listener_ = std::make_unique<SourceListener>(*source_);
  EXPECT_THAT(AwaitPods({"x"})->problems, IsEmpty());
}

}  // namespace
}  // namespace devmgr::source
