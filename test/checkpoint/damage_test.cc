// SPDX-License-Identifier: Apache-2.0
//
// Small stores with every bit flipped, cut off at every length, with each file
// removed and each replaced by another. Opening refuses and names what is
// damaged, or leads to a state that once was and says so; leniently it opens
// all the same. At the usual scale every so manieth case is tried, beginning
// at random.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <random>

#include "checkpoint/store_support.h"
#include "common/status.h"
#include "state/record_builders.h"
#include "support/test_scale.h"

namespace devmgr::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Files = std::map<std::string, std::string>;

/// In memory, where there is such a file system: thousands of stores are made.
class FastFolder {
 public:
  FastFolder() {
    for (std::string name : {"/dev/shm/devmgr-XXXXXX", "/tmp/devmgr-XXXXXX"}) {
      if (::mkdtemp(name.data()) == nullptr) continue;
      path_ = name;
      return;
    }
    std::abort();
  }
  ~FastFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  FastFolder(const FastFolder&) = delete;
  FastFolder& operator=(const FastFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Files FilesOf(const fs::path& directory) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    files[fs::relative(entry.path(), directory).string()] =
        ReadFile(entry.path());
  }
  return files;
}

void MakeFiles(const fs::path& directory, const Files& files) {
  fs::remove_all(directory);
  fs::create_directories(directory / "db");
  for (const auto& [name, bytes] : files) WriteFile(directory / name, bytes);
}

/// A pod that was prepared and released, and one that is Ready.
std::vector<state::Batch> Ledger() {
  std::vector<state::Batch> batches = state::PreparedPodBatches();
  for (const state::Batch& batch : state::ReleasedPodBatches()) {
    batches.push_back(batch);
  }
  for (state::Batch batch : state::PreparedPodBatches()) {
    batch.seq += 7;
    batches.push_back(batch);
  }
  return batches;
}

struct Image {
  std::string name;
  Files files;
  std::uint64_t seq = 0;
  bool closed = false;
};

