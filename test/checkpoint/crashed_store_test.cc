// SPDX-License-Identifier: Apache-2.0
//
// Stores whose process was killed, and stores of stopped processes as a reader
// sees them.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "checkpoint/keys.h"
#include "checkpoint/store_support.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/random_lives.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// These tests run children by re-executing this program.
class CrashedStoreTest : public ::testing::Test {
 protected:
  CrashedStoreTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  fs::path Dir() const { return folder_.path() / "state"; }
  fs::path Answered() const { return folder_.path() / "answered"; }

  /// Writes until killed from within, after `delay`. The number of the last
  /// batch that was answered is in `Answered`.
  [[noreturn]] void WriteUntilKilled(std::chrono::microseconds delay) const {
    const auto store = MustOpen(Dir(), {.batches = 20});
    std::uint64_t seq = store->Load()->seq;
    std::thread([delay] {
      std::this_thread::sleep_for(delay);  // The moment of the crash.
      ::kill(::getpid(), SIGKILL);
    }).detach();
    for (;;) {
      const state::Batch batch = WorkloadBatch(++seq);
      if (!store->Append({&batch, 1}).ok()) ::_exit(1);
      // A rename, so that the kill leaves one number or the other.
      WriteFile(folder_.path() / "answered.new", std::to_string(seq));
      fs::rename(folder_.path() / "answered.new", Answered());
    }
  }

  std::uint64_t LastAnswered() const {
    const std::string text = ReadFile(Answered());
    return text.empty() ? 0 : std::stoull(text);
  }

  const SharedFolder folder_;
};

TEST_F(CrashedStoreTest, HoldsWhatWasAnsweredWheneverItIsKilled) {
  std::uint64_t last_seq = 0;
  LiveEach({20'261'121, 8}, [&](Luck& luck) {
    const std::chrono::microseconds delay(luck.Below(30'000));
    SCOPED_TRACE(fmt::format("killed after {} us", delay.count()));
    ASSERT_EXIT(WriteUntilKilled(delay), ::testing::KilledBySignal(SIGKILL),
                "");
    if (folder_.is_child()) return;
    const auto before = TreeOf(Dir());
    const auto read = ReadStoppedStore(Dir());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(TreeOf(Dir()), before);
    const std::uint64_t seq = read->state.seq;
    EXPECT_GE(seq, LastAnswered());
    EXPECT_LE(seq, std::max(LastAnswered(), last_seq) + 1);
    last_seq = seq;
    EXPECT_TRUE(read->state == WorkloadState(seq));
    EXPECT_LE(read->history.size(), 20u);
    // The lock went with its holder, and the owner sees what the reader saw.
    const auto store = MustOpen(Dir());
    EXPECT_TRUE(*store->Load() == read->state);
    EXPECT_EQ(Encoded(*store->History(0)), Encoded(read->history));
  });
}

TEST_F(CrashedStoreTest, IsReadWithoutChangingAByteAfterACleanStop) {
  const auto batches = state::PreparedPodBatches();
  ASSERT_TRUE(MustOpen(Dir())->Append(batches).ok());
  const auto before = TreeOf(Dir());
  const auto read = ReadStoppedStore(Dir());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->state == Project(batches));
  EXPECT_EQ(Encoded(read->history), Encoded(batches));
  EXPECT_EQ(TreeOf(Dir()), before);
}

TEST_F(CrashedStoreTest, IsReadFromTablesToo) {
  std::uint64_t seq = 0;
  for (int restarts = 0; restarts < 6; ++restarts) {
    const auto store = MustOpen(Dir());
    for (int i = 0; i < 20; ++i) {
      const state::Batch batch = WorkloadBatch(++seq);
      ASSERT_TRUE(store->Append({&batch, 1}).ok());
    }
  }
  const auto before = TreeOf(Dir());
  const auto read = ReadStoppedStore(Dir());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->state == WorkloadState(seq));
  EXPECT_EQ(TreeOf(Dir()), before);
}

