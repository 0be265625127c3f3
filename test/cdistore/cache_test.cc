// SPDX-License-Identifier: Apache-2.0
#include "cdistore/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cdistore/spec_text.h"
#include "support/as_nobody.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::cdistore {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::chrono::seconds kPatience{30};

std::vector<std::string> NamesOf(const CdiRegistry& registry) {
  std::vector<std::string> names;
  for (const CdiRegistryDevice& device : registry.devices()) {
    names.push_back(device.name);
  }
  return names;
}

std::string EnvOf(const CdiRegistry& registry, const std::string& name) {
  const CdiRegistryDevice* device = registry.Find(name);
  return device != nullptr ? device->device->edits.env.at(0) : "none";
}

/// Waits for a cache to become as wanted.
class Follower {
 public:
  explicit Follower(CdiCache& cache) : cache_(cache) {
    cache_.Subscribe([this] {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++changes_;
      changed_.notify_all();
    });
  }
  ~Follower() { cache_.Unsubscribe(); }

  bool WaitUntil(const std::function<bool(const CdiRegistry&)>& wanted) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      const int seen = changes_;
      lock.unlock();
      if (wanted(*cache_.Registry())) return true;
      lock.lock();
      if (!changed_.wait_until(lock, deadline,
                               [&] { return changes_ != seen; })) {
        return false;
      }
    }
  }
  bool WaitForDevices(const std::vector<std::string>& names) {
    return WaitUntil([&](const CdiRegistry& registry) {
      return NamesOf(registry) == names;
    });
  }
  int changes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return changes_;
  }

 private:
  CdiCache& cache_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
};

class CdiCacheTest : public ::testing::Test {
 protected:
  CdiCacheTest() {
    fs::permissions(folder_.path(), fs::perms{0755});
    fs::create_directory(low_);
    fs::create_directory(high_);
  }

  /// In one step, as careful writers do.
  void Write(const fs::path& file, const std::string& text) {
    const fs::path temporary = file.string() + ".tmp";
    std::ofstream(temporary) << text;
    fs::rename(temporary, file);
  }

  std::unique_ptr<CdiCache> Open(CdiCacheOptions options,
                                 watcher::WatchOptions watch = {}) {
    auto cache = OpenCdiCache(std::move(options), std::move(watch));
    EXPECT_THAT(cache, IsOk());
    return *std::move(cache);
  }
  std::unique_ptr<CdiCache> OpenWatched() {
    CdiCacheOptions options;
    options.directories = {low_, high_};
    return Open(options);
  }
  /// Only Refresh looks again.
  std::unique_ptr<CdiCache> OpenManual() {
    CdiCacheOptions options;
    options.directories = {low_, high_};
    options.watch = false;
    return Open(options);
  }

  TempFolder folder_;
  const fs::path low_ = folder_.path() / "low";
  const fs::path high_ = folder_.path() / "high";
};

TEST_F(CdiCacheTest, RefusesOptionsThatMakeNoSense) {
  CdiCacheOptions options;
  options.directories = {""};
  EXPECT_THAT(CdiCache::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument));
  options = {};
  options.max_files = 0;
  EXPECT_THAT(CdiCache::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument));
  options = {};
  options.latest = options.quiet - std::chrono::milliseconds(1);
  EXPECT_THAT(CdiCache::Open(options),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// An empty list is no directories, not the default ones.
TEST_F(CdiCacheTest, NoDirectoryMeansNoDevice) {
  EXPECT_THAT(CdiCacheOptions().directories,
              ElementsAre("/etc/cdi", "/var/run/cdi"));
  CdiCacheOptions options;
  options.directories = {};
  const auto cache = Open(options);
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_THAT(cache->Registry()->devices(), IsEmpty());
  EXPECT_THAT(cache->Directories(), IsEmpty());
}

// BO-034, BO-043
TEST_F(CdiCacheTest, TheLaterDirectoryWinsUntilItsFileIsGone) {
  Write(low_ / "a.yaml", SpecText({"d"}, "FROM=low"));
  Write(high_ / "b.yaml", SpecText({"d"}, "FROM=high"));
  const auto cache = OpenWatched();
  EXPECT_EQ(EnvOf(*cache->Registry(), "v.com/c=d"), "FROM=high");
  EXPECT_THAT(cache->Refresh(), IsOk());
  Follower follower(*cache);
  fs::remove(high_ / "b.yaml");
  EXPECT_TRUE(follower.WaitUntil([](const CdiRegistry& registry) {
    return EnvOf(registry, "v.com/c=d") == "FROM=low";
  }));
}

// BO-035
TEST_F(CdiCacheTest, AConflictDisablesTheNameAndNothingElse) {
  Write(low_ / "a.yaml", SpecText({"d"}));
  Write(low_ / "b.yaml", SpecText({"d", "e"}));
  const auto cache = OpenManual();
  EXPECT_THAT(NamesOf(*cache->Registry()), ElementsAre("v.com/c=e"));
  EXPECT_THAT(cache->Refresh(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("v.com/c=d"), HasSubstr(low_ / "a.yaml"),
                             HasSubstr(low_ / "b.yaml"))));
}

