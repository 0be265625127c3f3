// SPDX-License-Identifier: Apache-2.0
#include "source/file_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "source/manifest_directory.h"
#include "support/unprivileged.h"

namespace devmgr::source {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;
using Names = std::vector<std::string>;
using SnapshotPtr = std::shared_ptr<const ObjectSnapshot>;

constexpr const char* kBroken = "apiVersion: v1\nkind: Pod\nmetadata: {\n";

std::string Problems(const SnapshotPtr& snapshot) {
  return SourceListener::Problems(*snapshot);
}

int TestScale() {
  const char* scale = std::getenv("DEVMGR_TEST_SCALE");
  return scale == nullptr ? 1 : std::max(1, std::atoi(scale));
}

class FileSourceTest : public testing::Test {
 protected:
  FileSourceOptions Options() const {
    FileSourceOptions options;
    options.directory = folder_.path();
    options.first_retry = std::chrono::milliseconds(5);
    options.max_retry = std::chrono::milliseconds(50);
    return options;
  }
  /// A source, new or instead of the one before, and what it says.
  void Start() { Start(Options()); }
  void Start(FileSourceOptions options) {
    Stop();
    source_ = WatchFiles(std::move(options));
    listener_ = std::make_unique<SourceListener>(*source_);
  }
  void Stop() {
    listener_.reset();
    source_.reset();
  }

  SnapshotPtr AwaitPods(const Names& names, bool complete = true) {
    return listener_->AwaitPods(names, complete);
  }
  SnapshotPtr AwaitPriority(const std::string& pod, int priority) {
    return listener_->Await([&](const ObjectSnapshot& snapshot) {
      const auto it = snapshot.pods.find(InDefault(pod));
      return it != snapshot.pods.end() && it->second->spec.priority == priority;
    });
  }
  SnapshotPtr AwaitProblem(const std::string& text, bool complete = true) {
    return listener_->Await([&](const ObjectSnapshot& snapshot) {
      return snapshot.complete == complete &&
             SourceListener::Problems(snapshot).find(text) != std::string::npos;
    });
  }
  /// Lets the source see everything that was done so far: a file made now has
  /// been seen, and what was done before it, too.
  SnapshotPtr Sync(bool complete = true) {
    const std::string name = fmt::format("sync-{}", ++syncs_);
    folder_.Put("zz-sync.yaml", ClassText(name));
    return listener_->Await([&](const ObjectSnapshot& snapshot) {
      return snapshot.complete == complete &&
             snapshot.device_classes.count({"", name}) > 0;
    });
  }

  ManifestDirectory folder_;
  std::unique_ptr<ObjectSource> source_;
  std::unique_ptr<SourceListener> listener_;
  int syncs_ = 0;
};

TEST_F(FileSourceTest, PublicFactoryServesADirectory) {
  folder_.Put("a.yaml", PodText("a"));
  source_ = WatchManifests(folder_.path() / "");
  listener_ = std::make_unique<SourceListener>(*source_);
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
  EXPECT_EQ(source_->Describe(), "directory " + folder_.path().string());
}

TEST_F(FileSourceTest, IsIncompleteBeforeTheFirstScan) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  std::shared_ptr<const ObjectSnapshot> snapshot = source_->Snapshot();
  ASSERT_NE(snapshot, nullptr);
  EXPECT_EQ(snapshot->complete, !snapshot->pods.empty());
  if (!snapshot->complete) {
    EXPECT_THAT(Problems(snapshot), HasSubstr("not read yet"));
  }
}

TEST_F(FileSourceTest, ServesWhatIsThereAtStart) {
  folder_.Put("a.yaml", Documents({PodText("a"), ClassText("gpu")}));
  folder_.Put("b.yml", PodText("b"));
  folder_.Put("c.json",
              R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},)"
              R"("spec":{"containers":[{"name":"main"}]}})");
  Start();
  const SnapshotPtr snapshot = AwaitPods({"a", "b", "c"});
  EXPECT_THAT(snapshot->problems, IsEmpty());
  EXPECT_EQ(snapshot->device_classes.count({"", "gpu"}), 1u);
}

TEST_F(FileSourceTest, EmptyDirectoryIsComplete) {
  Start();
  EXPECT_THAT(AwaitPods({})->problems, IsEmpty());
}

TEST_F(FileSourceTest, LeavesOtherFilesAlone) {
  folder_.Put("notes.txt", kBroken);
  folder_.Put(".hidden.yaml", kBroken);
  folder_.Put("a.yaml~", kBroken);
  fs::create_directory(folder_ / "folder.yaml");
  fs::create_directory(folder_ / "sub");
  folder_.Write("sub/b.yaml", PodText("b"));
  folder_.Put("a.yaml", PodText("a"));
  Start();
  EXPECT_THAT(AwaitPods({"a"})->problems, IsEmpty());
}

