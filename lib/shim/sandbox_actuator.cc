// SPDX-License-Identifier: Apache-2.0
#include "shim/sandbox_actuator.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::shim {
namespace {

bool IsTerminal(const Pod& pod) {
  return pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
}

}  // namespace

/// On the manager's thread: only posts.
class SandboxActuator::Watcher : public DeviceManagerObserver {
 public:
  explicit Watcher(SandboxActuator& watched) : watched_(watched) {}
  void OnPod(const PodInfo&, bool) override { Post(); }
  void OnObjects() override { Post(); }

 private:
  void Post() {
    watched_.executor_->Post([&watched = watched_] { watched.OnChange(); });
  }
  SandboxActuator& watched_;
};

SandboxActuator::SandboxActuator(DeviceManager& manager, const PodBook& book,
                                 bool pods_from_source,
                                 std::shared_ptr<Executor> executor)
    : manager_(manager),
      book_(book),
      pods_from_source_(pods_from_source),
      executor_(std::move(executor)),
      watcher_(std::make_unique<Watcher>(*this)),
      observation_(manager_.Observe(*watcher_)) {}

SandboxActuator::~SandboxActuator() = default;

std::shared_ptr<const ObjectSnapshot> SandboxActuator::Look() {
  auto objects = manager_.Objects();
  if (objects != looked_at_) {
    pods_.Follow(objects->pods);
    malformed_pods_.Follow(objects->malformed_pods);
    looked_at_ = objects;
  }
  return objects;
}

void SandboxActuator::OnChange() {
  const auto objects = Look();
  JudgeRuns();
  // Whether an idle pod is over only the source can say.
  const auto before = std::exchange(judged_, objects);
  if (objects != before) ReleaseThoseThatAreOver(before.get(), *objects);
}

void SandboxActuator::JudgeRuns() {
  for (auto& [call, run] : runs_) {
    if (run.done == nullptr) continue;
    WantAsInSource(run);
    JudgeRun(run);
  }
}

// --- Before a pod runs ------------------------------------------------------

void SandboxActuator::Admit(std::uint64_t call, const cri::SandboxIdentity& pod,
                            const Patience& patience, Done done) {
  idle_.erase(pod.uid);
  Run& run = runs_[call];
  run.pod = pod;
  run.patience = patience;
  run.done = std::move(done);
  Look();
  WantAsInSource(run);
  JudgeRun(run);
  if (run.done != nullptr)
    Arm(call, std::min(patience.unknown, patience.ready));
}

/// Again whenever it is another object: it may name claims only now.
void SandboxActuator::WantAsInSource(Run& run) {
  if (!pods_from_source_ || in_doubt_) return;
  auto pod = pods_.Find(run.pod.uid.value);
  if (pod == nullptr || IsTerminal(*pod)) return;
  const bool lost = !manager_.View()->PodInfoOf(run.pod.uid).ok();
  if (pod == run.wanted && !lost) return;
  manager_.WantPod(*pod).IgnoreError();
  run.wanted = std::move(pod);
}

void SandboxActuator::JudgeRun(Run& run) {
  const auto verdict = Verdict(run);
  if (!verdict.has_value()) return;
  executor_->Cancel(std::exchange(run.timer, 0));
  std::exchange(run.done, nullptr)(*verdict);
}

std::optional<absl::Status> SandboxActuator::Verdict(const Run& run) const {
  const std::string name = run.pod.pod.ToString();
  const PodUid& uid = run.pod.uid;
  const auto pod = pods_from_source_ ? pods_.Find(uid.value) : nullptr;
  if (pod != nullptr && IsTerminal(*pod)) {
    return FailedPreconditionError("pod '{}' has finished: {}", name,
                                   pod->status.phase);
  }
  const auto info = manager_.View()->PodInfoOf(uid);
  if (info.ok() && info->state == PodState::kReady) return absl::OkStatus();
  if (info.ok() && info->state == PodState::kRejected) {
    return FailedPreconditionError("pod '{}' is rejected: {}: {}", name,
                                   info->reason, info->message);
  }
  if (info.ok() && info->state == PodState::kEvicting) {
    return FailedPreconditionError("pod '{}' has to leave its devices: {}",
                                   name, info->message);
  }
  const auto malformed =
      pods_from_source_ ? malformed_pods_.Find(uid.value) : nullptr;
  if (!info.ok() && malformed != nullptr) {
    return FailedPreconditionError("pod '{}' is malformed: {}", name,
                                   malformed->problem.ToString());
  }
  const bool known = info.ok() || pod != nullptr;
  if (!known && executor_->Now() >= run.patience.unknown) {
    return NotFoundError("pod '{}' with UID '{}' is not known", name,
                         uid.value);
  }
  if (executor_->Now() < run.patience.ready) return std::nullopt;
  const char* const unwanted = in_doubt_
                                   ? "the runtime has not listed what it runs"
                                   : "not admitted yet";
  return UnavailableError(
      "pod '{}' is not Ready: {}; it keeps its place", name,
      info.ok() ? info->reason + ": " + info->message : unwanted);
}

