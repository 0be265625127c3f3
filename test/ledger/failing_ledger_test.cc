// SPDX-License-Identifier: Apache-2.0
//
// The ledger thread over the RocksDB store, and a disk that fails at any call.
#include <dirent.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <memory>
#include <mutex>

#include "checkpoint/rocksdb_config.h"
#include "checkpoint/rocksdb_store.h"
#include "checkpoint/simulated_disk.h"
#include "checkpoint/store_support.h"
#include "common/status.h"
#include "ledger/ledger.h"
#include "manager/disk_plan.h"
#include "state/record_builders.h"
#include "support/mailbox.h"
#include "support/temp_folder.h"
#include "support/test_scale.h"

namespace devmgr::ledger {
namespace {

using checkpoint::DiskFault;
using checkpoint::DiskOperation;
using checkpoint::SimulatedDisk;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Kind = DiskOperation::Kind;

constexpr DiskPlan kLedgerPlans[] = {
    {0, DiskFault::kError, false},       {0, DiskFault::kError, true},
    {0, DiskFault::kNoSpace, false},     {0, DiskFault::kNoSpace, true},
    {0, DiskFault::kShort, false},       {0, DiskFault::kShort, true},
    {0, DiskFault::kShortNoSpace, true},
};

/// A ledger in use on a disk, by one caller who waits for each answer.
class LedgerOnDisk {
 public:
  explicit LedgerOnDisk(DiskPlan plan) : plan_(plan) {
    disk_.SetHook([this](const DiskOperation& operation) {
      std::lock_guard lock(mutex_);
      calls_ = operation.number;
      return plan_.FaultOf(operation.number);
    });
  }
  ~LedgerOnDisk() { disk_.SetHook(nullptr); }

  /// Opens, perhaps only once the disk is healed.
  void Open() {
    absl::Status status = TryOpen();
    if (!status.ok()) {
      ExpectClear(status);
      HealIfForGood();
      status = TryOpen();
    }
    ASSERT_TRUE(status.ok()) << status;
  }

  void Close() { ledger_ = nullptr; }

  /// A decision that holds in the end; what the caller is told is checked.
  void Decide() {
    absl::Status status = TryDecide();
    if (!status.ok()) {
      ExpectClear(status);
      if (plan_.for_good) {
        // Not opened again, and says so, until the disk is healed.
        const absl::Status again = TryDecide();
        if (!again.ok()) ExpectClear(again);
        HealIfForGood();
      }
      status = TryDecide();
    }
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(ledger_->health().ok()) << ledger_->health();
  }

  /// Decides for as many callers at once as told, while the disk is held up
  /// in the sync of the first one.
  void DecideAtOnce(int count) {
    std::vector<std::future<absl::Status>> answers;
    std::promise<void> syncing;
    std::promise<void> all_queued;
    std::once_flag once;
    disk_.SetHook([&](const DiskOperation& operation) {
      if (operation.kind == Kind::kSync) {
        std::call_once(once, [&] {
          syncing.set_value();
          all_queued.get_future().wait();
        });
      }
      return DiskFault::kNone;
    });
    answers.push_back(Submit());
    syncing.get_future().wait();
    for (int i = 1; i < count; ++i) answers.push_back(Submit());
    all_queued.set_value();
    for (auto& answer : answers) EXPECT_TRUE(answer.get().ok());
    disk_.SetHook(nullptr);  // It refers to what ends here.
  }

  /// What is on the disk must be what was published, no less and no more.
  void CompareWithDisk() const {
    const auto stored = checkpoint::ReadStoppedStore(Directory());
    ASSERT_TRUE(stored.ok()) << stored.status();
    EXPECT_TRUE(stored->state == published_);
    EXPECT_EQ(checkpoint::Encoded(stored->history),
              checkpoint::Encoded(batches_));
  }

  std::uint64_t calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  const SimulatedDisk& disk() const { return disk_; }

 private:
  std::filesystem::path Directory() const { return folder_.path() / "state"; }

