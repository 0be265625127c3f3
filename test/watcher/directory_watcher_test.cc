// SPDX-License-Identifier: Apache-2.0
#include "watcher/directory_watcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include "common/unique_fd.h"
#include "support/mailbox.h"
#include "support/temp_folder.h"
#include "support/unprivileged.h"

namespace devmgr::watcher {
namespace {

namespace fs = std::filesystem;
using Kind = DirectoryEvent::Kind;

class DirectoryWatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    auto poller = Poller::Start("test-poller");
    ASSERT_TRUE(poller.ok()) << poller.status().ToString();
    poller_ = *std::move(poller);
    fs::create_directory(folder());
  }

  const fs::path& base() const { return base_.path(); }
  fs::path folder() const { return base() / "folder"; }

  void StartAt(const fs::path& path, WatchOptions options = {}) {
    auto watcher = DirectoryWatcher::Start(
        *poller_, path,
        [this](const DirectoryEvent& event) { events_.Put(event); },
        std::move(options));
    ASSERT_TRUE(watcher.ok()) << watcher.status().ToString();
    watcher_ = *std::move(watcher);
    ASSERT_TRUE(Comes(Kind::kRescan));
    ASSERT_EQ(events_.size(), 0u);
  }

  /// Waits for such an event, passing over others.
  bool Comes(Kind kind, const std::string& name = "") {
    while (const auto event = events_.Take()) {
      if (event->kind == kind && event->name == name) return true;
    }
    return false;
  }

  /// The next event is this one.
  testing::AssertionResult Next(Kind kind, const std::string& name = "") {
    const auto event = events_.Take();
    if (!event) return testing::AssertionFailure() << "no event came";
    if (event->kind == kind && event->name == name) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << "kind " << static_cast<int>(event->kind) << " '" << event->name
           << "' came";
  }

  /// The watcher works at `folder`: it sees a file come, or looks anew when
  /// that was there already.
  bool Sees(const fs::path& folder, const std::string& name = "probe") {
    Write(folder / name);
    while (const auto event = events_.Take()) {
      if (event->kind == Kind::kChanged && event->name == name) return true;
      if (event->kind == Kind::kRescan) Write(folder / name);
    }
    return false;
  }

  static void Write(const fs::path& path, const std::string& text = "x") {
    std::ofstream(path) << text;
  }

  const TempFolder base_;
  std::unique_ptr<Poller> poller_;
  Mailbox<DirectoryEvent> events_;
  std::unique_ptr<DirectoryWatcher> watcher_;
};