TEST_F(FileSourceTest, FollowsFilesThatComeChangeAndGo) {
  Start();
  AwaitPods({});
  folder_.Write("a.yaml", PodText("a"));
  AwaitPods({"a"});
  folder_.Put("b.yaml", PodText("b"));
  AwaitPods({"a", "b"});
  folder_.Write("a.yaml", PodText("a", 1));
  AwaitPriority("a", 1);
  folder_.Put("a.yaml", PodText("a", 2));
  AwaitPriority("a", 2);
  folder_.Remove("a.yaml");
  AwaitPods({"b"});
  fs::rename(folder_ / "b.yaml", folder_ / "c.yaml");
  fs::rename(folder_ / "c.yaml", folder_ / "c.disabled");
  EXPECT_THAT(AwaitPods({})->problems, IsEmpty());
}

TEST_F(FileSourceTest, RemovedDocumentIsGone) {
  folder_.Put("a.yaml", Documents({PodText("a"), PodText("b")}));
  Start();
  AwaitPods({"a", "b"});
  folder_.Put("a.yaml", PodText("b"));
  AwaitPods({"b"});
}

TEST_F(FileSourceTest, PassesTheNodeNameToSlicesWithoutPool) {
  folder_.Put("s.yaml",
              "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
              "metadata:\n  name: s\nspec:\n  driver: gpu.example.com\n"
              "  allNodes: true\n"
              "  devices:\n  - name: gpu-0\n");
  FileSourceOptions options;
  options.directory = folder_.path();
  options.node_name = "node-7";
  Start(std::move(options));
  const SnapshotPtr snapshot = listener_->Await([](const ObjectSnapshot& s) {
    return s.resource_slices.count({"", "s"}) > 0;
  });
  EXPECT_EQ(snapshot->resource_slices.at({"", "s"})->pool, "node-7");
  // Accepted with a warning.
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(Problems(snapshot), HasSubstr("s.yaml"));
}

TEST_F(FileSourceTest, MalformedPodIsKeptApart) {
  folder_.Put("a.yaml", Documents({MalformedPodText("a"), PodText("b")}));
  folder_.Put("c.yaml", PodText("a"));
  Start();
  const SnapshotPtr snapshot = AwaitPods({"b"});
  ASSERT_EQ(snapshot->malformed_pods.count(InDefault("a")), 1u);
  EXPECT_EQ(snapshot->malformed_pods.at(InDefault("a"))->problem.file,
            (folder_ / "a.yaml").string());
  EXPECT_THAT(Problems(snapshot), HasSubstr("only the first by file name"));
}

TEST_F(FileSourceTest, SameObjectInTwoFilesCountsOnce) {
  folder_.Put("b.yaml", PodText("x", 2));
  Start();
  AwaitPriority("x", 2);
  folder_.Put("a.yaml", PodText("x", 1));
  const SnapshotPtr snapshot = AwaitPriority("x", 1);
  EXPECT_TRUE(snapshot->complete);
  EXPECT_THAT(Problems(snapshot),
              AllOf(HasSubstr((folder_ / "b.yaml").string()),
                    HasSubstr((folder_ / "a.yaml").string())));
  folder_.Remove("a.yaml");
  EXPECT_THAT(AwaitPriority("x", 2)->problems, IsEmpty());
}

// Bad files.

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
  AwaitProblem("l.yaml: symbolic link that leads nowhere", false);
  {
    SlowWriter writer(folder_.root() / "elsewhere.txt");
    writer.Write(PodText("l"));
  }
  EXPECT_THAT(AwaitPods({"l"})->problems, IsEmpty());
  fs::remove(folder_.root() / "elsewhere.txt");
  AwaitProblem("leads nowhere; last good content is kept");
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

// Files that are being written.

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

// Directories that come, go and are exchanged.

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
      folder_.Write(version + "/" + name, text);
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

// Publishing.

TEST_F(FileSourceTest, ObjectsOfUnchangedFilesStayTheSame) {
  folder_.Put("a.yaml", PodText("a"));
  folder_.Put("b.yaml", PodText("b"));
  Start();
  const SnapshotPtr before = AwaitPods({"a", "b"});
  folder_.Put("b.yaml", PodText("b", 2));
  const SnapshotPtr after = AwaitPriority("b", 2);
  EXPECT_EQ(before->pods.at(InDefault("a")), after->pods.at(InDefault("a")));
}