  absl::Status TryOpen() {
    rocksdb::Options database = checkpoint::LedgerOptions(disk_.env());
    database.write_buffer_size = 64 * 1024;  // The least there can be.
    DEVMGR_ASSIGN_OR_RETURN(auto store, checkpoint::OpenRocksDbStoreOn(
                                            {Directory(), {}}, database));
    DEVMGR_ASSIGN_OR_RETURN(state::State state, store->Load());
    EXPECT_TRUE(state == published_);
    ledger_ = std::make_unique<Ledger>(
        std::move(store), &published_, [] { return 1'000; },
        [this](const state::Batch& batch) {
          EXPECT_TRUE(state::Apply(published_, batch).ok());
          batches_.push_back(batch);
        });
    return absl::OkStatus();
  }

  std::future<absl::Status> Submit() {
    const int serial = ++serial_;
    auto answer = std::make_shared<std::promise<absl::Status>>();
    ledger_->Submit(
        [serial](const state::State& state) -> absl::StatusOr<state::Decision> {
          return Decision(state, serial);
        },
        [answer](const absl::Status& status) { answer->set_value(status); });
    return answer->get_future();
  }
  absl::Status TryDecide() {
    std::future<absl::Status> answer = Submit();
    if (answer.wait_for(kPatience) == std::future_status::timeout) {
      ADD_FAILURE() << "no answer";
      std::abort();
    }
    const absl::Status status = answer.get();
    // Nobody decides on what is not published.
    if (status.ok()) {
      EXPECT_EQ(published_.seq, batches_.size());
    }
    return status;
  }

  static state::Decision Decision(const state::State& state, int serial) {
    const PodUid uid{fmt::format("pod-{}", serial % 7)};
    state::PodRecord pod =
        state::MakePod(uid, uid.value, state::PodPhase::kWaiting);
    pod.first_seen_seq = state.seq + 1;
    pod.message = fmt::format("serial {} ", serial) + std::string(8'000, 'x');
    state::Decision decision;
    decision.kind = state::DecisionKind::kSeen;
    decision.changes = {state::Put(pod)};
    return decision;
  }

  /// The error must say what failed.
  void ExpectClear(const absl::Status& status) const {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(MessageOf(status), HasSubstr(folder_.path().string()));
    // Of one file RocksDB does not say how it failed.
    EXPECT_THAT(MessageOf(status),
                AnyOf(HasSubstr(ErrnoText(EIO)), HasSubstr(ErrnoText(ENOSPC)),
                      HasSubstr("CURRENT could not be opened")));
  }

  void HealIfForGood() {
    std::lock_guard lock(mutex_);
    if (plan_.for_good) plan_.call = 0;
  }

  const TempFolder folder_;
  SimulatedDisk disk_{folder_.path()};
  /// Changed on the ledger thread, before the answer that is waited for.
  state::State published_;
  std::vector<state::Batch> batches_;
  int serial_ = 0;

  mutable std::mutex mutex_;
  DiskPlan plan_;
  std::uint64_t calls_ = 0;

  std::unique_ptr<Ledger> ledger_;
};

int OpenDescriptors() {
  int count = 0;
  DIR* const directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

/// The whole life of a store. Returns how many calls it took.
std::uint64_t Live(DiskPlan plan) {
  LedgerOnDisk ledger(plan);
  ledger.Open();
  // In the long form enough for tables to be merged.
  const int decisions = TestScale() > 1 ? 24 : 9;
  for (int i = 0; i < decisions; ++i) ledger.Decide();
  ledger.Close();
  ledger.Open();
  for (int i = 0; i < 3; ++i) ledger.Decide();
  ledger.Close();
  ledger.CompareWithDisk();
  return ledger.calls();
}

TEST(FailingLedgerTest, GetsOverAnErrorAtAnyCall) {
  const std::uint64_t calls = Live({});
  const int descriptors = OpenDescriptors();
  const std::uint64_t stride = std::max(1, 12 / TestScale());
  int lives = 0;
  for (std::uint64_t call = 1; call <= calls; ++call) {
    for (std::size_t i = 0; i < std::size(kLedgerPlans); ++i) {
      if ((call + i) % stride != 0) continue;
      DiskPlan plan = kLedgerPlans[i];
      plan.call = call;
      SCOPED_TRACE(fmt::format("plan {}, from call {} of {}", i, call, calls));
      Live(plan);
      ++lives;
      ASSERT_EQ(OpenDescriptors(), descriptors);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  if (TestScale() > 1) fmt::print("{} calls, {} lives\n", calls, lives);
}

TEST(LedgerCostTest, ADecisionIsAnsweredAfterOneSync) {
  LedgerOnDisk ledger({});
  ledger.Open();
  ledger.Decide();
  const std::uint64_t before = ledger.disk().Count(Kind::kSync, "");
  for (int i = 0; i < 3; ++i) ledger.Decide();
  EXPECT_EQ(ledger.disk().Count(Kind::kSync, "") - before, 3u);
}

TEST(LedgerCostTest, DecisionsThatQueueUpShareASync) {
  LedgerOnDisk ledger({});
  ledger.Open();
  ledger.Decide();
  const std::uint64_t before = ledger.disk().Count(Kind::kSync, ".log");
  ledger.DecideAtOnce(32);
  EXPECT_LE(ledger.disk().Count(Kind::kSync, ".log") - before, 4u);
  ledger.Close();
  ledger.CompareWithDisk();
}

}  // namespace
}  // namespace devmgr::ledger