// BO-037
TEST_F(CdiCacheTest, AConflictBelowAnotherDefinitionIsAWarning) {
  Write(low_ / "a.yaml", SpecText({"d"}));
  Write(low_ / "b.yaml", SpecText({"d"}));
  Write(high_ / "c.yaml", SpecText({"d"}, "FROM=high"));
  const auto cache = OpenManual();
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_EQ(EnvOf(*cache->Registry(), "v.com/c=d"), "FROM=high");
  ASSERT_THAT(cache->Registry()->conflicts(), SizeIs(1));
  EXPECT_FALSE(cache->Registry()->conflicts()[0].is_effective);
}

// BO-039
TEST_F(CdiCacheTest, ADirectoryMayComeLaterGoAndComeBack) {
  fs::remove(high_);
  Write(low_ / "a.yaml", SpecText({"a"}));
  const auto cache = OpenWatched();
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_THAT(cache->Directories()[1].problem, HasSubstr("does not exist"));
  Follower follower(*cache);
  for (int i = 0; i < 2; ++i) {
    fs::create_directory(high_);
    Write(high_ / "b.yaml", SpecText({"b"}));
    EXPECT_TRUE(follower.WaitForDevices({"v.com/c=a", "v.com/c=b"}));
    EXPECT_EQ(cache->Directories()[1].problem, "");
    EXPECT_EQ(cache->Directories()[1].files, 1u);
    fs::remove_all(high_);
    EXPECT_TRUE(follower.WaitForDevices({"v.com/c=a"}));
  }
}

// BO-040: the first directory cannot be read; that ends nothing.
TEST_F(CdiCacheTest, AnUnreadableDirectoryIsToldAndTheOthersAreRead) {
  Write(high_ / "b.yaml", SpecText({"b"}));
  fs::permissions(low_, fs::perms{0});
  EXPECT_TRUE(AsNobody([this] {
    const auto cache = OpenWatched();
    return NamesOf(*cache->Registry()) ==
               std::vector<std::string>{"v.com/c=b"} &&
           absl::IsFailedPrecondition(cache->Refresh()) &&
           cache->Directories()[0].problem.find(low_) != std::string::npos &&
           cache->Registry()->unread().size() == 1;
  }));
  fs::permissions(low_, fs::perms{0755});
}

TEST_F(CdiCacheTest, AnUnreadableFileIsToldByItsPath) {
  Write(low_ / "a.yaml", SpecText({"a"}));
  Write(low_ / "b.yaml", SpecText({"b"}));
  fs::permissions(low_ / "a.yaml", fs::perms{0});
  EXPECT_TRUE(AsNobody([this] {
    const auto cache = OpenManual();
    const auto registry = cache->Registry();
    return NamesOf(*registry) == std::vector<std::string>{"v.com/c=b"} &&
           registry->unread().size() == 1 &&
           registry->unread()[0].find(low_ / "a.yaml") != std::string::npos;
  }));
}

// A directory that we may read from now on is watched from now on.
TEST_F(CdiCacheTest, ADirectoryThatBecomesReadableIsFollowed) {
  Write(low_ / "a.yaml", SpecText({"a"}));
  fs::permissions(low_, fs::perms{0});
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(low_.c_str(), kNobody, kNobody), 0);
  }
  EXPECT_TRUE(AsNobody([this] {
    const auto cache = OpenWatched();
    if (!cache->Registry()->devices().empty()) return false;
    Follower follower(*cache);
    fs::permissions(low_, fs::perms{0755});
    // Not watched, so that it is seen by whoever asks.
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (cache->Registry()->devices().empty() ||
           !cache->Directories()[0].problem.empty()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    Write(low_ / "b.yaml", SpecText({"b"}));
    return follower.WaitForDevices({"v.com/c=a", "v.com/c=b"});
  }));
}

