// SPDX-License-Identifier: Apache-2.0
//
// A decision from the request until it is on disk, published and the caller
// knows, beside its limit: one append with fdatasync on the same file system
// and two hand-overs between threads. All of them take turns, because a disk
// has moods. Then 32 decisions at once, with the syncs counted.
#include <devmgr/device_manager.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "bench/support.h"
#include "checkpoint/ledger_store.h"
#include "ledger/ledger.h"
#include "ledger/resolve_table.h"
#include "support/temp_folder.h"

namespace {
std::atomic<int> syncs = 0;
}  // namespace

/// Stands in for the C library's, in the whole process: counts.
extern "C" int fdatasync(int fd) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
extern "C" int fsync(int fd) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace devmgr::bench {
namespace {

/// When the disk is slow, fewer rounds have to do.
constexpr std::chrono::seconds kPatience{20};

/// A ledger with its store and what it publishes to.
class Decider {
 public:
  Decider(const std::filesystem::path& state_dir, int stored)
      : stored_(stored) {
    FillLedger(state_dir, stored, 1);
    auto store = Must(checkpoint::OpenRocksDbStore({state_dir, {}}));
    stored_state_ = Must(store->Load());
    for (const auto& [uid, pod] : stored_state_.pods) table_.Put(*pod, kBoot);
    ledger_ = std::make_unique<ledger::Ledger>(
        std::move(store), &stored_state_, [] { return std::int64_t{0}; },
        [this](const state::Batch& batch) { Publish(batch); });
  }

  /// Decides anew about one of the pods and its claim, and resolves the pod.
  void Decide() {
    const int pod = number_++ % stored_;
    std::promise<absl::Status> done;
    ledger_->Submit(
        [&](const state::State&) {
          state::Decision decision;
          decision.kind = state::DecisionKind::kPrepareResult;
          decision.changes = {PreparedClaim(pod, 0), ReadyPod(pod, 1)};
          return absl::StatusOr<state::Decision>(std::move(decision));
        },
        [&](const absl::Status& status) { done.set_value(status); });
    Must(done.get_future().get());
    if (!table_.Find(UidOfPod(pod), "main").ok()) Fail("not visible");
  }

 private:
  void Publish(const state::Batch& batch) {
    for (const state::Change& change : batch.decision.changes) {
      if (const auto* put = std::get_if<state::PutPod>(&change)) {
        table_.Put(*put->pod, kBoot);
      }
    }
  }

  const int stored_;
  state::State stored_state_;
  int number_ = 0;
  ledger::ResolveTable table_;
  std::unique_ptr<ledger::Ledger> ledger_;
};

/// The bare parts of a decision, measured in turns with it.
struct Limit {
  explicit Limit(const std::filesystem::path& folder) : log(folder) {}
  void Measure() {
    appends.Add(Microseconds([&] { log.AppendAndSync(); }));
    hand_overs.Add(Microseconds([&] { helper.Run([] {}); }));
    both.Add(Microseconds([&] { helper.Run([&] { log.AppendAndSync(); }); }));
  }

  RawLog log;
  Helper helper;
  Samples appends;
  Samples hand_overs;
  Samples both;
};

void OneDecision(Report& report, int stored) {
  const TempFolder folder;
  Decider decider(folder.path() / "state", stored);
  Limit limit(folder.path());
  Samples decisions;
  Rounds rounds(report.brief() ? 100 : 3'000, kPatience);
  while (rounds.Next()) {
    limit.Measure();
    decisions.Add(Microseconds([&] { decider.Decide(); }));
  }
  report.Add({fmt::format("decision until visible, {} stored", stored), "us",
              decisions.Median(), limit.both.Median(),
              "append + fdatasync + 2 hand-overs",
              2 * limit.appends.Median() + limit.hand_overs.Median()});
}

Pod WaitingPod(int number) {
  Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = fmt::format("waits-{}", number);
  pod.metadata.uid = UidOfPod(1'000'000 + number).value;
  pod.spec.containers.resize(1);
  pod.spec.containers[0].name = "main";
  pod.spec.containers[0].resources.claims = {{"gpu", ""}};
  pod.spec.resource_claims = {{"gpu", "nowhere", std::nullopt}};
  return pod;
}

/// Through the public API: verdicts that have to be on disk.
class Admissions {
 public:
  explicit Admissions(const std::filesystem::path& state_dir) {
    FillLedger(state_dir, 1'000, 1);
    DeviceManagerOptions options;
    options.state_dir = state_dir;
    Host host;
    host.boot_id = [] { return std::string(kBoot); };
    manager_ = Must(DeviceManager::Open(options, host));
  }

  /// Admits `count` pods at once and waits for all verdicts.
  void Admit(int count) {
    std::atomic<int> left = count;
    std::promise<void> done;
    for (int i = 0; i < count; ++i) {
      manager_->StartAdmitPod(WaitingPod(i), [&](const auto& verdict) {
        Must(verdict.status());
        if (--left == 0) done.set_value();
      });
    }
    done.get_future().get();
  }

  void Forget(int count) {
    for (int i = 0; i < count; ++i) {
      Must(manager_->ReleasePod({WaitingPod(i).metadata.uid}));
    }
  }

 private:
  std::unique_ptr<DeviceManager> manager_;
};

void ManyAtOnce(Report& report) {
  constexpr int kMany = 32;
  const TempFolder folder;
  Admissions admissions(folder.path() / "state");
  Limit limit(folder.path());
  Samples one;
  Samples many;
  Samples counts;
  Rounds rounds(report.brief() ? 10 : 200, kPatience);
  while (rounds.Next()) {
    limit.Measure();
    one.Add(Microseconds([&] { admissions.Admit(1); }));
    admissions.Forget(1);
    const int before = syncs;
    many.Add(Microseconds([&] { admissions.Admit(kMany); }));
    counts.Add(syncs - before);
    admissions.Forget(kMany);
  }
  report.Add({"1 verdict, through the API", "us", one.Median(),
              limit.both.Median() + limit.hand_overs.Median(),
              "append + fdatasync + 4 hand-overs", std::nullopt});
  report.Add({"32 verdicts at once: syncs, median", "", counts.Median(), 1,
              "one sync", 4});
  report.Add({"32 verdicts at once: syncs, worst", "", counts.Max(), 1,
              "one sync", std::nullopt});
  report.Add({"32 verdicts at once: time", "us", many.Median(),
              limit.both.Median(), "append + fdatasync + 2 hand-overs",
              std::nullopt});
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  for (const int stored : {10, 1'000, 100'000}) {
    if (report.brief() && stored > 10'000) continue;
    devmgr::bench::OneDecision(report, stored);
  }
  devmgr::bench::ManyAtOnce(report);
}
