// SPDX-License-Identifier: Apache-2.0
#include "pod_steps.h"

#include <algorithm>

namespace edge {
namespace {

using Kind = PlannedContainer::Kind;
using State = SeenContainer::State;

class Steps {
 public:
  Steps(const PodPlan& plan, const SeenPod& seen, const BackOff& back_off,
        Time now)
      : plan_(plan), seen_(seen), back_off_(back_off), now_(now) {
    for (const SeenSandbox& sandbox : seen.sandboxes) {
      if (!sandbox_ || sandbox.attempt > sandbox_->attempt) sandbox_ = &sandbox;
    }
  }

  Step Next(Goal goal) {
    if (goal == Goal::kGone) {
      return {seen_.sandboxes.empty() ? Step::Kind::kForget
                                      : Step::Kind::kRemovePod};
    }
    const std::string phase = goal == Goal::kHold ? "" : PhaseOfEnd();
    if (goal == Goal::kEnd || !phase.empty()) {
      Step end{InUse() || goal == Goal::kRun ? Step::Kind::kEnd
                                             : Step::Kind::kWait};
      end.phase = phase;
      return end;
    }
    if (goal == Goal::kHold) return {};
    if (auto step = CleanUp()) return *step;
    if (sandbox_ == nullptr || !sandbox_->ready) {
      Step run{Step::Kind::kRunSandbox};
      run.attempt = sandbox_ == nullptr ? 0 : sandbox_->attempt + 1;
      return run;
    }
    if (auto step = StartNext()) return *step;
    Step wait;
    wait.until = due_;
    return wait;
  }

 private:
  /// The newest of that name: in all sandboxes, or in the present one.
  const SeenContainer* Newest(const std::string& name, bool present) const {
    const SeenContainer* newest = nullptr;
    for (const SeenContainer& one : seen_.containers) {
      if (one.name != name) continue;
      if (present && (!sandbox_ || one.sandbox_id != sandbox_->id)) continue;
      if (newest == nullptr || one.attempt > newest->attempt) newest = &one;
    }
    return newest;
  }

  bool InUse() const {
    return std::any_of(seen_.sandboxes.begin(), seen_.sandboxes.end(),
                       [](const auto& sandbox) { return sandbox.ready; }) ||
           std::any_of(seen_.containers.begin(), seen_.containers.end(),
                       [](const auto& one) { return MayRun(one); });
  }
  static bool MayRun(const SeenContainer& one) {
    return one.state == State::kRunning || one.state == State::kUnknown;
  }

  /// Whether it runs again after `exited`. Sidecars always do.
  bool Restarts(Kind kind, const SeenContainer& exited) const {
    if (kind == Kind::kSidecar) return true;
    if (kind == Kind::kInit) {
      return exited.exit_code != 0 && plan_.restart_policy != "Never";
    }
    return plan_.restart_policy == "Always" ||
           (plan_.restart_policy == "OnFailure" && exited.exit_code != 0);
  }

  bool AnyAppBegan(bool present) const {
    return std::any_of(plan_.containers.begin(), plan_.containers.end(),
                       [&](const PlannedContainer& planned) {
                         return planned.kind == Kind::kApp &&
                                Began(planned, present);
                       });
  }
  bool Began(const PlannedContainer& planned, bool present) const {
    const SeenContainer* one = Newest(planned.name, present);
    return one != nullptr && one->state != State::kCreated;
  }

  /// `Succeeded` or `Failed` when no container is to run any more; else empty.
  std::string PhaseOfEnd() const {
    const bool never = plan_.restart_policy == "Never";
    const bool began = AnyAppBegan(false);
    // With `Never` there is no second sandbox once a container has begun.
    const bool lost = never && began && (!sandbox_ || !sandbox_->ready);
    bool failed = false, all = !plan_.containers.empty();
    for (const PlannedContainer& planned : plan_.containers) {
      const SeenContainer* one = Newest(planned.name, false);
      const bool exited = one != nullptr && one->state == State::kExited;
      if (planned.kind == Kind::kInit && exited && one->exit_code != 0 &&
          never && !began) {
        return "Failed";
      }
      if (planned.kind != Kind::kApp) continue;
      if (exited && !Restarts(planned.kind, *one)) {
        failed = failed || one->exit_code != 0;
      } else if (lost && !exited) {
        failed = true;
      } else {
        all = false;
      }
    }
    return !all ? "" : failed ? "Failed" : "Succeeded";
  }