// BO-041, BO-042
TEST_F(CdiCacheTest, ABadFileDisablesItselfUntilItIsRepaired) {
  Write(low_ / "bad.yaml", "{");
  Write(low_ / "good.yaml", SpecText({"good"}));
  const auto cache = OpenWatched();
  EXPECT_THAT(cache->Refresh(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr(low_ / "bad.yaml")));
  EXPECT_THAT(NamesOf(*cache->Registry()), ElementsAre("v.com/c=good"));
  Follower follower(*cache);
  Write(low_ / "bad.yaml", SpecText({"bad"}));
  EXPECT_TRUE(follower.WaitForDevices({"v.com/c=bad", "v.com/c=good"}));
  EXPECT_THAT(cache->Refresh(), IsOk());
}

// BO-044
TEST_F(CdiCacheTest, FilesThatArriveCompleteAreSeen) {
  const fs::path store = folder_.path() / "store";
  fs::create_directory(store);
  for (const std::string name : {"moved", "linked", "pointed"}) {
    std::ofstream(store / (name + ".yaml")) << SpecText({name});
  }
  const auto cache = OpenWatched();
  Follower follower(*cache);
  fs::rename(store / "moved.yaml", high_ / "moved.yaml");
  EXPECT_TRUE(follower.WaitForDevices({"v.com/c=moved"}));
  fs::create_hard_link(store / "linked.yaml", high_ / "linked.yaml");
  EXPECT_TRUE(follower.WaitForDevices({"v.com/c=linked", "v.com/c=moved"}));
  fs::create_symlink(store / "pointed.yaml", high_ / "pointed.yaml");
  EXPECT_TRUE(follower.WaitForDevices(
      {"v.com/c=linked", "v.com/c=moved", "v.com/c=pointed"}));
}

// BO-045
TEST_F(CdiCacheTest, WithoutWatchesQueriesLook) {
  std::atomic<bool> limited = true;
  watcher::WatchOptions watch;
  watch.add_watch = [&limited](int inotify, const char* path,
                               std::uint32_t mask) {
    if (!limited) return inotify_add_watch(inotify, path, mask);
    errno = ENOSPC;
    return -1;
  };
  watch.first_retry = watch.max_retry = std::chrono::milliseconds(20);
  CdiCacheOptions options;
  options.directories = {low_};
  const auto cache = Open(options, watch);
  const auto wait_until = [](const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return condition();
  };
  EXPECT_THAT(cache->Directories()[0].watch_problem, Not(IsEmpty()));
  Write(low_ / "a.yaml", SpecText({"a"}));
  EXPECT_TRUE(
      wait_until([&] { return cache->Registry()->devices().size() == 1; }));
  limited = false;
  EXPECT_TRUE(wait_until(
      [&] { return cache->Directories()[0].watch_problem.empty(); }));
  Follower follower(*cache);
  Write(low_ / "b.yaml", SpecText({"b"}));
  EXPECT_TRUE(follower.WaitForDevices({"v.com/c=a", "v.com/c=b"}));
}