class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    state::State state;
    states_.push_back(state);
    for (state::Batch& batch : batches_) {
      EXPECT_TRUE(state::ApplyNew(state, batch).ok());
      states_.push_back(state);
    }
  }

  /// A store that has only a log, and one that has tables as well; each killed
  /// and closed.
  std::vector<Image> Images() {
    std::vector<Image> images;
    auto store = MustOpen(Dir());
    for (const std::size_t more : {6u, 5u}) {
      for (std::size_t i = 0; i < more; ++i) {
        EXPECT_TRUE(store->Append({&batches_[written_++], 1}).ok());
      }
      const std::string kind = images.empty() ? "log" : "tables";
      images.push_back({kind + ", killed", FilesOf(Dir()), written_, false});
      store.reset();
      images.push_back({kind + ", closed", FilesOf(Dir()), written_, true});
      store = MustOpen(Dir());
    }
    store.reset();
    return images;
  }

  fs::path Dir() const { return folder_.path() / "state"; }

  absl::StatusOr<std::unique_ptr<LedgerStore>> Open(Recovery recovery) {
    RocksDbStoreOptions options;
    options.directory = Dir();
    options.recovery = recovery;
    // In one step and in two, in turns.
    options.pods_first = cases_ % 2 == 0;
    return OpenRocksDbStore(options);
  }

  /// Opens a damaged image in both ways. `file`: what was damaged.
  void Check(const Image& image, const Files& damaged,
             const std::string& file) {
    ++cases_;
    MakeFiles(Dir(), damaged);
    const absl::Status status = CheckStrict(image, file);
    if (status.ok()) return;
    ++refused_;
    if (refused_ % 8 == 1) CheckNothingChanged(damaged);
    // The slow half, so not always where all cases are tried.
    if (TestScale() < 10 || refused_ % 8 == 1) CheckLenient(damaged, status);
  }

  /// What is gone has no name of its own any more, and what ends at a
  /// record's end is known by what is missing only.
  static bool Blames(const std::string& message, const std::string& file) {
    return message.find(file) != std::string::npos ||
           message.find("but has held batch") != std::string::npos ||
           (file.ends_with(".log") &&
            message.find("its '*.log' file is missing") != std::string::npos);
  }

  absl::Status CheckStrict(const Image& image, const std::string& file) {
    auto store = Open(Recovery::kStrict);
    if (!store.ok()) {
      const std::string message = MessageOf(store.status());
      EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << message;
      EXPECT_TRUE(Blames(message, fs::path(file).filename().string()))
          << message;
      return store.status();
    }
    const auto state = (*store)->Load();
    if (!state.ok()) {
      ADD_FAILURE() << state.status();
      return absl::OkStatus();
    }
    EXPECT_LE(state->seq, image.seq);
    EXPECT_TRUE(state->seq < states_.size() &&
                *state == states_.at(state->seq));
    const RecoveryReport report = (*store)->Recovered();
    EXPECT_EQ(report.last_batch, state->seq);
    if (state->seq < image.seq) {
      ++shorter_;
      EXPECT_FALSE(image.closed) << "batches vanished";
      EXPECT_FALSE(report.closed_cleanly);
    }
    const auto history = (*store)->History(0);
    EXPECT_TRUE(history.ok()) << history.status();
    EXPECT_EQ(history->size(), state->seq);
    return absl::OkStatus();
  }

  void CheckNothingChanged(Files damaged) {
    Files now = FilesOf(Dir());
    // Tells who holds the directory.
    damaged.erase("lock");
    now.erase("lock");
    EXPECT_EQ(now, damaged);
    const auto stopped = ReadStoppedStore(Dir());
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kDataLoss)
        << stopped.status();
  }

  void CheckLenient(const Files& damaged, const absl::Status& refused) {
    auto store = Open(Recovery::kLenient);
    if (!store.ok()) {
      ++lost_;
      EXPECT_THAT(MessageOf(store.status()),
                  HasSubstr("nothing of it can be read"));
      return;
    }
    const auto state = (*store)->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    ++recovered_;
    EXPECT_THAT(state::CheckInvariants(*state), IsEmpty());
    const RecoveryReport report = (*store)->Recovered();
    EXPECT_FALSE(report.closed_cleanly);
    EXPECT_THAT(MessageOf(refused), HasSubstr(report.damage));
    EXPECT_EQ(report.last_batch, state->seq);
    // The damaged database is kept as it was.
    for (const auto& [name, bytes] : damaged) {
      const fs::path path(name);
      if (path.parent_path() != "db") continue;
      EXPECT_EQ(ReadFile(report.kept / path.filename()), bytes) << name;
    }
    const auto history = (*store)->History(0);
    ASSERT_TRUE(history.ok()) << history.status();
    ASSERT_FALSE(history->empty());
    EXPECT_EQ(history->back().seq, state->seq);
    EXPECT_EQ(history->back().decision.kind, state::DecisionKind::kRecovered);
    // All that was skipped is told, so without that it is all there.
    state::State expected = states_.at(state->seq - 1);
    expected.seq = state->seq;
    const bool complete = *state == expected;
    EXPECT_TRUE(complete || report.skipped > 0) << report.damage;
    if (complete) ++complete_;
    ExpectGoesOn(std::move(*store), *state);
  }

  /// The recovered store takes batches and opens without any complaint.
  void ExpectGoesOn(std::unique_ptr<LedgerStore> store,
                    const state::State& state) {
    const state::Batch next =
        state::MakeBatch(state.seq + 1, state::DecisionKind::kIdentity,
                         {state::Put(state::MakeIdentity("z", "pod-z"))});
    EXPECT_TRUE(store->Append({&next, 1}).ok());
    store.reset();
    const auto again = Open(Recovery::kStrict);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE((*again)->Recovered().closed_cleanly);
    EXPECT_EQ((*again)->Load()->seq, next.seq);
  }

  /// Tries every `stride`th of `count` cases; all of them at large scale.
  void Sweep(std::size_t count, std::size_t usual_stride,
             const std::function<void(std::size_t)>& try_case) {
    const auto scale = static_cast<std::size_t>(TestScale());
    const std::size_t stride = std::max<std::size_t>(usual_stride / scale, 1);
    for (std::size_t i = random_() % stride; i < count; i += stride) {
      try_case(i);
      if (HasFailure()) return;
    }
  }

  void TearDown() override {
    fmt::print(
        "seed {}: {} cases: {} refused, {} opened as of an earlier batch, all "
        "others as they were; leniently {} in full, {} in part, {} not\n",
        seed_, cases_, refused_, shorter_, complete_, recovered_ - complete_,
        lost_);
    EXPECT_GT(refused_, 0);
  }

  const FastFolder folder_;
  const std::uint32_t seed_ = TestSeed(std::random_device{}());
  std::mt19937 random_{seed_};
  std::vector<state::Batch> batches_ = Ledger();
  std::vector<state::State> states_;  ///< After each batch.
  std::size_t written_ = 0;
  int cases_ = 0, refused_ = 0, shorter_ = 0, recovered_ = 0, complete_ = 0,
      lost_ = 0;
};