TEST_F(DirectoryWatcherTest, TellsOfAFileFromCreationToDeletion) {
  StartAt(folder());
  UniqueFd fd(open((folder() / "f").c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_TRUE(Next(Kind::kAppeared, "f"));
  ASSERT_EQ(write(fd.get(), "x", 1), 1);
  EXPECT_TRUE(Next(Kind::kWriting, "f"));
  fd.Reset();
  EXPECT_TRUE(Next(Kind::kChanged, "f"));
  fs::remove(folder() / "f");
  EXPECT_TRUE(Next(Kind::kVanished, "f"));
}

TEST_F(DirectoryWatcherTest, TellsOfRenamesIntoOutOfAndWithin) {
  StartAt(folder());
  Write(base() / "f");
  fs::rename(base() / "f", folder() / "f");
  EXPECT_TRUE(Next(Kind::kAppeared, "f"));
  fs::rename(folder() / "f", folder() / "g");
  EXPECT_TRUE(Next(Kind::kVanished, "f"));
  EXPECT_TRUE(Next(Kind::kAppeared, "g"));
  fs::rename(folder() / "g", base() / "g");
  EXPECT_TRUE(Next(Kind::kVanished, "g"));
}

TEST_F(DirectoryWatcherTest, TellsOfAFileThatBecomesReadable) {
  Write(folder() / "f");
  chmod((folder() / "f").c_str(), 0);
  StartAt(folder());
  chmod((folder() / "f").c_str(), 0600);
  EXPECT_TRUE(Next(Kind::kAttributes, "f"));
}

TEST_F(DirectoryWatcherTest, TellsOfFoldersAndOfNothingBelowThem) {
  StartAt(folder());
  fs::create_directory(folder() / "sub");
  EXPECT_TRUE(Next(Kind::kAppeared, "sub"));
  Write(folder() / "sub" / "f");
  fs::remove_all(folder() / "sub");
  EXPECT_TRUE(Next(Kind::kVanished, "sub"));
}

TEST_F(DirectoryWatcherTest, TellsNothingOfSiblings) {
  StartAt(folder());
  Write(base() / "sibling");
  fs::create_directory(base() / "folder2");
  Write(folder() / "f");
  EXPECT_TRUE(Next(Kind::kAppeared, "f"));
}

TEST_F(DirectoryWatcherTest, WaitsForADirectoryStepByStep) {
  StartAt(folder() / "a" / "b" / "c");
  fs::create_directory(folder() / "a");
  fs::create_directory(folder() / "a" / "b");
  fs::create_directory(folder() / "a" / "b" / "c");
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(folder() / "a" / "b" / "c"));
}

TEST_F(DirectoryWatcherTest, SaysNothingWhileOnlyPartOfThePathIsThere) {
  StartAt(folder() / "a" / "b");
  fs::create_directory(folder() / "a");
  Write(folder() / "a" / "other");
  fs::create_directory(folder() / "a" / "b");
  EXPECT_TRUE(Next(Kind::kRescan));
  Write(folder() / "a" / "b" / "f");
  EXPECT_TRUE(Comes(Kind::kAppeared, "f"));
}

TEST_F(DirectoryWatcherTest, SeesADirectoryMovedIntoPlace) {
  StartAt(base() / "x" / "y");
  fs::create_directories(base() / "made" / "y");
  fs::rename(base() / "made", base() / "x");
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(base() / "x" / "y"));
}

TEST_F(DirectoryWatcherTest, FollowsADirectoryDeletedAndMadeAnew) {
  StartAt(folder());
  for (int i = 0; i < 20; ++i) {
    fs::remove_all(folder());
    ASSERT_TRUE(Comes(Kind::kRescan));
    fs::create_directory(folder());
    ASSERT_TRUE(Comes(Kind::kRescan));
    ASSERT_TRUE(Sees(folder(), std::to_string(i)));
  }
}

TEST_F(DirectoryWatcherTest, FollowsADirectoryReplacedAtOnce) {
  StartAt(folder());
  fs::create_directory(base() / "next");
  fs::rename(folder(), base() / "old");
  fs::rename(base() / "next", folder());
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(folder()));
  // And it has let go of the old one.
  Write(base() / "old" / "late");
  Write(folder() / "new");
  for (auto event = events_.Take(); event && event->name != "new";
       event = events_.Take()) {
    EXPECT_NE(event->name, "late");
  }
}

TEST_F(DirectoryWatcherTest, FollowsWhenAParentIsReplaced) {
  fs::create_directories(folder() / "a" / "b");
  StartAt(folder() / "a" / "b");
  fs::create_directories(base() / "next" / "a" / "b");
  fs::rename(folder(), base() / "old");
  fs::rename(base() / "next", folder());
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(folder() / "a" / "b"));
}

// A directory that somebody still has open is gone for us all the same.
TEST_F(DirectoryWatcherTest, FollowsWhenTheOldDirectoryIsHeldOpen) {
  StartAt(folder());
  const UniqueFd held(open(folder().c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_TRUE(held.valid());
  fs::remove_all(folder());
  fs::create_directory(folder());
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(folder()));
}

class DirectoryWatcherLinkTest : public DirectoryWatcherTest {
 protected:
  /// As tools do that swap links: a new link renamed over the old.
  static void Relink(const fs::path& link, const fs::path& target) {
    const fs::path temporary = link.string() + ".tmp";
    fs::create_symlink(target, temporary);
    fs::rename(temporary, link);
  }
};

TEST_F(DirectoryWatcherLinkTest, FollowsALinkToTheDirectory) {
  fs::create_directories(base() / "v1");
  fs::create_directories(base() / "v2");
  fs::create_symlink("v1", base() / "link");
  StartAt(base() / "link");
  EXPECT_TRUE(Sees(base() / "v1", "one"));
  Relink(base() / "link", base() / "v2");
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(base() / "v2", "two"));
}

