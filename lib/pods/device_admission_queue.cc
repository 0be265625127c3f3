// SPDX-License-Identifier: Apache-2.0
//
// What becomes of pods that cannot have their devices now: their verdicts,
// their places in the queue, and whose turn it is.
#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admission/device_request.h"
#include "pods/device_admission.h"

namespace devmgr::pods {

admission::WaitQueue::Place DeviceAdmission::PlaceOf(
    const DeviceRequest& request) const {
  return admission::PlaceOf(parts_.state.FindPod(request.pod.uid),
                            request.priority, request.needs, parts_.now_ms());
}

admission::DevicePolicy DeviceAdmission::PolicyFor(
    const DeviceRequest& request) const {
  admission::DevicePolicy policy = this->policy();
  if (policy.authority == Authority::kSplit) {
    policy.authority =
        request.pod.local ? Authority::kNode : Authority::kScheduler;
  }
  return policy;
}

admission::DevicePolicy DeviceAdmission::policy() const {
  admission::DevicePolicy policy = parts_.policy;
  if (parts_.authority) policy.authority = parts_.authority();
  return policy;
}

std::string DeviceAdmission::NameOf(const PodUid& uid) const {
  if (const auto foreign = parts_.devices.ForeignName(uid)) return *foreign;
  const state::PodRecord* pod = parts_.state.FindPod(uid);
  return pod != nullptr ? pod->name.ToString() : "with UID " + uid.value;
}

void DeviceAdmission::NameHolders(
    std::vector<device::Shortage>* shortages) const {
  for (device::Shortage& shortage : *shortages) {
    for (const PodUid& holder : shortage.holders) {
      shortage.holder_names.push_back(NameOf(holder));
      shortage.held_elsewhere =
          shortage.held_elsewhere || parts_.devices.IsElsewhere(holder);
      shortage.holders_end = shortage.holders_end ||
                             (parts_.is_ending && parts_.is_ending(holder));
    }
  }
}

void DeviceAdmission::Judge(const Shared& operation,
                            std::vector<device::Shortage> shortages) {
  const PodUid& pod = operation->request.pod.uid;
  const std::int64_t now = parts_.now_ms();
  NameHolders(&shortages);
  admission::DeviceVerdict judged = admission::JudgeShortages(
      shortages, PolicyFor(operation->request), queue_.WaitedFor(pod, now));
  // Rejected or not: one that holds claims cannot be, and goes on waiting.
  admission::WaitQueue::Place place =
      admission::ShortPlace(PlaceOf(operation->request), shortages);
  place.limit = judged.limit;
  if (place.aligned) {
    // Without claims that it is not getting.
    DeviceRequest& kept = unaligned_[pod] = operation->request;
    kept.objects = nullptr;
    kept.claims = nullptr;
  }
  EnterLine(pod, std::move(place));
  Finish(operation, judged.verdict);
}

bool DeviceAdmission::MayGo(const Shared& operation) {
  const PodUid& pod = operation->request.pod.uid;
  const std::int64_t now = parts_.now_ms();
  admission::WaitQueue::Place place = PlaceOf(operation->request);
  // Others may wait for what it holds: it must not wait for them. One of the
  // scheduler's pods takes none of what pods of this node wait for.
  const bool is_bound =
      policy().authority == Authority::kSplit && !operation->request.pod.local;
  if (!place.takes || is_bound) return true;
  const auto first = queue_.FirstBefore(pod, place, now, FreeCount());
  if (!first.has_value()) return true;
  std::vector<ResourceName> resources;
  for (const auto& [resource, count] : place.needs) {
    resources.push_back(resource);
    place.short_of.insert(resource);
  }
  EnterLine(pod, std::move(place));
  Finish(operation, admission::BehindVerdict(NameOf(*first), resources));
  return false;
}

void DeviceAdmission::FailedCall(const Shared& operation) {
  const PodUid& pod = operation->request.pod.uid;
  const std::int64_t now = parts_.now_ms();
  admission::DeviceVerdict judged = admission::JudgeFailedCall(
      operation->failed_resource, operation->failure,
      PolicyFor(operation->request), queue_.WaitedFor(pod, now));
  // Of an embedder's hints it waits for no resource.
  if (operation->failed_resource.empty()) judged.verdict.waiting_for.clear();
  // It does not stand in line: it comes again by itself.
  admission::WaitQueue::Place place = PlaceOf(operation->request);
  place.limit = judged.limit;
  EnterLine(pod, std::move(place));
  if (judged.verdict.kind == Verdict::Kind::kReject) {
    Finish(operation, judged.verdict);
  } else {
    Finish(operation, operation->failure, judged.verdict.waiting_for);
  }
}

void DeviceAdmission::EnterLine(const PodUid& pod,
                                admission::WaitQueue::Place place) {
  const std::set<ResourceName> let_go =
      queue_.Enter(pod, std::move(place), parts_.now_ms());
  ArmTimer();
  if (!let_go.empty()) GiveTurns(let_go, pod);
}

admission::WaitQueue::FreeCount DeviceAdmission::FreeCount() const {
  return [&devices = parts_.devices](const ResourceName& resource) {
    return devices.FreeCount(resource);
  };
}

void DeviceAdmission::GiveTurns(const std::set<ResourceName>& resources,
                                const PodUid& but) {
  const std::vector<PodUid> turns =
      queue_.Turns(resources, parts_.now_ms(), FreeCount(), but, AlignsNow());
  if (turns.empty()) return;
  ArmTimer();
  for (const PodUid& pod : turns) parts_.judge_again(pod);
}

void DeviceAdmission::ArmTimer() {
  parts_.executor.Cancel(std::exchange(timer_, 0));
  const std::optional<std::int64_t> next = queue_.NextDeadline();
  if (!next.has_value()) return;
  // The wall clock may jump, so it is looked at now and then.
  const std::int64_t delay =
      std::clamp<std::int64_t>(*next - parts_.now_ms(), 0, 60'000);
  timer_ = parts_.executor.PostAfter(std::chrono::milliseconds(delay),
                                     [this] { OnTimer(); });
}

void DeviceAdmission::OnTimer() {
  timer_ = 0;
  const admission::WaitQueue::DueNow due = queue_.Due(parts_.now_ms());
  for (const PodUid& pod : due.pods) parts_.judge_again(pod);
  if (!due.resources.empty()) GiveTurns(due.resources);
  ArmTimer();
}

}  // namespace devmgr::pods