TEST_F(CrashedStoreTest, IsNotFoundWhereThereIsNone) {
  EXPECT_EQ(ReadStoppedStore(Dir()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(fs::exists(Dir()));
  fs::create_directory(Dir());
  WriteFile(Dir() / "other", "file");
  const auto before = TreeOf(Dir());
  const auto read = ReadStoppedStore(Dir());
  EXPECT_EQ(read.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(read.status()), HasSubstr("there is no ledger in"));
  EXPECT_EQ(TreeOf(Dir()), before);
  EXPECT_EQ(ReadStoppedStore(Dir() / "other").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CrashedStoreTest, IsReadWithoutItsLockFile) {
  ASSERT_TRUE(MustOpen(Dir())->Append(state::PreparedPodBatches()).ok());
  fs::remove(Dir() / "lock");
  const auto before = TreeOf(Dir());
  EXPECT_TRUE(ReadStoppedStore(Dir()).ok());
  EXPECT_EQ(TreeOf(Dir()), before);
}

/// Becomes a user who may read everything in the folder and write nothing.
void BecomeReader() {
  if (::geteuid() != 0) return;
  constexpr uid_t kNobody = 65'534;
  if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 ||
      ::setuid(kNobody) != 0) {
    ::_exit(3);
  }
}

[[noreturn]] void ExitWith(const absl::Status& status) {
  if (!status.ok()) fmt::print(stderr, "{}\n", MessageOf(status));
  ::_exit(static_cast<int>(status.code()));
}

void MakeReadOnly(const fs::path& directory) {
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    fs::permissions(entry.path(),
                    fs::perms{entry.is_directory() ? 0555u : 0444u});
  }
  fs::permissions(directory, fs::perms{0555});
  fs::permissions(directory.parent_path(), fs::perms{0755});
}

TEST_F(CrashedStoreTest, IsReadByAUserWhoMayOnlyRead) {
  if (!folder_.is_child()) {
    MustOpen(Dir()).reset();
    ASSERT_TRUE(MustOpen(Dir())->Append(state::PreparedPodBatches()).ok());
    MakeReadOnly(Dir());
  }
  const auto before = TreeOf(Dir());
  const auto as_reader = [&] {
    BecomeReader();
    ExitWith(ReadStoppedStore(Dir()).status());
  };
  EXPECT_EXIT(as_reader(), ::testing::ExitedWithCode(0), "");
  const auto as_writer = [&] {
    BecomeReader();
    ExitWith(OpenRocksDbStore({Dir(), {}}).status());
  };
  const int denied = static_cast<int>(absl::StatusCode::kPermissionDenied);
  EXPECT_EXIT(as_writer(), ::testing::ExitedWithCode(denied),
              "cannot open '.*/lock': Permission denied");
  EXPECT_EQ(TreeOf(Dir()), before);
}

TEST_F(CrashedStoreTest, IsClosedToAUserWhoMayNotEvenRead) {
  if (!folder_.is_child()) {
    MustOpen(Dir()).reset();
    fs::permissions(folder_.path(), fs::perms{0755});
    fs::permissions(Dir(), fs::perms::none);
  }
  const auto as_reader = [&] {
    BecomeReader();
    ExitWith(ReadStoppedStore(Dir()).status());
  };
  const int denied = static_cast<int>(absl::StatusCode::kPermissionDenied);
  EXPECT_EXIT(as_reader(), ::testing::ExitedWithCode(denied), "/state/lock'");
}

TEST_F(CrashedStoreTest, IsNotBegunWhereWeMayNotWrite) {
  if (!folder_.is_child()) fs::permissions(folder_.path(), fs::perms{0555});
  const auto as_writer = [&] {
    BecomeReader();
    ExitWith(OpenRocksDbStore({Dir(), {}}).status());
  };
  const int denied = static_cast<int>(absl::StatusCode::kPermissionDenied);
  EXPECT_EXIT(as_writer(), ::testing::ExitedWithCode(denied),
              "cannot make directory '.*/state': Permission denied");
}

}  // namespace
}  // namespace devmgr::checkpoint