TEST_F(DamageTest, FlippedBits) {
  for (const Image& image : Images()) {
    std::size_t bytes = 0;
    for (const auto& [file, contents] : image.files) {
      bytes += contents.size();
      Sweep(contents.size() * 8, 1'999, [&, file = file](std::size_t bit) {
        SCOPED_TRACE(fmt::format("seed {}: {}: bit {} of byte {} of {}", seed_,
                                 image.name, bit % 8, bit / 8, file));
        Files damaged = image.files;
        char& byte = damaged[file][bit / 8];
        byte = static_cast<char>(byte ^ (1 << bit % 8));
        Check(image, damaged, file);
      });
    }
    fmt::print("{}: {} bytes in {} files\n", image.name, bytes,
               image.files.size());
  }
}

TEST_F(DamageTest, FilesCutOff) {
  for (const Image& image : Images()) {
    for (const auto& [file, contents] : image.files) {
      Sweep(contents.size(), 251, [&, file = file](std::size_t size) {
        SCOPED_TRACE(fmt::format("seed {}: {}: {} cut off at {}", seed_,
                                 image.name, file, size));
        Files damaged = image.files;
        damaged[file].resize(size);
        Check(image, damaged, file);
      });
    }
  }
}

TEST_F(DamageTest, FilesRemoved) {
  for (const Image& image : Images()) {
    for (const auto& [file, contents] : image.files) {
      SCOPED_TRACE(fmt::format("{}: {} removed", image.name, file));
      Files damaged = image.files;
      damaged.erase(file);
      Check(image, damaged, file);
    }
  }
}

/// By another of the same store, and by the one of another time.
TEST_F(DamageTest, FilesReplaced) {
  const std::vector<Image> images = Images();
  for (const Image& image : images) {
    for (const auto& [file, contents] : image.files) {
      for (const auto& [other, bytes] : image.files) {
        if (bytes == contents) continue;
        if (TestScale() == 1 && random_() % 4 != 0) continue;
        SCOPED_TRACE(
            fmt::format("{}: {} replaced by {}", image.name, file, other));
        Files damaged = image.files;
        damaged[file] = bytes;
        Check(image, damaged, file);
      }
      for (const Image& other : images) {
        if (!other.files.contains(file)) continue;
        SCOPED_TRACE(fmt::format("{}: {} replaced by that of '{}'", image.name,
                                 file, other.name));
        Files damaged = image.files;
        damaged[file] = other.files.at(file);
        if (damaged != image.files) Check(image, damaged, file);
      }
    }
  }
}

}  // namespace
}  // namespace devmgr::checkpoint
