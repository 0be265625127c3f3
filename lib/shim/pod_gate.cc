// SPDX-License-Identifier: Apache-2.0
#include "shim/pod_gate.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace devmgr::shim {
namespace {

const Pod* FindPod(const ObjectSnapshot& objects, const PodUid& uid) {
  for (const auto& [name, pod] : objects.pods) {
    if (pod->metadata.uid == uid.value) return pod.get();
  }
  return nullptr;
}

}  // namespace

/// On the manager's thread: only posts.
class PodGate::Watcher : public DeviceManagerObserver {
 public:
  explicit Watcher(PodGate& gate) : gate_(gate) {}
  void OnPod(const PodInfo&, bool) override { Post(); }
  void OnObjects() override { Post(); }

 private:
  void Post() {
    gate_.executor_->Post([&gate = gate_] { gate.JudgeAll(); });
  }
  PodGate& gate_;
};

PodGate::PodGate(DeviceManager& manager, Actuator& actuator,
                 std::shared_ptr<Executor> executor)
    : manager_(manager),
      actuator_(actuator),
      executor_(std::move(executor)),
      watcher_(std::make_unique<Watcher>(*this)) {
  manager_.AddObserver(watcher_.get());
}

PodGate::~PodGate() { manager_.RemoveObserver(watcher_.get()); }

void PodGate::Admit(const cri::SandboxIdentity& pod, const Patience& patience,
                    Done done) {
  without_sandbox_.erase(pod.uid);
  const auto objects = manager_.Objects();
  if (const Pod* known = FindPod(*objects, pod.uid)) actuator_.Want(*known);
  const std::uint64_t id = ++last_;
  Waiting& waiting = waiting_[id];
  waiting.pod = pod;
  waiting.patience = patience;
  waiting.done = std::move(done);
  if (Judge(waiting)) {
    waiting_.erase(id);
  } else {
    Arm(id, std::min(patience.unknown, patience.ready));
  }
}

void PodGate::Arm(std::uint64_t id, Time when) {
  const auto delay = std::max(
      std::chrono::milliseconds(0),
      std::chrono::ceil<std::chrono::milliseconds>(when - executor_->Now()));
  waiting_.at(id).timer = executor_->PostAfter(delay, [this, id] {
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) return;
    if (Judge(found->second)) {
      waiting_.erase(found);
    } else {
      Arm(id, found->second.patience.ready);
    }
  });
}

bool PodGate::Judge(const Waiting& waiting) {
  const std::string name = waiting.pod.pod.ToString();
  const auto info = manager_.PodInfoOf(waiting.pod.uid);
  if (info.ok() && info->state == PodState::kReady) {
    waiting.done(absl::OkStatus());
    return true;
  }
  if (info.ok() && info->state == PodState::kRejected) {
    waiting.done(FailedPreconditionError("pod '{}' is rejected: {}: {}", name,
                                         info->reason, info->message));
    return true;
  }
  const bool known =
      info.ok() || FindPod(*manager_.Objects(), waiting.pod.uid) != nullptr;
  if (!known && executor_->Now() >= waiting.patience.unknown) {
    waiting.done(NotFoundError("pod '{}' with UID '{}' is not known", name,
                               waiting.pod.uid.value));
    return true;
  }
  if (executor_->Now() < waiting.patience.ready) return false;
  waiting.done(UnavailableError(
      "pod '{}' is not Ready: {}; it keeps its place", name,
      info.ok() ? info->reason + ": " + info->message : "not admitted yet"));
  return true;
}

void PodGate::JudgeAll() {
  const auto objects = manager_.Objects();
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    // It may have appeared in the source only now.
    if (!manager_.PodInfoOf(entry->second.pod.uid).ok()) {
      if (const Pod* pod = FindPod(*objects, entry->second.pod.uid)) {
        actuator_.Want(*pod);
      }
    }
    if (Judge(entry->second)) {
      executor_->Cancel(entry->second.timer);
      entry = waiting_.erase(entry);
    } else {
      ++entry;
    }
  }
  const std::set<PodUid> candidates = without_sandbox_;
  for (const PodUid& pod : candidates) ReleaseIfOver(pod);
}

void PodGate::OnLastSandboxGone(const PodUid& pod) {
  without_sandbox_.insert(pod);
  ReleaseIfOver(pod);
}

void PodGate::OnSandboxes(std::set<PodUid> pods) {
  for (const PodInfo& pod : manager_.Pods()) {
    if (!pods.contains(pod.uid)) OnLastSandboxGone(pod.uid);
  }
}

void PodGate::ReleaseIfOver(const PodUid& pod) {
  const auto objects = manager_.Objects();
  if (!objects->complete || FindPod(*objects, pod) != nullptr) return;
  const bool held = std::any_of(
      waiting_.begin(), waiting_.end(),
      [&](const auto& entry) { return entry.second.pod.uid == pod; });
  if (held) return;
  without_sandbox_.erase(pod);
  actuator_.Unwant(pod);
}

}  // namespace devmgr::shim