TEST_F(DirectoryWatcherLinkTest, FollowsALinkInTheMiddle) {
  fs::create_directories(base() / "v1" / "d");
  fs::create_directories(base() / "v2" / "d");
  fs::create_symlink("v1", base() / "link");
  StartAt(base() / "link" / "d");
  EXPECT_TRUE(Sees(base() / "v1" / "d", "one"));
  Relink(base() / "link", "v2");
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(base() / "v2" / "d", "two"));
}

TEST_F(DirectoryWatcherLinkTest, FollowsLinksToLinks) {
  fs::create_directories(base() / "store" / "v1");
  fs::create_directories(base() / "store" / "v2");
  fs::create_directories(base() / "etc");
  fs::create_symlink("v1", base() / "store" / "current");
  fs::create_symlink("../store/./current", base() / "etc" / "conf");
  StartAt(base() / "etc" / "conf");
  EXPECT_TRUE(Sees(base() / "store" / "v1", "one"));
  // The far link moves, the near one stays.
  Relink(base() / "store" / "current", "v2");
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(base() / "store" / "v2", "two"));
}

TEST_F(DirectoryWatcherLinkTest, WaitsForWhatADanglingLinkPointsTo) {
  fs::create_symlink(base() / "later" / "d", base() / "link");
  StartAt(base() / "link");
  fs::create_directory(base() / "later");
  fs::create_directory(base() / "later" / "d");
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(base() / "later" / "d"));
}

TEST_F(DirectoryWatcherLinkTest, SurvivesALinkToItself) {
  fs::create_symlink("loop", base() / "loop");
  StartAt(base() / "loop" / "d");
  fs::remove(base() / "loop");
  fs::create_directories(base() / "loop" / "d");
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(base() / "loop" / "d"));
}

// ConfigMap volumes: files are links through `..data`, which is swapped.
TEST_F(DirectoryWatcherLinkTest, TellsOfASwappedConfigMap) {
  fs::create_directory(folder() / "..v1");
  fs::create_directory(folder() / "..v2");
  fs::create_symlink("..v1", folder() / "..data");
  StartAt(folder());
  Relink(folder() / "..data", "..v2");
  EXPECT_TRUE(Comes(Kind::kAppeared, "..data"));
}

TEST_F(DirectoryWatcherTest, WaitsWhereAFileStandsInTheWay) {
  Write(base() / "thing");
  StartAt(base() / "thing");
  fs::remove(base() / "thing");
  fs::create_directory(base() / "thing");
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(base() / "thing"));
}

TEST_F(DirectoryWatcherTest, SeesADirectoryThatBecomesAccessible) {
  fs::create_directory(folder() / "d");
  const Unprivileged user(base());
  chmod(folder().c_str(), 0);
  StartAt(folder() / "d");
  chmod(folder().c_str(), 0700);
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(folder() / "d"));
}

TEST_F(DirectoryWatcherTest, TakesPathsWithDotsAndTrailingSlashes) {
  StartAt(base() / "folder" / ".." / "." / "folder" / "");
  EXPECT_TRUE(Sees(folder()));
}

