// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "pod.h"

namespace edge {
namespace {

using devmgr::ContainerRun;
using devmgr::PodRun;
using Kind = PlannedContainer::Kind;
using State = devmgr::RuntimeContainer::State;

bool HasBegun(const PodRun& run, const PlannedContainer& planned) {
  const ContainerRun* one = Newest(run, planned.name);
  return one != nullptr && one->state != State::kCreated;
}

bool AnyAppHasBegun(const PodPlan& plan, const PodRun& run) {
  return std::any_of(plan.containers.begin(), plan.containers.end(),
                     [&](const PlannedContainer& planned) {
                       return planned.kind == Kind::kApp &&
                              HasBegun(run, planned);
                     });
}

/// And it is known how. The runtime is asked for that after it was listed.
bool HasExited(const ContainerRun* one) {
  return one != nullptr && one->state == State::kExited && one->finished_at;
}

/// It has ended for good. Sidecars never do.
bool IsDone(const PodPlan& plan, Kind kind, const ContainerRun* one) {
  if (!HasExited(one)) return false;
  if (kind == Kind::kSidecar) return false;
  if (kind == Kind::kApp && plan.restart_policy == "Always") return false;
  return plan.restart_policy == "Never" || one->exit_code == 0;
}

/// When `exited` is to be followed by another attempt.
WallTime DueAt(PlannedContainer* planned, const ContainerRun& exited,
               const BackOff& back_off) {
  const WallTime began = exited.started_at.value_or(*exited.finished_at);
  if (*exited.finished_at - began > 2 * back_off.last) {
    planned->recovered_attempt = exited.attempt;
  }
  milliseconds delay{0};
  for (auto i = planned->recovered_attempt;
       i < exited.attempt && delay < back_off.last; ++i) {
    delay = std::max(2 * delay, back_off.first);
  }
  return *exited.finished_at + std::min(delay, back_off.last);
}

/// What has to go before anything is started.
std::optional<Step> CleanUp(const PodRun& run) {
  for (const devmgr::SandboxRun& one : run.sandboxes) {
    // With its containers: the pod begins anew.
    if (!one.ready) return Step{"RemovePodSandbox", one.id};
  }
  for (const ContainerRun& one : run.containers) {
    // The runtime has lost sight of it.
    if (one.state == State::kUnknown) return Step{"StopContainer", one.id};
    // One that was created and never started may have devices of before; of
    // those that have exited the last one says how it went.
    if (one.state == State::kCreated ||
        (one.state == State::kExited && Newest(run, one.name) != &one)) {
      return Step{"RemoveContainer", one.id};
    }
  }
  return std::nullopt;
}

Step StartNext(PodPlan* plan, const PodRun& run, const BackOff& back_off,
               WallTime now) {
  const bool is_initialized = AnyAppHasBegun(*plan, run);
  Step wait;
  for (auto it = plan->containers.begin(); it != plan->containers.end(); ++it) {
    // Init containers are not run again once they have all ended.
    if (it->kind == Kind::kInit && is_initialized) continue;
    const ContainerRun* one = Newest(run, it->name);
    if (one == nullptr) return {"CreateContainer", it->name};
    if (IsDone(*plan, it->kind, one)) continue;
    if (HasExited(one)) {
      const WallTime due = DueAt(&*it, *one, back_off);
      // A clock that was set back is not to hold it up.
      if (due <= now || *one->finished_at > now) {
        return {"CreateContainer", it->name, one->attempt + 1};
      }
      wait.until = std::min(wait.until.value_or(due), due);
    } else if (it->kind != Kind::kInit) {
      continue;
    }
    // Those behind it have to wait, unless one of them has begun already.
    const bool is_passed =
        it->kind == Kind::kApp ||
        std::any_of(it + 1, plan->containers.end(),
                    [&](const auto& later) { return HasBegun(run, later); });
    if (!is_passed) break;
  }
  return wait;
}

}  // namespace

const ContainerRun* Newest(const PodRun& run, const std::string& name) {
  const ContainerRun* newest = nullptr;
  for (const ContainerRun& one : run.containers) {
    if (one.name != name) continue;
    if (newest == nullptr || one.attempt > newest->attempt) newest = &one;
  }
  return newest;
}

std::string PhaseOf(const PodPlan& plan, const PodRun& run) {
  const bool never = plan.restart_policy == "Never";
  const bool has_begun = AnyAppHasBegun(plan, run);
  // With `Never` there is no second sandbox once a container has begun.
  const bool is_lost =
      never && has_begun &&
      std::none_of(run.sandboxes.begin(), run.sandboxes.end(),
                   [](const auto& sandbox) { return sandbox.ready; });
  bool has_failed = false;
  for (const PlannedContainer& planned : plan.containers) {
    const ContainerRun* one = Newest(run, planned.name);
    const bool is_done = IsDone(plan, planned.kind, one);
    const bool failed = !is_done || one->exit_code != 0;
    if (planned.kind == Kind::kApp) {
      if (!is_done && !is_lost) return "";
      has_failed = has_failed || failed;
    } else if (is_done && failed && !has_begun) {
      return "Failed";
    }
  }
  return has_failed ? "Failed" : "Succeeded";
}

Step NextStep(PodPlan* plan, const PodRun& run, const BackOff& back_off,
              WallTime now) {
  if (run.sandboxes.empty()) return {"RunPodSandbox"};
  if (const auto step = CleanUp(run)) return *step;
  return StartNext(plan, run, back_off, now);
}

}  // namespace edge