TEST_F(FileSourceTest, SaysNothingWhenNothingDiffers) {
  folder_.Put("a.yaml", PodText("a"));
  Start();
  AwaitPods({"a"});
  const SnapshotPtr before = Sync();
  const int changes = listener_->changes();
  folder_.Put("a.yaml", PodText("a"));  // the same text
  folder_.Put("notes.txt", "x");
  const SnapshotPtr after = Sync();
  EXPECT_EQ(listener_->changes(), changes + 1);
  EXPECT_EQ(before->pods, after->pods);
}

TEST_F(FileSourceTest, UnsubscribedListenerHearsNothing) {
  Start();
  AwaitPods({});
  listener_.reset();
  int calls = 0;
  source_->Subscribe([&calls] { ++calls; });
  source_->Unsubscribe();
  listener_ = std::make_unique<SourceListener>(*source_);
  folder_.Put("a.yaml", PodText("a"));
  AwaitPods({"a"});
  EXPECT_EQ(calls, 0);
}

TEST_F(FileSourceTest, StopsAmidABurst) {
  for (int i = 0; i < 20; ++i) {
    Start();
    for (int j = 0; j < 20; ++j) {
      folder_.Put(fmt::format("{}.yaml", j), PodText(fmt::format("p{}", j)));
    }
    Stop();
  }
}

TEST_F(FileSourceTest, ConvergesAfterABurstOfChanges) {
  Start();
  for (int i = 0; i < 300; ++i) {
    const std::string name = fmt::format("{}.yaml", i % 7);
    switch (i % 3) {
      case 0:
        folder_.Put(name, PodText("p", i));
        break;
      case 1:
        folder_.Write(name, PodText(fmt::format("q{}", i)));
        break;
      default:
        fs::remove(folder_ / name);
    }
  }
  for (int i = 0; i < 7; ++i) fs::remove(folder_ / fmt::format("{}.yaml", i));
  folder_.Put("end.yaml", PodText("end"));
  EXPECT_THAT(AwaitPods({"end"})->problems, IsEmpty());
}

// Limits.

class FileSourceLimitTest : public FileSourceTest {
 protected:
  FileSourceOptions Options() {
    FileSourceOptions options;
    options.directory = folder_.path();
    return options;
  }
};

TEST_F(FileSourceLimitTest, FilesBeyondTheLimitAreReportedAndNothingVanishes) {
  for (const char* name : {"a", "b", "c"}) {
    folder_.Put(std::string(name) + ".yaml", PodText(name));
  }
  FileSourceOptions options = Options();
  options.max_files = 2;
  Start(std::move(options));
  EXPECT_THAT(Problems(AwaitPods({"a", "b"}, false)),
              HasSubstr("holds 3 manifests, more than the 2 that are read"));
  folder_.Remove("a.yaml");
  EXPECT_THAT(AwaitPods({"b", "c"})->problems, IsEmpty());
}

TEST_F(FileSourceLimitTest, LargeFilesAreReported) {
  folder_.Put("a.yaml", PodText("a"));
  folder_.Put("b.yaml", PodText("b") + "# " + std::string(1000, 'x'));
  FileSourceOptions options = Options();
  options.max_file_bytes = 900;
  Start(std::move(options));
  EXPECT_THAT(Problems(AwaitPods({"a"}, false)),
              HasSubstr("more than the 900 that are read"));
}

TEST_F(FileSourceLimitTest, TooMuchInAllIsReported) {
  for (const char* name : {"a", "b", "c"}) {
    folder_.Put(std::string(name) + ".yaml", PodText(name));
  }
  FileSourceOptions options = Options();
  options.max_total_bytes = 2 * PodText("a").size();
  Start(std::move(options));
  EXPECT_THAT(Problems(AwaitPods({"a", "b"}, false)),
              HasSubstr("c.yaml: the manifests up to this one hold"));
  folder_.Remove("a.yaml");
  EXPECT_THAT(AwaitPods({"b", "c"})->problems, IsEmpty());
}

TEST_F(FileSourceLimitTest, LinksToTooManyDirectoriesAreServedButRemarkedOn) {
  for (const char* name : {"a", "b"}) {
    fs::create_directory(folder_.root() / name);
    SlowWriter writer(folder_.root() / name / "x");
    writer.Write(PodText(name));
    fs::create_symlink(folder_.root() / name / "x",
                       folder_ / (std::string(name) + ".yaml"));
  }
  FileSourceOptions options = Options();
  options.max_link_directories = 1;
  Start(std::move(options));
  EXPECT_THAT(Problems(AwaitPods({"a", "b"})),
              AllOf(HasSubstr("b.yaml: leads to"), HasSubstr("not watched"),
                    Not(HasSubstr("a.yaml: leads"))));
}

}  // namespace
}  // namespace devmgr::source
