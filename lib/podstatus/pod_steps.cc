// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_steps.h>

#include <algorithm>
#include <iterator>

#include "podstatus/containers.h"

namespace devmgr {
namespace {

using RunState = RuntimeContainer::State;

/// The newest attempt; null: there is none.
const ContainerRun* Newest(const PodRun& run, const std::string& name) {
  const ContainerRun* newest = nullptr;
  for (const ContainerRun& one : run.containers) {
    if (one.name != name) continue;
    if (newest == nullptr || one.attempt > newest->attempt) newest = &one;
  }
  return newest;
}

bool HasBegun(const PodRun& run, const std::string& name) {
  const ContainerRun* one = Newest(run, name);
  return one != nullptr && one->state != RunState::kCreated;
}

/// And it is known how. The runtime is asked for that after it was listed.
bool HasExited(const ContainerRun* one) {
  return one != nullptr && one->state == RunState::kExited && one->finished_at;
}

/// What has to go before anything is started.
std::optional<PodStep> CleanUp(const PodRun& run) {
  for (const SandboxRun& one : run.sandboxes) {
    // With its containers: the pod begins anew.
    if (!one.ready) return PodStep{"RemovePodSandbox", one.id};
  }
  for (const ContainerRun& one : run.containers) {
    // The runtime has lost sight of it.
    if (one.state == RunState::kUnknown) {
      return PodStep{"StopContainer", one.id};
    }
    // One that was created and never started may have devices of before; of
    // those that have exited the last one says how it went.
    if (one.state == RunState::kCreated ||
        (one.state == RunState::kExited && Newest(run, one.name) != &one)) {
      return PodStep{"RemoveContainer", one.id};
    }
  }
  return std::nullopt;
}

}  // namespace

PodSteps::PodSteps(const Pod& pod, RestartBackOff back_off)
    : restart_policy_(pod.spec.restart_policy), back_off_(back_off) {
  for (const Container& one : pod.spec.init_containers) {
    containers_.push_back(
        {one.name, podstatus::IsSidecar(one) ? Kind::kSidecar : Kind::kInit});
  }
  for (const Container& one : pod.spec.containers) {
    containers_.push_back({one.name, Kind::kApp});
  }
}

bool PodSteps::AnyAppHasBegun(const PodRun& run) const {
  return std::any_of(
      containers_.begin(), containers_.end(), [&](const Planned& planned) {
        return planned.kind == Kind::kApp && HasBegun(run, planned.name);
      });
}

/// It has ended for good. Sidecars never do.
bool PodSteps::IsDone(Kind kind, const ContainerRun* one) const {
  if (!HasExited(one)) return false;
  if (kind == Kind::kSidecar) return false;
  if (kind == Kind::kApp && restart_policy_ == "Always") return false;
  return restart_policy_ == "Never" || one->exit_code == 0;
}

/// When `exited` is to be followed by another attempt.
WallTime PodSteps::DueAt(Planned* planned, const ContainerRun& exited) const {
  const WallTime began = exited.started_at.value_or(*exited.finished_at);
  if (*exited.finished_at - began > 2 * back_off_.last) {
    planned->recovered_attempt = exited.attempt;
  }
  std::chrono::milliseconds delay{0};
  for (auto i = planned->recovered_attempt;
       i < exited.attempt && delay < back_off_.last; ++i) {
    delay = std::max(2 * delay, back_off_.first);
  }
  return *exited.finished_at + std::min(delay, back_off_.last);
}

PodStep PodSteps::StartNext(const PodRun& run, WallTime now) {
  const bool is_initialized = AnyAppHasBegun(run);
  PodStep wait;
  for (auto it = containers_.begin(); it != containers_.end(); ++it) {
    // Init containers are not run again once they have all ended.
    if (it->kind == Kind::kInit && is_initialized) continue;
    const bool is_app = it->kind == Kind::kApp;
    const ContainerRun* one = Newest(run, it->name);
    if (one == nullptr) return {"CreateContainer", it->name, 0, is_app};
    if (IsDone(it->kind, one)) continue;
    if (HasExited(one)) {
      const WallTime due = DueAt(&*it, *one);
      // A clock that was set back is not to hold it up.
      if (due <= now || *one->finished_at > now) {
        return {"CreateContainer", it->name, one->attempt + 1, is_app};
      }
      wait.until = std::min(wait.until.value_or(due), due);
    } else if (it->kind != Kind::kInit) {
      continue;
    }
    // Those behind it have to wait, unless one of them has begun already.
    const bool is_passed =
        is_app ||
        std::any_of(std::next(it), containers_.end(), [&](const auto& later) {
          return HasBegun(run, later.name);
        });
    if (!is_passed) break;
  }
  return wait;
}

std::string PodSteps::PhaseOf(const PodRun& run) const {
  const bool has_begun = AnyAppHasBegun(run);
  // With `Never` there is no second sandbox once a container has begun.
  const bool is_lost =
      restart_policy_ == "Never" && has_begun &&
      std::none_of(run.sandboxes.begin(), run.sandboxes.end(),
                   [](const auto& sandbox) { return sandbox.ready; });
  bool has_failed = false;
  for (const Planned& planned : containers_) {
    const ContainerRun* one = Newest(run, planned.name);
    const bool is_done = IsDone(planned.kind, one);
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

PodStep PodSteps::Next(const PodRun& run, WallTime now) {
  if (run.sandboxes.empty()) return {"RunPodSandbox"};
  if (const auto step = CleanUp(run)) return *step;
  return StartNext(run, now);
}

std::vector<std::vector<std::string>> PodSteps::StopOrder(
    const PodRun& run) const {
  std::vector<std::vector<std::string>> order(1);
  for (const Planned& planned : containers_) {
    const ContainerRun* one = Newest(run, planned.name);
    if (one == nullptr) continue;
    if (planned.kind == Kind::kSidecar) {
      order.insert(std::next(order.begin()), {one->id});
    } else {
      order.front().push_back(one->id);
    }
  }
  return order;
}

}  // namespace devmgr
