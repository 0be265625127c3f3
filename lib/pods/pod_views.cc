// SPDX-License-Identifier: Apache-2.0
#include "pods/pod_views.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "api/meta.h"
#include "state/views.h"

namespace devmgr::pods {
namespace {

void DropMessages(std::vector<ContainerResourceStatus>* containers) {
  for (ContainerResourceStatus& container : *containers) {
    for (ResourceStatus& resource : container.resources) {
      for (ResourceHealth& device : resource.resources) device.message.clear();
    }
  }
}

}  // namespace

PodInfo PodViews::InfoOf(const state::PodRecord& pod) const {
  PodInfo info = state::PodInfoOf(pod, parts_.state);
  if (parts_.health) {
    info.allocated_resources = parts_.devices.StatusOf(pod.uid);
    parts_.dra_health.AddTo(pod, &info.allocated_resources);
    if (!parts_.health_messages) {
      DropMessages(&info.allocated_resources);
    }
  }
  if (pod.phase == state::PodPhase::kRejected) return info;
  // A pod that was Ready in an earlier boot is Preparing until it is again.
  const bool earlier_boot = !pod.boot_id.empty() &&
                            pod.boot_id != parts_.boot_id &&
                            pod.phase != state::PodPhase::kReleasing;
  if (earlier_boot) {
    info.state = PodState::kPreparing;
    info.reason = "Rebooted";
    info.message = "prepared in another boot, to be prepared again";
  }
  const Verdict* note = parts_.lifecycle.NoteOf(pod.uid);
  const bool is_ready = info.state == PodState::kReady;
  // Of a Ready pod only that it is refused by what it asks for now.
  if (note != nullptr && (!is_ready || note->kind == Verdict::Kind::kReject)) {
    info.reason = note->reason;
    info.message = note->message;
    info.waiting_for = note->waiting_for;
    if (info.state == PodState::kPreparing && !earlier_boot &&
        !parts_.lifecycle.IsAsking(pod.uid)) {
      info.state = PodState::kWaiting;
    }
  }
  if (!is_ready) AddCalls(pod, &info);
  return info;
}

void PodViews::AddCalls(const state::PodRecord& pod, PodInfo* info) const {
  std::string text;
  for (const auto& call : parts_.lifecycle.UnansweredFor(pod.claims)) {
    const state::ClaimRecord* claim = parts_.state.FindClaim(call.claim);
    if (claim == nullptr) continue;
    const char* verb = call.prepare ? "prepare" : "unprepare";
    if (!text.empty()) text += "; ";
    text += call.since_ms.has_value()
                ? fmt::format(
                      "DRA driver {} was asked at {} to {} "
                      "ResourceClaim '{}' and has not answered yet",
                      call.driver, api::TimestampOf(*call.since_ms), verb,
                      claim->name.ToString())
                : fmt::format(
                      "the call that has DRA driver {} {} "
                      "ResourceClaim '{}' waits for other calls to end",
                      call.driver, verb, claim->name.ToString());
    const WaitingFor driver{WaitingFor::Kind::kDriver, call.driver};
    auto& all = info->waiting_for;
    if (std::find(all.begin(), all.end(), driver) == all.end()) {
      all.push_back(driver);
    }
  }
  if (text.empty()) return;
  if (info->reason.empty()) info->reason = "DriverAsked";
  if (!info->message.empty()) {
    info->message += "; ";
  } else if (info->state == PodState::kPreparing) {
    info->message = "being prepared: ";
  }
  info->message += text;
}

ClaimInfo PodViews::InfoOf(const state::ClaimRecord& claim) const {
  ClaimInfo info = state::ClaimInfoOf(claim, parts_.state);
  for (ClaimDriverInfo& driver : info.drivers) {
    driver.last_error = parts_.lifecycle.LastError(claim.uid, driver.driver);
  }
  return info;
}

}  // namespace devmgr::pods