void SandboxActuator::Arm(std::uint64_t call, Time when) {
  const auto delay = std::max(
      std::chrono::milliseconds(0),
      std::chrono::ceil<std::chrono::milliseconds>(when - executor_->Now()));
  runs_.at(call).timer = executor_->PostAfter(delay, [this, call] {
    const auto found = runs_.find(call);
    if (found == runs_.end() || found->second.done == nullptr) return;
    Look();
    JudgeRun(found->second);
    if (found->second.done != nullptr) Arm(call, found->second.patience.ready);
  });
}

void SandboxActuator::OnCallOver(std::uint64_t call) {
  const auto found = runs_.find(call);
  if (found == runs_.end()) return;
  executor_->Cancel(found->second.timer);
  const PodUid pod = found->second.pod.uid;
  runs_.erase(found);
  // One that never ran is over, too, when the source lacks it. Without a
  // source the caller may try again.
  if (!pods_from_source_) return;
  idle_.insert(pod);
  ReleaseIfOver(pod);
}

// --- After it has run -------------------------------------------------------

void SandboxActuator::OnLastSandboxGone(const PodUid& pod) {
  // A newer attempt is on its way.
  if (IsRunBy(pod)) return;
  idle_.insert(pod);
  ReleaseIfOver(pod);
}

void SandboxActuator::OnLook() {
  in_doubt_ = false;
  if (pods_from_source_) {
    for (const PodInfo& pod : manager_.View()->Pods()) idle_.insert(pod.uid);
  }
  ReleaseAllThatAreOver();
  Look();
  JudgeRuns();
}

void SandboxActuator::OnLookFailed(const absl::Status& why) {
  if (!in_doubt_ || !pods_from_source_) return;
  const auto objects = Look();
  for (auto& [call, run] : runs_) {
    const PodUid& pod = run.pod.uid;
    if (run.done == nullptr || manager_.View()->PodInfoOf(pod).ok()) continue;
    if (pods_.Find(pod.value) == nullptr) continue;
    executor_->Cancel(std::exchange(run.timer, 0));
    std::exchange(run.done, nullptr)(UnavailableError(
        "pod '{}' gets nothing before the runtime has listed what it runs: {}",
        run.pod.pod.ToString(), MessageOf(why)));
  }
}

bool SandboxActuator::IsRunBy(const PodUid& pod) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const auto& entry) {
    return entry.second.pod.uid == pod;
  });
}

void SandboxActuator::ReleaseAllThatAreOver() {
  const std::set<PodUid> idle = idle_;
  for (const PodUid& pod : idle) ReleaseIfOver(pod);
}

/// Of a complete source only pods that have changed can be over now.
void SandboxActuator::ReleaseThoseThatAreOver(const ObjectSnapshot* before,
                                              const ObjectSnapshot& now) {
  if (before == nullptr || !before->complete || !now.complete) {
    return ReleaseAllThatAreOver();
  }
  std::set<PodUid> changed;
  const auto add = [&](const auto* was, const auto* is) {
    for (const auto* entry : {was, is}) {
      if (entry != nullptr) changed.insert({UidOfObject(*entry->second)});
    }
  };
  now.pods.VisitChangesSince(before->pods, add);
  now.malformed_pods.VisitChangesSince(before->malformed_pods, add);
  for (const PodUid& pod : changed) {
    if (idle_.contains(pod)) ReleaseIfOver(pod);
  }
}

void SandboxActuator::ReleaseIfOver(const PodUid& pod) {
  if (in_doubt_) return;
  if (IsRunBy(pod) || book_.HasSandboxOf(pod)) {
    idle_.erase(pod);  // It comes back when that ends.
    return;
  }
  if (pods_from_source_ && !IsOverForSource(pod)) return;
  idle_.erase(pod);
  manager_.UnwantPod(pod).IgnoreError();  // The shim checked the mode.
}

bool SandboxActuator::IsOverForSource(const PodUid& pod) {
  const auto objects = Look();
  if (const auto found = pods_.Find(pod.value)) return IsTerminal(*found);
  if (malformed_pods_.Find(pod.value) != nullptr) return false;
  if (objects->complete) return true;
  // Absence proves nothing here, but that another pod has its name does.
  const auto info = manager_.View()->PodInfoOf(pod);
  return info.ok() && objects->pods.contains(info->name);
}

}  // namespace devmgr::shim
