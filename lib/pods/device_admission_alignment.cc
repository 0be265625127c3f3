// SPDX-License-Identifier: Apache-2.0
//
// Alignment of a pod's devices to NUMA nodes: what it is judged by, and how
// that is shown and counted.
#include <devmgr/objects.h>

#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "admission/device_request.h"
#include "admission/kept_alignment.h"
#include "common/status.h"
#include "pods/device_admission.h"
#include "topology/provider_hints.h"

namespace devmgr::pods {
namespace {

/// Entries of pods that the ledger does not know, because it could not be
/// written.
constexpr std::size_t kMostUnknown = 1'000;

}  // namespace

absl::StatusOr<admission::AlignedPlan> DeviceAdmission::Aligned(
    const DeviceRequest& request,
    const std::map<device::NeedKey, std::vector<DeviceId>>& preferences,
    const admission::ClaimHints& hints) const {
  const claim::PluginDevices devices = parts_.devices.Devices();
  const claim::WantedDevices wanted =
      parts_.devices.Wanted(request.pod, request.needs, preferences,
                            request.trust_held, request.judge_held);
  if (!IsAligning() || request.object == nullptr) {
    admission::AlignedPlan aligned;
    aligned.plan =
        request.aligned_to != nullptr
            ? admission::PlanAsAligned(devices, wanted, *request.aligned_to)
            : claim::PlanDevices(devices, wanted);
    return aligned;
  }
  const Pod& pod = *request.object;
  admission::AlignmentInput input{*parts_.alignment,
                                  admission::ContainersOf(pod)};
  input.choices = hints.now;
  input.choices_when_empty = hints.when_empty;
  if (parts_.claim_hints) {
    input.claims = [&](const ContainerName& container) {
      return parts_.claim_hints(pod, container, request.objects.get());
    };
  }
  if (!parts_.hint_providers.empty()) {
    input.providers = [&](const ContainerName& container)
        -> absl::StatusOr<std::vector<topology::ResourceHints>> {
      std::vector<topology::ResourceHints> all;
      for (const TopologyHintProvider* provider : parts_.hint_providers) {
        auto lists = topology::HintsOfProvider(*provider, {pod, container},
                                               parts_.alignment->machine.nodes);
        if (!lists.ok()) return lists.status();
        std::move(lists->begin(), lists->end(), std::back_inserter(all));
      }
      return all;
    };
  }
  return admission::PlanAligned(devices, wanted, input);
}

bool DeviceAdmission::Align(const Shared& operation, device::PodPlan* plan) {
  const auto begin = parts_.executor.Now();
  auto aligned = Aligned(operation->request, operation->preferences);
  CountAlignment(*operation, aligned, parts_.executor.Now() - begin);
  if (!aligned.ok()) {
    operation->failure = aligned.status();
    operation->failed_resource.clear();
    FailedCall(operation);
    return false;
  }
  if (aligned->alignment != nullptr) {
    alignments_.insert_or_assign(operation->request.pod.uid,
                                 aligned->alignment);
    operation->request.pod.alignment = AlignmentOf(operation->request.pod.uid);
  }
  *plan = std::move(aligned->plan);
  if (aligned->provider_refusal.empty() ||
      policy().authority == Authority::kScheduler) {
    return true;
  }
  // An embedder cannot be asked to say when it has other hints.
  operation->failure = FailedPreconditionError("{}", aligned->provider_refusal);
  operation->failed_resource.clear();
  FailedCall(operation);
  return false;
}

absl::StatusOr<admission::ClaimAlignment> DeviceAdmission::AlignClaims(
    DeviceRequest request, const admission::ClaimHints& hints, bool dry) {
  DEVMGR_ASSERT_ON(parts_.executor);
  LeaveOutUnserved(&request);
  auto aligned = Aligned(request, {}, hints);
  if (!aligned.ok()) return aligned.status();
  auto result = admission::ClaimAlignmentOf(*aligned, *parts_.alignment);
  // It has devices of plugins already, or there are too few of them.
  if (aligned->alignment == nullptr) return result;
  if (!dry) {
    alignments_.insert_or_assign(request.pod.uid, aligned->alignment);
  }
  if (!aligned->provider_refusal.empty()) {
    return FailedPreconditionError("{}", aligned->provider_refusal);
  }
  if (!aligned->alignment->admitted) {
    result.verdict = RefuseClaims(request, *aligned, dry);
  }
  return result;
}

Verdict DeviceAdmission::RefuseClaims(const DeviceRequest& request,
                                      const admission::AlignedPlan& aligned,
                                      bool dry) {
  std::vector<device::Shortage> shortages = admission::InTheWayOf(aligned);
  NameHolders(&shortages);
  admission::DeviceVerdict judged = admission::JudgeUnaligned(
      aligned, shortages, PolicyFor(request),
      queue_.WaitedFor(request.pod.uid, parts_.now_ms()));
  const bool waits_for_plugins = judged.verdict.kind == Verdict::Kind::kWait &&
                                 !aligned.plan.shortages.empty();
  if (!dry && waits_for_plugins) {
    admission::WaitQueue::Place place =
        admission::ShortPlace(PlaceOf(request), shortages);
    place.limit = judged.limit;
    if (place.aligned) unaligned_[request.pod.uid] = request;
    EnterLine(request.pod.uid, std::move(place));
  }
  return std::move(judged.verdict);
}

std::shared_ptr<const PodAlignmentInfo> DeviceAdmission::AlignmentOf(
    const PodUid& pod) const {
  const auto* found = alignments_.Find(pod);
  return found != nullptr && (*found)->admitted ? *found : nullptr;
}

void DeviceAdmission::CountAlignment(
    Operation& operation, const absl::StatusOr<admission::AlignedPlan>& aligned,
    std::chrono::nanoseconds took) {
  if (std::exchange(operation.counted, true)) return;
  const PodAlignmentInfo* info =
      aligned.ok() ? aligned->alignment.get() : nullptr;
  parts_.metrics.OnTopologyAdmission(
      took, !aligned.ok() || (info != nullptr && !info->admitted));
  if (info == nullptr ||
      info->options.policy != TopologyPolicy::kSingleNumaNode) {
    return;
  }
  const bool by_pod = info->options.scope == TopologyScope::kPod;
  // The last one is the refused one.
  const std::size_t done =
      by_pod && info->admitted
          ? 1
          : info->containers.size() - (info->admitted ? 0U : 1U);
  if (done > 0 && (info->admitted || !by_pod)) {
    parts_.metrics.OnAlignedContainers(by_pod, true, done);
  }
  if (!info->admitted) parts_.metrics.OnAlignedContainers(by_pod, false, 1);
}

admission::WaitQueue::Aligns DeviceAdmission::AlignsNow() const {
  using Answers = std::vector<std::pair<const DeviceRequest*, bool>>;
  return [this, answers = std::make_shared<Answers>()](const PodUid& pod) {
    const auto found = unaligned_.find(pod);
    if (found == unaligned_.end()) return true;
    const DeviceRequest& request = found->second;
    // Claims and providers have hints of their own for each pod.
    const bool is_like_others = request.object != nullptr &&
                                request.object->spec.resource_claims.empty() &&
                                parts_.hint_providers.empty();
    if (is_like_others) {
      for (const auto& [other, answer] : *answers) {
        // Each side has devices of its own, where there are two.
        if (other->needs == request.needs &&
            other->pod.local == request.pod.local) {
          return answer;
        }
      }
    }
    const auto aligned = Aligned(request, {});
    const bool answer = aligned.ok() && aligned->plan.shortages.empty();
    if (is_like_others) answers->push_back({&request, answer});
    return answer;
  };
}

void DeviceAdmission::DropAlignments(const ledger::Changes& changes) {
  for (const auto& [before, now] : changes.pods) {
    if (now == nullptr) alignments_.erase(before->uid);
  }
  if (alignments_.size() <= parts_.state.pods.size() + kMostUnknown) return;
  std::vector<PodUid> unknown;
  for (const auto& [uid, info] : alignments_) {
    if (parts_.state.FindPod(uid) == nullptr) unknown.push_back(uid);
  }
  for (const PodUid& uid : unknown) alignments_.erase(uid);
}

}  // namespace devmgr::pods
