// SPDX-License-Identifier: Apache-2.0
//
// What CRI shims of other processes report of the runtimes behind them, as one
// runtime.
#include <devmgr/runtime_report.h>
#include <devmgr/runtime_source.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
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
  ReportedRuntime(std::vector<std::string> names,
                  std::chrono::milliseconds patience)
      : names_(names.begin(), names.end()),
        patience_(std::max(patience, std::chrono::milliseconds(1))),
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
  std::string Describe() const override {
    if (names_.empty()) return "runtime behind CRI shims";
    return fmt::format("runtime behind {} {}",
                       names_.size() == 1 ? "CRI shim" : "CRI shims",
                       fmt::join(names_, ", "));
  }

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
  bool Wants(const std::string& shim) const override {
    return names_.empty() || names_.contains(shim);
  }
  void OnCutOff(const std::string& session) override {
    executor_->Post([this, session] { CutOff(session); });
  }

 private:
  /// A shim, by the socket at which it listens: the one that follows another
  /// there takes its place.
  struct Shim {
    std::string session;
    std::string name;
    std::shared_ptr<const RuntimeSnapshot> runs;
    std::string silence;  ///< Why `runs` does not count; empty: it does.
    bool away = false;    ///< It has ended, or is cut off.
    std::uint64_t look = 0;
    std::uint64_t missed = 0;  ///< Nothing counts that is older than this look.
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
    if (!Wants(report.name)) return OnOther(report);
    others_.erase(report.listen);
    // A shim that is not asked for what runs, or that is too old to know it.
    if (report.runs == nullptr && !shims_.contains(report.listen)) return;
    Shim& shim = shims_[report.listen];
    if (shim.session != report.session) {
      shim = Shim();
      shim.session = report.session;
    }
    shim.name = report.name;
    if (report.runs != nullptr) shim.runs = report.runs;
    shim.look = std::max(shim.look, report.look);
    if (shim.runs == nullptr) {
      shim.silence = "it has begun anew and has not looked yet";
    } else if (report.over) {
      shim.silence = "it has ended";
      shim.away = true;
    } else if (shim.look >= shim.missed) {
      shim.silence.clear();
      shim.away = false;
      ForgetFormer(report);
    }
    Publish();
    AnswerQuestions();
  }

  /// One of another name than those that count.
  void OnOther(const RuntimeReport& report) {
    const auto before = shims_.find(report.listen);
    if (before != shims_.end() && before->second.session != report.session) {
      before->second.silence = "another shim has its socket";
      before->second.away = true;
    }
    if (report.over) {
      others_.erase(report.listen);
    } else if (others_.size() < kMaxOthers || others_.contains(report.listen)) {
      others_[report.listen] = report.name;
    }
    Publish();
    AnswerQuestions();
  }

  /// The shim with a name has begun at another socket, and cannot say any more
  /// that it has ended at the one of before.
  void ForgetFormer(const RuntimeReport& report) {
    if (names_.empty()) return;
    std::erase_if(shims_, [&](const auto& entry) {
      return entry.first != report.listen && entry.second.name == report.name &&
             entry.second.away;
    });
  }

  /// What it saw before says nothing of now: it has to look again.
  void CutOff(const std::string& session) {
    for (auto& [listen, shim] : shims_) {
      if (shim.session != session || shim.away) continue;
      shim.away = true;
      shim.silence = "its connection has ended";
      shim.missed = ++wanted_;
      Publish();
      AnswerQuestions();
      return looks_.Notify();
    }
  }

  /// Of a shim that may still be asked.
  static bool HasSeen(const Shim& shim, std::uint64_t look) {
    return !shim.silence.empty() || shim.look >= look;
  }

  bool IsMissingOne() const {
    return std::any_of(names_.begin(), names_.end(), [&](const auto& name) {
      return std::none_of(shims_.begin(), shims_.end(), [&](const auto& entry) {
        return entry.second.name == name;
      });
    });
  }

  void AnswerQuestions() {
    for (auto it = questions_.begin(); it != questions_.end();) {
      const bool answered =
          !shims_.empty() && !IsMissingOne() &&
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

  /// Why it is not known what runs: a reason for each shim that is missing.
  std::vector<std::string> ReasonsNow() const {
    std::vector<std::string> reasons;
    if (names_.empty() && shims_.empty()) {
      reasons.push_back("no CRI shim has reported what runs yet");
    }
    for (const std::string& name : names_) {
      const bool is_there = std::any_of(
          shims_.begin(), shims_.end(),
          [&](const auto& entry) { return entry.second.name == name; });
      if (is_there) continue;
      reasons.push_back(
          fmt::format("CRI shim '{}' has not reported what runs yet{}", name,
                      OthersText()));
    }
    for (const auto& [listen, shim] : shims_) {
      std::string reason = shim.silence;
      if (reason.empty() && !shim.runs->known) reason = shim.runs->reason;
      if (reason.empty()) continue;
      reasons.push_back(
          fmt::format("CRI shim {}at '{}': {}",
                      shim.name.empty() ? "" : fmt::format("'{}' ", shim.name),
                      listen, reason));
    }
    return reasons;
  }

  /// What helps where a name was mistyped.
  std::string OthersText() const {
    if (others_.empty()) return "";
    std::vector<std::string> texts;
    for (const auto& [listen, name] : others_) {
      texts.push_back(name.empty()
                          ? fmt::format("one without a name at '{}'", listen)
                          : fmt::format("'{}' at '{}'", name, listen));
    }
    return fmt::format(" (others have: {})", fmt::join(texts, ", "));
  }

  void Publish() {
    auto next = std::make_shared<RuntimeSnapshot>();
    for (const auto& [listen, shim] : shims_) {
      if (shim.runs == nullptr) continue;
      Merge(shim.runs->pods, &next->pods);
      if (next->runtime.empty()) next->runtime = shim.runs->runtime;
    }
    const std::vector<std::string> reasons = ReasonsNow();
    next->known = reasons.empty();
    next->reason = fmt::format("{}", fmt::join(reasons, "; "));
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

  /// Shims of other names that one reason lists.
  static constexpr std::size_t kMaxOthers = 8;

  const std::set<std::string> names_;  ///< Empty: all shims count.
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
  std::map<std::string, std::string> others_;  ///< Names, by their sockets.
  std::vector<Question> questions_;
};

}  // namespace
}  // namespace devmgr::upkeep

namespace devmgr {

std::unique_ptr<ReportedRuntimeSource> ReportedRuntimeSource::Make(
    std::chrono::milliseconds patience) {
  return Make({}, patience);
}

std::unique_ptr<ReportedRuntimeSource> ReportedRuntimeSource::Make(
    std::vector<std::string> shims, std::chrono::milliseconds patience) {
  return std::make_unique<upkeep::ReportedRuntime>(std::move(shims), patience);
}

}  // namespace devmgr