  /// What has to go before anything is started.
  std::optional<Step> CleanUp() const {
    for (const SeenContainer& one : seen_.containers) {
      const bool present = sandbox_ && one.sandbox_id == sandbox_->id;
      if (MayRun(one) && (!present || !sandbox_->ready)) {
        return Of(Step::Kind::kStopSandbox, one.sandbox_id);
      }
      if (one.state == State::kUnknown) {
        return Of(Step::Kind::kStopContainer, one.id);
      }
      // One that was created and never started may have devices of before; of
      // those that have exited the last one says how it went.
      if (one.state == State::kCreated ||
          (one.state == State::kExited && Newest(one.name, false) != &one)) {
        return Of(Step::Kind::kRemoveContainer, one.id);
      }
    }
    for (const SeenSandbox& old : seen_.sandboxes) {
      if (&old == sandbox_) continue;
      if (old.ready) return Of(Step::Kind::kStopSandbox, old.id);
      const bool empty = std::none_of(
          seen_.containers.begin(), seen_.containers.end(),
          [&](const auto& one) { return one.sandbox_id == old.id; });
      if (empty) return Of(Step::Kind::kRemoveSandbox, old.id);
    }
    return std::nullopt;
  }
  static Step Of(Step::Kind kind, const std::string& id) {
    Step step{kind};
    step.id = id;
    return step;
  }

  std::optional<Step> StartNext() {
    const bool initialized = AnyAppBegan(true);
    for (auto it = plan_.containers.begin(); it != plan_.containers.end();
         ++it) {
      // Init containers are not run again once they have all ended.
      if (it->kind == Kind::kInit && initialized) continue;
      const SeenContainer* one = Newest(it->name, it->kind != Kind::kApp);
      const bool done = one != nullptr && one->state == State::kExited &&
                        !Restarts(it->kind, *one);
      if (one == nullptr || (!done && one->sandbox_id != sandbox_->id)) {
        return Start(*it);
      }
      // It has ended, or is a sidecar or an app that runs.
      if (done || (one->state == State::kRunning && it->kind != Kind::kInit)) {
        continue;
      }
      if (one->state == State::kExited && IsDue(*one)) return Start(*it);
      // Those behind it have to wait, unless one of them has begun already.
      const bool passed =
          it->kind == Kind::kApp ||
          std::any_of(it + 1, plan_.containers.end(),
                      [&](const auto& later) { return Began(later, true); });
      if (!passed) return std::nullopt;
    }
    return std::nullopt;
  }

  /// It ran for so long that its crashes of before do not count.
  bool HasRecovered(const SeenContainer& exited) const {
    return exited.finished_at - exited.started_at > 2 * back_off_.last;
  }

  bool IsDue(const SeenContainer& exited) {
    if (HasRecovered(exited)) return true;
    const Time due = exited.finished_at + exited.back_off;
    // A clock that was set back is not to hold it up.
    if (due <= now_ || exited.finished_at > now_) return true;
    due_ = due_ ? std::min(*due_, due) : due;
    return false;
  }

  Step Start(const PlannedContainer& planned) const {
    Step step{Step::Kind::kStartContainer};
    step.container = planned;
    const SeenContainer* last = Newest(planned.name, false);
    if (last == nullptr) return step;
    step.attempt = last->attempt + 1;
    const bool anew = HasRecovered(*last) || last->back_off.count() == 0;
    step.back_off = anew ? std::min(back_off_.first, back_off_.last)
                         : std::min(2 * last->back_off, back_off_.last);
    return step;
  }

  const PodPlan& plan_;
  const SeenPod& seen_;
  const BackOff& back_off_;
  const Time now_;
  const SeenSandbox* sandbox_ = nullptr;  ///< The present one.
  std::optional<Time> due_;  ///< Of the first restart that has to wait.
};

}  // namespace

Step NextStep(const PodPlan& plan, const SeenPod& seen, Goal goal,
              const BackOff& back_off, Time now) {
  return Steps(plan, seen, back_off, now).Next(goal);
}

}  // namespace edge