TEST_F(DirectoryWatcherTest, RefusesAnEmptyPath) {
  EXPECT_EQ(
      DirectoryWatcher::Start(*poller_, "", [](const auto&) {}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(DirectoryWatcherTest, RescansWhenTheKernelsQueueOverflows) {
  int limit = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> limit;
  if (limit <= 0 || limit > 100'000) GTEST_SKIP() << "queue of " << limit;
  std::promise<void> stuck;
  std::promise<void> released;
  int rescans = 0;
  auto watcher = DirectoryWatcher::Start(
      *poller_, folder(), [&](const DirectoryEvent& event) {
        events_.Put(event);
        // The reader hangs at first, while the queue fills.
        if (event.kind == Kind::kRescan && rescans++ == 0) {
          stuck.set_value();
          released.get_future().wait();
        }
      });
  ASSERT_TRUE(watcher.ok());
  stuck.get_future().wait();
  // Four events or more each, none equal to the one before.
  const fs::path a = folder() / "a";
  const fs::path b = folder() / "b";
  Write(a);
  for (int i = 0; i < limit / 4 + 10; ++i) {
    ASSERT_EQ(rename(a.c_str(), b.c_str()), 0);
    ASSERT_EQ(rename(b.c_str(), a.c_str()), 0);
  }
  released.set_value();
  EXPECT_TRUE(Next(Kind::kRescan));
  EXPECT_TRUE(Next(Kind::kAppeared, "a"));
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(folder()));
  watcher->reset();
}

// The user may run out of inotify watches when others take them. It used to
// stay deaf from then on, and to tell nobody.
TEST_F(DirectoryWatcherTest, SaysSoWhenWatchesRunOutAndTriesAgain) {
  std::atomic<bool> none_left = false;
  WatchOptions options;
  options.first_retry = options.max_retry = std::chrono::milliseconds(5);
  options.add_watch = [&](int inotify, const char* path, std::uint32_t mask) {
    if (!none_left) return inotify_add_watch(inotify, path, mask);
    errno = ENOSPC;
    return -1;
  };
  StartAt(folder(), options);
  none_left = true;
  fs::remove_all(folder());
  auto event = events_.Take();
  while (event && event->problem.empty()) event = events_.Take();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, Kind::kRescan);
  EXPECT_EQ(event->problem,
            "cannot watch '" + folder().string() + "': " + strerror(ENOSPC));
  fs::create_directory(folder());
  // Whoever looks now, as he is told to, sees it all the same.
  event = events_.Take();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, Kind::kRescan);
  none_left = false;
  while (event && !event->problem.empty()) event = events_.Take();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, Kind::kRescan);
  EXPECT_TRUE(Sees(folder()));
  watcher_.reset();
}

TEST_F(DirectoryWatcherTest, IsSilentAfterItsEnd) {
  for (int i = 0; i < 10; ++i) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    auto watcher = DirectoryWatcher::Start(
        *poller_, folder(),
        [flag = alive.get()](const DirectoryEvent&) { EXPECT_TRUE(*flag); });
    ASSERT_TRUE(watcher.ok());
    Write(folder() / std::to_string(i));
    watcher->reset();
    *alive = false;
    // Were an event to come now, it would touch freed memory.
    alive.reset();
    Write(folder() / std::to_string(i));
  }
}

TEST_F(DirectoryWatcherTest, LetsSeveralWatchOnePoller) {
  StartAt(folder());
  Mailbox<DirectoryEvent> others;
  fs::create_directory(base() / "other");
  auto other = DirectoryWatcher::Start(
      *poller_, base() / "other",
      [&](const DirectoryEvent& event) { others.Put(event); });
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(others.Take()->kind, Kind::kRescan);
  Write(base() / "other" / "f");
  EXPECT_EQ(others.Take()->name, "f");
  Write(folder() / "g");
  EXPECT_TRUE(Next(Kind::kAppeared, "g"));
  other->reset();
}

TEST_F(DirectoryWatcherTest, TellsWhereTheDirectoryIs) {
  fs::create_directory_symlink(folder(), base() / "link");
  StartAt(base() / "link");
  std::promise<WatchedPlace> place;
  // On the poller's thread, as it must be asked.
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  UniqueFd reader(pipes[0]), writer(pipes[1]);
  auto watch = poller_->Watch(reader.get(), EPOLLIN, [&](std::uint32_t) {
    char byte;
    if (read(reader.get(), &byte, 1) == 1) place.set_value(watcher_->place());
  });
  ASSERT_TRUE(watch.ok());
  ASSERT_EQ(write(writer.get(), "x", 1), 1);
  const WatchedPlace found = place.get_future().get();
  poller_->Unwatch(*watch);
  EXPECT_GE(found.id, 0);
  EXPECT_EQ(found.path, fs::canonical(folder()).string() + "/");
}

TEST_F(DirectoryWatcherTest, TellsOfAMountOverTheDirectory) {
  StartAt(folder());
  if (mount("tmpfs", folder().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "nothing can be mounted here";
  }
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(folder()));
  EXPECT_EQ(umount2(folder().c_str(), MNT_DETACH), 0);
  EXPECT_TRUE(Comes(Kind::kRescan));
  EXPECT_TRUE(Sees(folder(), "below"));
}

}  // namespace
}  // namespace devmgr::watcher
