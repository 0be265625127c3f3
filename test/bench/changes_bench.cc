// SPDX-License-Identifier: Apache-2.0
//
// 10,000 changes a second to four readers, of which one reads nothing: what a
// decision costs with and without them, how late a change reaches a reader, in
// process and over the inspection socket, and what becomes of the one that
// stalls. Each change is a decision of its own, on a ledger without a disk, so
// that nothing hides the cost of the readers.
#include <devmgr/inspection.h>
#include <fmt/core.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support.h"
#include "common/executor.h"
#include "common/run_on.h"
#include "ledger/ledger.h"
#include "manager/change_stream.h"
#include "state/state.h"
#include "support/fake_device_manager.h"
#include "support/temp_folder.h"

namespace devmgr::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kPerMillisecond = 10;
constexpr int kPods = 1'000;

std::shared_ptr<const state::PodRecord> PodOf(int number) {
  auto pod = std::make_shared<state::PodRecord>();
  pod->uid = UidOfPod(number);
  pod->name = {"default", fmt::format("pod-{}", number)};
  pod->phase = state::PodPhase::kAdmitted;
  state::DeviceHold hold;
  hold.container = "main";
  hold.resource = "example.com/gpu";
  hold.phase = device::ReservationPhase::kCommitted;
  hold.devices = {{fmt::format("gpu-{}", 2 * number), {}},
                  {fmt::format("gpu-{}", 2 * number + 1), {}}};
  hold.edits.cdi_devices = {fmt::format("example.com/gpu={}", number)};
  pod->holds = {std::move(hold)};
  return pod;
}

/// A ledger and the stream of its changes.
class Node {
 public:
  explicit Node(std::size_t events) : sent_(events + 1) {
    loop_ = ThreadExecutor::Start("bench-main");
    ledger_ = std::make_unique<ledger::Ledger>(
        checkpoint::NewInMemoryStore(), &state_,
        [] { return std::int64_t{1'700'000'000'000}; },
        [this](const state::Batch& batch) {
          loop_->Post([this, batch] { Apply(batch); });
        });
    stream_ = std::make_unique<manager::ChangeStream>(
        manager::ChangeStream::Parts{*loop_, *ledger_, state_,
                                     [this] {
                                       view::Moment moment;
                                       moment.state = state_;
                                       return moment;
                                     },
                                     [] { return WallTime(); },
                                     [this] {
                                       if (on_changes) on_changes();
                                     }});
    for (int i = 0; i < kPods; ++i) pods_.push_back(PodOf(i));
  }
  ~Node() {
    ledger_->Stop();
    loop_->Stop();
  }

  /// Decides `events` times at 10,000 a second.
  void Run(std::size_t events) {
    decisions_.Reserve(events);
    auto next = steady_clock::now();
    for (std::size_t i = 0; i < events;) {
      for (int k = 0; k < kPerMillisecond && i < events; ++k, ++i) Decide(i);
      next += milliseconds(1);
      std::this_thread::sleep_until(next);
    }
    WaitUntil("not all is decided", [&] { return done_ == events; });
  }

  manager::ChangeStream& stream() { return *stream_; }
  /// How long a change that a reader has got took.
  double LateBy(const DeviceChange& change) const {
    const std::int64_t sent = sent_[change.token.sequence];
    return static_cast<double>(steady_clock::now().time_since_epoch().count() -
                               sent) /
           1'000;
  }
  const Samples& decisions() const { return decisions_; }

  std::function<void()> on_changes;

 private:
  void Decide(std::size_t number) {
    const auto& pod = pods_[number / 2 % kPods];
    const auto begin = steady_clock::now();
    sent_[number + 1] = begin.time_since_epoch().count();
    const bool release = number % 2 == 1;
    ledger_->Submit(
        [pod, release](const state::State&) -> absl::StatusOr<state::Decision> {
          state::Decision decision;
          decision.kind = release ? state::DecisionKind::kRelease
                                  : state::DecisionKind::kAllocated;
          decision.pods = {pod->name};
          if (release) {
            decision.changes = {state::ErasePod{pod->uid}};
          } else {
            decision.changes = {state::PutPod{pod}};
          }
          return decision;
        },
        *loop_,
        [this, begin](const absl::Status& status) {
          Must(status);
          decisions_.Add(std::chrono::duration<double, std::micro>(
                             steady_clock::now() - begin)
                             .count());
          ++done_;
        });
  }

  void Apply(const state::Batch& batch) {
    const state::State before = state_;
    Must(state::Apply(state_, batch));
    stream_->OnBatch(before, batch);
  }

  std::vector<std::atomic<std::int64_t>> sent_;  ///< By sequence.
  std::vector<std::shared_ptr<const state::PodRecord>> pods_;
  state::State state_;
  Samples decisions_;  ///< On the loop.
  std::atomic<std::size_t> done_ = 0;
  std::unique_ptr<ThreadExecutor> loop_;
  std::unique_ptr<ledger::Ledger> ledger_;
  std::unique_ptr<manager::ChangeStream> stream_;
};

