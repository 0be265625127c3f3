// SPDX-License-Identifier: Apache-2.0
#include "podstatus/conditions.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

#include "podstatus/containers.h"

namespace devmgr::podstatus {
namespace {

constexpr char kTrue[] = "True";
constexpr char kFalse[] = "False";
constexpr char kPodCompleted[] = "PodCompleted";
constexpr char kPodFailed[] = "PodFailed";

using Names = std::vector<std::string>;

Condition Made(const char* type, bool is_true, std::string reason = "",
               std::string message = "") {
  Condition condition;
  condition.type = type;
  condition.status = is_true ? kTrue : kFalse;
  condition.reason = std::move(reason);
  condition.message = std::move(message);
  return condition;
}

/// As the kubelet writes a list of containers.
std::string ContainersText(const char* what, const Names& names) {
  return fmt::format("containers with {} status: [{}]", what,
                     fmt::join(names, " "));
}

Condition Initialized(const Pod& pod, const ReportedPodStatus& status) {
  constexpr char kType[] = "Initialized";
  if (status.phase == "Succeeded") return Made(kType, true, kPodCompleted);
  const bool has_begun = std::any_of(status.containers.begin(),
                                     status.containers.end(), HasStarted);
  if (has_begun) return Made(kType, true);
  Names incomplete;
  for (const Container& container : pod.spec.init_containers) {
    const auto* found = FindStatus(status.init_containers, container.name);
    const bool is_complete =
        found != nullptr &&
        (IsSidecar(container) ? found->started : found->ready);
    if (!is_complete) incomplete.push_back(container.name);
  }
  if (incomplete.empty()) return Made(kType, true);
  return Made(kType, false, "ContainersNotInitialized",
              ContainersText("incomplete", incomplete));
}

Condition ContainersReady(const Pod& pod, const ReportedPodStatus& status) {
  constexpr char kType[] = "ContainersReady";
  if (status.phase == "Succeeded") return Made(kType, false, kPodCompleted);
  if (status.phase == "Failed") return Made(kType, false, kPodFailed);
  Names unready;
  const auto look = [&](const auto& statuses, const Container& container) {
    const auto* found = FindStatus(statuses, container.name);
    if (found == nullptr || !found->ready) unready.push_back(container.name);
  };
  for (const Container& container : pod.spec.init_containers) {
    if (IsSidecar(container)) look(status.init_containers, container);
  }
  for (const Container& container : pod.spec.containers) {
    look(status.containers, container);
  }
  if (unready.empty()) return Made(kType, true);
  return Made(kType, false, "ContainersNotReady",
              ContainersText("unready", unready));
}

Condition Ready(const Pod& pod, const Condition& containers) {
  constexpr char kType[] = "Ready";
  if (containers.status != kTrue) {
    return Made(kType, false, containers.reason, containers.message);
  }
  Names problems;
  for (const std::string& gate : pod.spec.readiness_gates) {
    const auto found = pod.status.gate_conditions.find(gate);
    if (found == pod.status.gate_conditions.end()) {
      problems.push_back(
          fmt::format("corresponding condition of pod readiness gate \"{}\" "
                      "does not exist.",
                      gate));
    } else if (found->second != kTrue) {
      problems.push_back(
          fmt::format("the status of pod readiness gate \"{}\" is not "
                      "\"True\", but {}",
                      gate, found->second));
    }
  }
  if (problems.empty()) return Made(kType, true);
  return Made(kType, false, "ReadinessGatesNotReady",
              fmt::format("{}", fmt::join(problems, ", ")));
}

}  // namespace

std::vector<Condition> ConditionsOf(const Pod& pod,
                                    const ReportedPodStatus& status,
                                    bool has_sandbox) {
  const Condition containers = ContainersReady(pod, status);
  return {Made("PodReadyToStartContainers", has_sandbox),
          Initialized(pod, status), Ready(pod, containers), containers};
}

}  // namespace devmgr::podstatus
