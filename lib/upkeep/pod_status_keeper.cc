// SPDX-License-Identifier: Apache-2.0
#include "upkeep/pod_status_keeper.h"

#include <utility>

namespace devmgr::upkeep {

PodStatusKeeper::PodStatusKeeper(Parts parts)
    : parts_(std::move(parts)),
      is_agent_(parts_.sink != nullptr && parts_.sink->IsNodeAgent()) {}

PodStatusKeeper::~PodStatusKeeper() { parts_.executor.Cancel(timer_); }

void PodStatusKeeper::Start() {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!is_agent_) return;
  if (parts_.runtime == nullptr) {
    parts_.events.Add(
        true, "RuntimeNotConfigured", "Node", {"", parts_.node_name},
        "this is the agent of the node, and no container runtime is "
        "configured: only the status of pods that are rejected is written, and "
        "no pod is deleted in the end");
  }
  OnObjects();
  OnRuntime();
}

void PodStatusKeeper::OnObjects() {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!is_agent_) return;
  static const ObjectSnapshot kNone;
  const auto objects = parts_.objects();
  const ObjectSnapshot& before = objects_ != nullptr ? *objects_ : kNone;
  std::map<std::string, std::shared_ptr<const Pod>> seen;
  std::set<std::string> gone;
  objects->pods.VisitChangesSince(
      before.pods, [&](const auto* was, const auto* is) {
        if (was != nullptr) gone.insert(was->second->metadata.uid);
        if (is != nullptr) seen[is->second->metadata.uid] = is->second;
      });
  objects->malformed_pods.VisitChangesSince(
      before.malformed_pods, [&](const auto* was, const auto* is) {
        if (was != nullptr) gone.insert(was->second->pod.metadata.uid);
        if (is == nullptr) return;
        seen[is->second->pod.metadata.uid] = {is->second, &is->second->pod};
      });
  for (const std::string& uid : gone) {
    if (objects->complete && !seen.contains(uid)) Forget(PodUid{uid});
  }
  for (auto& [uid, pod] : seen) See(std::move(pod));
  const bool is_newly_complete = objects->complete && !before.complete;
  if (is_newly_complete) ForgetAllBut(*objects);
  objects_ = objects;
  Arm();
}

void PodStatusKeeper::Forget(const PodUid& uid) {
  pods_.erase(uid);
  failures_.erase(uid);
}

void PodStatusKeeper::ForgetAllBut(const ObjectSnapshot& objects) {
  std::erase_if(pods_, [&](const auto& known) {
    const ObjectName name = known.second.pod->metadata.FullName();
    const auto* pod = objects.pods.Find(name);
    const auto* malformed = objects.malformed_pods.Find(name);
    return (pod == nullptr || (*pod)->metadata.uid != known.first.value) &&
           (malformed == nullptr ||
            (*malformed)->pod.metadata.uid != known.first.value);
  });
  std::erase_if(failures_, [&](const auto& failure) {
    return !pods_.contains(failure.first);
  });
}

void PodStatusKeeper::See(std::shared_ptr<const Pod> pod) {
  const PodUid uid{pod->metadata.uid};
  Known& known = pods_[uid];
  if (known.pod == pod) return;
  known.pod = std::move(pod);
  changed_.insert(uid);
}

void PodStatusKeeper::OnRuntime() {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!is_agent_ || parts_.runtime == nullptr) return;
  const auto runtime = parts_.runtime->Snapshot();
  const bool is_new = runtime->known != was_known_;
  was_known_ = runtime->known;
  for (auto& [uid, known] : pods_) {
    const auto found = runtime->pods.find(uid);
    auto run = found == runtime->pods.end() ? nullptr : found->second;
    if (std::exchange(known.run, run) != run || is_new) changed_.insert(uid);
  }
  Arm();
}

void PodStatusKeeper::OnPods(const std::set<PodUid>& pods) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!is_agent_) return;
  changed_.insert(pods.begin(), pods.end());
  Arm();
}

void PodStatusKeeper::OnAction(const PodAction& action) {
  DEVMGR_ASSERT_ON(parts_.executor);
  if (!is_agent_) return;
  // What it fails for is known.
  if (action.kind == PodAction::Kind::kStop) return;
  failures_[action.pod] = {action.reason, action.message, action.condition};
  changed_.insert(action.pod);
  Arm();
}

void PodStatusKeeper::Arm() {
  if (changed_.empty() || timer_ != 0) return;
  timer_ = parts_.executor.PostAfter(kPause, [this] {
    timer_ = 0;
    Look();
  });
}

void PodStatusKeeper::Look() {
  const auto runtime =
      parts_.runtime == nullptr ? nullptr : parts_.runtime->Snapshot();
  for (const PodUid& uid : std::exchange(changed_, {})) {
    const auto found = pods_.find(uid);
    if (found != pods_.end()) LookAt(uid, runtime.get(), &found->second);
  }
}

void PodStatusKeeper::LookAt(const PodUid& uid, const RuntimeSnapshot* runtime,
                             Known* known) {
  const auto info = parts_.pod_info(uid);
  const auto failure = failures_.find(uid);
  const podstatus::PodFacts facts{
      .pod = *known->pod,
      .info = info ? &*info : nullptr,
      .failure = failure == failures_.end() ? nullptr : &failure->second,
      .runtime = runtime,
      .former = known->last ? &*known->last : nullptr,
      .now = parts_.now()};
  const ObjectName name = known->pod->metadata.FullName();
  auto status = podstatus::StatusOf(facts);
  if (status && status != known->last) {
    parts_.sink->SetPodStatus(name, uid, *status);
    known->last = std::move(status);
  }
  if (known->is_finished || !podstatus::IsFinished(facts)) return;
  known->is_finished = true;
  parts_.sink->FinishPod(name, uid);
}

}  // namespace devmgr::upkeep
