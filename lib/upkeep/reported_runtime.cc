// SPDX-License-Identifier: Apache-2.0
//
// What CRI shims of other processes report of the runtimes behind them, as one
// runtime.
#include <devmgr/runtime_report.h>
#include <devmgr/runtime_source.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/counted.h"
#include "common/executor.h"
#include "common/snapshot_cell.h"

namespace devmgr::upkeep {
namespace {

using Pods = std::map<PodUid, std::shared_ptr<const PodRun>>;

/// Of two shims before one runtime both have its pods. Of two runtimes that
/// have a pod both count.
void Merge(const Pods& from, Pods* to) {
  for (const auto& [uid, pod] : from) {
    auto& there = (*to)[uid];
    if (there == nullptr) {
      there = pod;
    } else if (*there != *pod) {
      PodRun both = *there;
      both.sandboxes.insert(both.sandboxes.end(), pod->sandboxes.begin(),
                            pod->sandboxes.end());
      both.containers.insert(both.containers.end(), pod->containers.begin(),
                             pod->containers.end());
      there = std::make_shared<const PodRun>(std::move(both));
    }
  }
}

class ReportedRuntime final : public ReportedRuntimeSource {
 public:
  explicit ReportedRuntime(std::chrono::milliseconds patience)
      : patience_(std::max(patience, std::chrono::milliseconds(1))),
        wanted_(static_cast<std::uint64_t>(
            std::chrono::system_clock::now().time_since_epoch().count())) {
    Publish();
  }
  ~ReportedRuntime() override { executor_->Stop(); }

  std::shared_ptr<const RuntimeSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override { return "runtime behind CRI shims"; }

  std::uint64_t WantedLook() const override { return wanted_; }
  void SubscribeLooks(std::function<void()> wanted) override {
    looks_.SetSubscriber(std::move(wanted));
  }

  bool Refresh(std::function<void()> done) override {
    executor_->Post([this, done = std::move(done)] { Ask(done); });
    return true;
  }
  void Take(const RuntimeReport& report) override {
    executor_->Post([this, report] { OnReport(report); });
  }

 private:
  /// A shim, by the socket at which it listens: the one that follows another
  /// there takes its place.
  struct Shim {
    std::string session;
    std::shared_ptr<const RuntimeSnapshot> runs;
    std::string silence;  ///< Why `runs` does not count; empty: it does.
    std::uint64_t look = 0;
    std::uint64_t missed = 0;  ///< The last look that it was too late with.
  };
  struct Question {
    std::uint64_t look = 0;
    std::function<void()> done;
    TimerId timer = 0;
  };

  void Ask(const std::function<void()>& done) {
    const std::uint64_t look = ++wanted_;
    const TimerId timer =
        executor_->PostAfter(patience_, [this, look] { GiveUp(look); });
    questions_.push_back({look, done, timer});
    looks_.Notify();
  }

  void OnReport(const RuntimeReport& report) {
    // A shim that is not asked for what runs, or that is too old to know it.
    if (report.runs == nullptr && !shims_.contains(report.listen)) return;
    Shim& shim = shims_[report.listen];
    if (shim.session != report.session) {
      shim = Shim();
      shim.session = report.session;
    }
    if (report.runs != nullptr) shim.runs = report.runs;
    shim.look = std::max(shim.look, report.look);
    if (shim.runs == nullptr) {
      shim.silence = "it has begun anew and has not looked yet";
    } else if (report.over) {
      shim.silence = "it has ended";
    } else if (shim.look >= shim.missed) {
      shim.silence.clear();
    }
    Publish();
    AnswerQuestions();
  }

  /// Of a shim that may still be asked.
  static bool HasSeen(const Shim& shim, std::uint64_t look) {
    return !shim.silence.empty() || shim.look >= look;
  }

  void AnswerQuestions() {
    for (auto it = questions_.begin(); it != questions_.end();) {
      const bool answered =
          !shims_.empty() &&
          std::all_of(shims_.begin(), shims_.end(), [&](const auto& shim) {
            return HasSeen(shim.second, it->look);
          });
      if (!answered) {
        ++it;
        continue;
      }
      const Question over = std::move(*it);
      it = questions_.erase(it);
      executor_->Cancel(over.timer);
      over.done();
    }
  }

  void GiveUp(std::uint64_t look) {
    for (auto& [listen, shim] : shims_) {
      if (shim.look < look) shim.missed = std::max(shim.missed, look);
      if (HasSeen(shim, look)) continue;
      shim.silence = fmt::format(
          "it has been asked to look, and has not for {}", SpanText(patience_));
    }
    Publish();
    const auto asked =
        std::find_if(questions_.begin(), questions_.end(),
                     [&](const Question& one) { return one.look == look; });
    if (asked == questions_.end()) return;
    const Question over = std::move(*asked);
    questions_.erase(asked);
    over.done();
    AnswerQuestions();
  }

  void Publish() {
    auto next = std::make_shared<RuntimeSnapshot>();
    next->known = !shims_.empty();
    if (shims_.empty()) next->reason = "no CRI shim has reported what runs yet";
    for (const auto& [listen, shim] : shims_) {
      std::string reason = shim.silence;
      if (shim.runs != nullptr) {
        Merge(shim.runs->pods, &next->pods);
        if (next->runtime.empty()) next->runtime = shim.runs->runtime;
        if (reason.empty() && !shim.runs->known) reason = shim.runs->reason;
      }
      if (reason.empty()) continue;
      next->known = false;
      if (!next->reason.empty()) next->reason += "; ";
      next->reason += fmt::format("CRI shim at '{}': {}", listen, reason);
    }
    const auto before = cell_.Get();
    const bool same =
        before->known == next->known && before->since != WallTime();
    next->since = same ? before->since : std::chrono::system_clock::now();
    if (same && before->reason == next->reason &&
        before->runtime == next->runtime && before->pods == next->pods) {
      return;
    }
    cell_.Put(std::move(next));
    cell_.Notify();
  }

  const std::chrono::milliseconds patience_;
  SnapshotCell<RuntimeSnapshot> cell_;
  /// Nothing is in it: only for its subscriber.
  struct Nothing {};
  SnapshotCell<Nothing> looks_;
  /// Begins at the time, so that no number of an earlier process counts.
  std::atomic<std::uint64_t> wanted_;
  const std::unique_ptr<Executor> executor_ =
      ThreadExecutor::Start("devmgr-reports");
  // On the executor.
  std::map<std::string, Shim> shims_;
  std::vector<Question> questions_;
};

}  // namespace
}  // namespace devmgr::upkeep

namespace devmgr {

std::unique_ptr<ReportedRuntimeSource> ReportedRuntimeSource::Make(
    std::chrono::milliseconds patience) {
  return std::make_unique<upkeep::ReportedRuntime>(patience);
}

}  // namespace devmgr
