// SPDX-License-Identifier: Apache-2.0
#include "podstatus/pod_status.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "podstatus/conditions.h"
#include "podstatus/containers.h"
#include "podstatus/phase.h"

namespace devmgr::podstatus {
namespace {

std::string TimeText(WallTime time) {
  return api::TimestampOf(std::chrono::duration_cast<std::chrono::milliseconds>(
                              time.time_since_epoch())
                              .count());
}

/// The runtime is known, and nothing of the pod runs.
bool IsStopped(const PodFacts& facts) {
  if (facts.runtime == nullptr || !facts.runtime->known) return false;
  const PodRun* run = RunOf(*facts.runtime, PodUid{facts.pod.metadata.uid});
  return run == nullptr || !run->IsRunning();
}

/// The runtime is known, and something of the pod runs.
bool Runs(const PodFacts& facts) {
  return facts.runtime != nullptr && facts.runtime->known && !IsStopped(facts);
}

/// A condition keeps the time since which its status is what it is.
void SetTimes(const PodFacts& facts, ReportedPodStatus* status) {
  for (Condition& condition : status->conditions) {
    condition.observed_generation = status->observed_generation;
    condition.last_transition_time = TimeText(facts.now);
    if (facts.former == nullptr) continue;
    for (const Condition& former : facts.former->conditions) {
      if (former.type == condition.type && former.status == condition.status) {
        condition.last_transition_time = former.last_transition_time;
      }
    }
  }
}

ReportedPodStatus Begun(const PodFacts& facts) {
  ReportedPodStatus status;
  status.observed_generation = facts.pod.generation;
  if (facts.former != nullptr && facts.former->start_time) {
    status.start_time = facts.former->start_time;
  } else {
    status.start_time = facts.info->first_seen;
  }
  return status;
}

/// It was never let in: nothing is said of its containers.
ReportedPodStatus RejectedStatus(const PodFacts& facts) {
  ReportedPodStatus status = Begun(facts);
  status.phase = "Failed";
  status.reason = facts.info->reason;
  status.message = "Pod was rejected: " + facts.info->message;
  for (Condition& condition : ConditionsOf(facts.pod, status, false)) {
    if (condition.reason == "PodFailed") {
      status.conditions.push_back(std::move(condition));
    }
  }
  SetTimes(facts, &status);
  return status;
}

bool HasRunning(const std::vector<ReportedContainerStatus>& containers) {
  return std::any_of(containers.begin(), containers.end(), [](const auto& one) {
    return one.state.kind == ReportedContainerState::Kind::kRunning;
  });
}

std::string RuntimeName(const RuntimeSnapshot& runtime) {
  return runtime.runtime.substr(0, runtime.runtime.find(' '));
}

/// Of the newest sandbox that has any.
std::vector<std::string> AddressesOf(const PodRun* run) {
  if (run == nullptr) return {};
  for (const SandboxRun& sandbox : run->sandboxes) {
    if (sandbox.ready && !sandbox.ips.empty()) return sandbox.ips;
  }
  return {};
}

ReportedPodStatus StatusByRuntime(const PodFacts& facts) {
  const PodRun* run = RunOf(*facts.runtime, PodUid{facts.pod.metadata.uid});
  const ContainerFacts containers{facts.pod, *facts.info, run, facts.former,
                                  RuntimeName(*facts.runtime)};
  ReportedPodStatus status = Begun(facts);
  status.pod_ips = AddressesOf(run);
  status.init_containers = InitContainerStatuses(containers);
  status.containers = AppContainerStatuses(containers);
  const bool is_failed = facts.failure != nullptr;
  const bool has_ended =
      IsStopped(facts) &&
      (is_failed || !facts.pod.metadata.deletion_timestamp.empty());
  if (has_ended) EndContainers(facts.pod, &status);
  status.phase = PhaseOf(facts.pod, status, has_ended);
  if (has_ended && (is_failed || !IsTerminalPhase(status.phase))) {
    status.phase = "Failed";
  }
  if (has_ended && is_failed) {
    status.reason = facts.failure->reason;
    status.message = facts.failure->message;
  }
  if (IsTerminalPhase(status.phase) &&
      (HasRunning(status.init_containers) || HasRunning(status.containers))) {
    // What it has is not to be had by others yet.
    status.phase = facts.former != nullptr ? facts.former->phase : "Pending";
  }
  const bool has_sandbox =
      run != nullptr && !run->sandboxes.empty() && run->sandboxes.front().ready;
  status.conditions = ConditionsOf(facts.pod, status, has_sandbox);
  if (is_failed && !facts.failure->condition.empty()) {
    Condition& condition = status.conditions.emplace_back();
    condition.type = facts.failure->condition;
    condition.status = "True";
    condition.reason = facts.failure->reason;
    condition.message = facts.failure->message;
  }
  SetTimes(facts, &status);
  return status;
}

}  // namespace

bool IsTerminalPhase(const std::string& phase) {
  return phase == "Succeeded" || phase == "Failed";
}

const PodRun* RunOf(const RuntimeSnapshot& runtime, const PodUid& uid) {
  const auto found = runtime.pods.find(uid);
  return found == runtime.pods.end() ? nullptr : found->second.get();
}

std::optional<ReportedPodStatus> StatusOf(const PodFacts& facts) {
  // What has ended does not begin again.
  if (facts.info == nullptr || IsTerminalPhase(facts.pod.status.phase)) {
    return std::nullopt;
  }
  if (facts.info->state == PodState::kRejected && facts.failure == nullptr) {
    if (Runs(facts)) return std::nullopt;
    return RejectedStatus(facts);
  }
  if (facts.runtime == nullptr || !facts.runtime->known) return std::nullopt;
  return StatusByRuntime(facts);
}

bool IsFinished(const PodFacts& facts) {
  return facts.info == nullptr &&
         !facts.pod.metadata.deletion_timestamp.empty() &&
         IsTerminalPhase(facts.pod.status.phase) && IsStopped(facts);
}

}  // namespace devmgr::podstatus
