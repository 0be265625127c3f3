// SPDX-License-Identifier: Apache-2.0
#include "podstatus/phase.h"

#include <algorithm>

#include "podstatus/containers.h"

namespace devmgr::podstatus {
namespace {

using Kind = ReportedContainerState::Kind;

constexpr char kPending[] = "Pending";
constexpr char kRunning[] = "Running";
constexpr char kSucceeded[] = "Succeeded";
constexpr char kFailed[] = "Failed";

struct Counts {
  // Of init containers.
  int pending = 0;
  int failed = 0;
  int pending_sidecars = 0;
  // Of sidecars and the others.
  int running = 0;
  int waiting = 0;
  // Of the others.
  int stopped = 0;
  int succeeded = 0;
};

void CountInit(const ReportedContainerStatus& container, Counts* counts) {
  const auto& last = container.last_state;
  switch (container.state.kind) {
    case Kind::kTerminated:
      counts->failed += container.state.exit_code != 0 ? 1 : 0;
      break;
    case Kind::kWaiting:
      if (last.kind == Kind::kTerminated) {
        counts->failed += last.exit_code != 0 ? 1 : 0;
      } else {
        ++counts->pending;
      }
      break;
    case Kind::kRunning:
    case Kind::kNone:
      ++counts->pending;
      break;
  }
}

void CountSidecar(const ReportedContainerStatus& container, Counts* counts) {
  if (container.state.kind == Kind::kRunning) ++counts->running;
  if (container.state.kind == Kind::kWaiting &&
      container.last_state.kind != Kind::kTerminated) {
    ++counts->pending_sidecars;
    ++counts->waiting;
  }
}

void CountApp(const ReportedContainerStatus& container, Counts* counts) {
  switch (container.state.kind) {
    case Kind::kRunning:
      ++counts->running;
      break;
    case Kind::kTerminated:
      ++counts->stopped;
      counts->succeeded += container.state.exit_code == 0 ? 1 : 0;
      break;
    case Kind::kWaiting:
    case Kind::kNone:
      ++(container.last_state.kind == Kind::kTerminated ? counts->stopped
                                                        : counts->waiting);
      break;
  }
}

Counts CountsOf(const Pod& pod, const ReportedPodStatus& status) {
  Counts counts;
  const auto& spec = pod.spec;
  for (const Container& container : spec.init_containers) {
    const auto* found = FindStatus(status.init_containers, container.name);
    if (found == nullptr) continue;
    (IsSidecar(container) ? CountSidecar : CountInit)(*found, &counts);
  }
  for (const Container& container : spec.containers) {
    const auto* found = FindStatus(status.containers, container.name);
    if (found != nullptr) CountApp(*found, &counts);
  }
  return counts;
}

std::string PhaseOfStopped(const Pod& pod, const Counts& counts,
                           bool has_ended) {
  const std::string& policy = pod.spec.restart_policy;
  const bool is_good = counts.stopped == counts.succeeded;
  if (has_ended) return is_good ? kSucceeded : kFailed;
  // They are about to start again.
  if (policy == "Always") return kRunning;
  if (is_good) return kSucceeded;
  return policy == "Never" ? kFailed : kRunning;
}

}  // namespace

std::string PhaseOf(const Pod& pod, const ReportedPodStatus& status,
                    bool has_ended) {
  const Counts counts = CountsOf(pod, status);
  if (counts.failed > 0 && pod.spec.restart_policy == "Never") return kFailed;
  const bool has_begun = std::any_of(status.containers.begin(),
                                     status.containers.end(), HasStarted);
  if (counts.pending > 0 || (counts.pending_sidecars > 0 && !has_begun)) {
    return kPending;
  }
  if (counts.waiting > 0) return kPending;
  if (counts.running > 0) return kRunning;
  if (counts.stopped > 0) return PhaseOfStopped(pod, counts, has_ended);
  return kPending;
}

}  // namespace devmgr::podstatus