// What a link leads to is nobody's to watch: the safety rescan finds it.
TEST_F(CdiCacheTest, QueriesLookAgainInTime) {
  const fs::path target = folder_.path() / "target.yaml";
  Write(target, SpecText({"a"}));
  fs::create_symlink(target, low_ / "a.yaml");
  CdiCacheOptions options;
  options.directories = {low_};
  EXPECT_EQ(options.distrust, std::chrono::seconds(60));
  options.distrust = std::chrono::milliseconds(1);
  const auto cache = Open(options);
  EXPECT_NE(cache->Registry()->Find("v.com/c=a"), nullptr);
  Write(target, SpecText({"other"}));
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (cache->Registry()->Find("v.com/c=other") == nullptr &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_NE(cache->Registry()->Find("v.com/c=other"), nullptr);
}

// BO-049
TEST_F(CdiCacheTest, WithoutWatchingOnlyRefreshLooks) {
  const auto cache = OpenManual();
  Write(low_ / "a.yaml", SpecText({"a"}));
  EXPECT_THAT(cache->Registry()->devices(), IsEmpty());
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_THAT(NamesOf(*cache->Registry()), ElementsAre("v.com/c=a"));
}

TEST_F(CdiCacheTest, SnapshotsStayAsTheyWere) {
  Write(low_ / "a.yaml", SpecText({"a"}));
  auto cache = OpenManual();
  const auto before = cache->Registry();
  fs::remove(low_ / "a.yaml");
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_THAT(cache->Registry()->devices(), IsEmpty());
  cache.reset();
  EXPECT_EQ(EnvOf(*before, "v.com/c=a"), "A=1");
}

// What means the same is nothing to tell.
TEST_F(CdiCacheTest, WhatDoesNotChangeIsNotPublishedAgain) {
  Write(low_ / "a.yaml", SpecText({"a"}));
  const auto cache = OpenManual();
  const auto before = cache->Registry();
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_EQ(cache->Registry(), before);
  Write(low_ / "a.yaml", "# a comment\n" + SpecText({"a"}));
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_EQ(cache->Registry(), before);
}

TEST_F(CdiCacheTest, ADirectoryThatIsListedTwiceConflictsWithNothing) {
  Write(low_ / "a.yaml", SpecText({"a"}));
  CdiCacheOptions options;
  options.directories = {low_, low_.string() + "/"};
  const auto cache = Open(options);
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_THAT(NamesOf(*cache->Registry()), ElementsAre("v.com/c=a"));
  EXPECT_EQ(cache->Registry()->devices()[0].file->priority, 1);
}

TEST_F(CdiCacheTest, WhatIsTooMuchIsLeftOutAndTold) {
  for (const std::string name : {"a", "b", "c"}) {
    Write(low_ / (name + ".yaml"), SpecText({name}));
  }
  CdiCacheOptions options;
  options.directories = {low_};
  options.max_files = 2;
  auto cache = Open(options);
  EXPECT_THAT(NamesOf(*cache->Registry()),
              ElementsAre("v.com/c=a", "v.com/c=b"));
  EXPECT_THAT(cache->Registry()->unread(),
              ElementsAre(HasSubstr("more than 2 spec files")));
  options.max_files = 10;
  options.max_total_bytes = SpecText({"a"}).size() * 2;
  cache = Open(options);
  EXPECT_THAT(NamesOf(*cache->Registry()),
              ElementsAre("v.com/c=a", "v.com/c=b"));
  EXPECT_THAT(cache->Registry()->unread(), ElementsAre(HasSubstr("c.yaml")));
  // What is small enough is read again once there is room.
  fs::remove(low_ / "a.yaml");
  EXPECT_THAT(cache->Refresh(), IsOk());
  EXPECT_THAT(NamesOf(*cache->Registry()),
              ElementsAre("v.com/c=b", "v.com/c=c"));
}

TEST_F(CdiCacheTest, NobodyIsCalledAfterUnsubscribe) {
  const auto cache = OpenWatched();
  std::atomic<int> calls = 0;
  cache->Subscribe([&] { ++calls; });
  Write(low_ / "a.yaml", SpecText({"a"}));
  Follower follower(*cache);  // takes its place
  const int before = calls;
  Write(low_ / "b.yaml", SpecText({"b"}));
  EXPECT_TRUE(follower.WaitForDevices({"v.com/c=a", "v.com/c=b"}));
  EXPECT_EQ(calls, before);
}

TEST_F(CdiCacheTest, ReadersAndWritersDoNotDisturbEachOther) {
  const auto cache = OpenWatched();
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      while (!done) {
        // Of the two only one at a time is there, or both.
        const auto registry = cache->Registry();
        for (const CdiRegistryDevice& device : registry->devices()) {
          EXPECT_NE(registry->Find(device.name), nullptr);
        }
        if (i == 0) (void)cache->Refresh().ok();
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    Write(low_ / "a.yaml", SpecText({"d" + std::to_string(i)}));
  }
  Follower follower(*cache);
  EXPECT_TRUE(follower.WaitForDevices({"v.com/c=d99"}));
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace devmgr::cdistore