using Read = std::function<absl::StatusOr<DeviceChanges>(const ChangesFrom&,
                                                         milliseconds)>;

/// Reads until it has all.
class Reader {
 public:
  Reader(const Node& node, std::size_t events, Read read)
      : thread_([this, &node, events, read = std::move(read)] {
          late_.Reserve(events);
          ChangesFrom from = Must(read(FromSnapshot(), milliseconds(0))).next;
          ready_ = true;
          std::uint64_t last = 0;
          std::size_t got = 0;
          while (got < events) {
            const DeviceChanges some = Must(read(from, milliseconds(1'000)));
            for (const DeviceChange& change : some.changes) {
              if (change.token.sequence != last + 1)
                Fail("a change is missing");
              last = change.token.sequence;
              late_.Add(node.LateBy(change));
            }
            got += some.changes.size();
            from = some.next;
          }
        }) {}
  void WaitUntilReady() const {
    WaitUntil("a reader does not begin", [&] { return ready_.load(); });
  }
  const Samples& Join() {
    thread_.join();
    return late_;
  }

 private:
  std::atomic<bool> ready_ = false;
  Samples late_;
  std::thread thread_;
};

class Bench {
 public:
  explicit Bench(Report& report)
      : report_(report), events_(report.brief() ? 2'000 : 30'000) {}

  /// The limit: no reader.
  void Alone() {
    Node node(events_);
    node.Run(events_);
    alone_ = node.decisions();
  }

  void InProcess() {
    Node node(events_);
    const Read read = [&](const ChangesFrom& from, milliseconds wait) {
      return node.stream().Read(from, wait);
    };
    Measure("in process", node, {read, read, read});
  }

  void OverTheSocket() {
    Node node(events_);
    FakeDeviceManager manager;
    manager.Set([&](FakeDeviceManager::World& world) {
      world.changes = [&](const ChangesFrom& from) {
        return node.stream().Read(from, milliseconds(0));
      };
    });
    node.on_changes = [&] { manager.TellDeviceChanges(); };
    const TempFolder folder;
    const auto endpoint = folder.path() / "s";
    const auto server = Must(InspectionServer::Start(manager, endpoint));
    std::vector<std::unique_ptr<Inspector>> inspectors;
    std::vector<Read> reads;
    for (int i = 0; i < 3; ++i) {
      inspectors.push_back(Must(Inspector::Connect(endpoint, kPatience)));
      reads.push_back([inspector = inspectors.back().get()](
                          const ChangesFrom& from, milliseconds wait) {
        return inspector->Changes(from, wait);
      });
    }
    Measure("over the socket", node, reads);
  }

 private:
  void Measure(const std::string& how, Node& node,
               const std::vector<Read>& reads) {
    // The fourth reads nothing from here on.
    const ChangeToken stalled =
        Must(node.stream().Read(FromSnapshot(), milliseconds(0))).next;
    std::vector<std::unique_ptr<Reader>> readers;
    for (const Read& read : reads) {
      readers.push_back(std::make_unique<Reader>(node, events_, read));
    }
    for (const auto& reader : readers) reader->WaitUntilReady();
    const double took = Microseconds([&] { node.Run(events_); });
    report_.Add({fmt::format("changes, 4 readers {}: events a second", how),
                 "/s", 1e6 * static_cast<double>(events_) / took, 10'000.0,
                 "what was asked for", std::nullopt});
    Samples late;
    for (const auto& reader : readers) {
      const Samples& one = reader->Join();
      for (const double q : {0.5, 0.99, 1.0}) late.Add(one.Quantile(q));
      for (const double q : {0.5, 0.99}) {
        if (&reader != &readers.front()) continue;
        report_.Add({fmt::format("changes, {}: decision to reader, p{:.0f}",
                                 how, q * 100),
                     "us", one.Quantile(q), node.decisions().Quantile(q),
                     "decision to its caller", std::nullopt});
      }
    }
    for (const double q : {0.5, 0.99}) {
      report_.Add({fmt::format("changes, 4 readers {}: a decision, p{:.0f}",
                               how, q * 100),
                   "us", node.decisions().Quantile(q), alone_.Quantile(q),
                   "without a reader", std::nullopt});
    }
    absl::Status status;
    const double back = Microseconds([&] {
      status = node.stream().Read(stalled, milliseconds(0)).status();
    });
    // 10,000 decisions are in the history.
    const bool too_old = absl::IsOutOfRange(status);
    if (too_old != (events_ > 10'000))
      Fail("the stalled reader: " + status.ToString());
    report_.Add({fmt::format("changes, {}: the stalled reader {}", how,
                             too_old ? "is refused" : "catches up"),
                 "us", back, std::nullopt, "", std::nullopt});
  }

  Report& report_;
  const std::size_t events_;
  Samples alone_;
};

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  devmgr::bench::Report report(argc, argv);
  devmgr::bench::Bench bench(report);
  bench.Alone();
  bench.InProcess();
  bench.OverTheSocket();
}
