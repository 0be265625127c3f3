// SPDX-License-Identifier: Apache-2.0
//
// What is to be done next for a pod, by what the runtime has of it: the order
// of init containers and sidecars, restarts and their back-off, the end. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace edge {

using std::chrono::milliseconds;
/// The runtime says when containers began and ended by the wall clock.
using Time = std::chrono::system_clock::time_point;

/// A container as its manifest wants it.
struct PlannedContainer {
  enum class Kind { kInit, kSidecar, kApp };
  std::string name;
  Kind kind = Kind::kApp;
};

struct PodPlan {
  std::string restart_policy = "Always";
  /// Init containers and sidecars in their order, then the others.
  std::vector<PlannedContainer> containers;
};

struct SeenContainer {
  enum class State { kCreated, kRunning, kExited, kUnknown };
  std::string id;
  std::string sandbox_id;
  std::string name;
  std::uint32_t attempt = 0;
  State state = State::kUnknown;
  /// How long its successor waits after its end; it was recorded with it, so
  /// that a crash loop is the same after a restart of this program.
  milliseconds back_off{0};
  // Of one that has exited.
  std::int32_t exit_code = 0;
  Time started_at;
  Time finished_at;
};

struct SeenSandbox {
  std::string id;
  std::uint32_t attempt = 0;
  bool ready = false;
};

/// What the runtime has of a pod. Of its sandboxes the one with the highest
/// attempt counts; containers of others only say what was tried before.
struct SeenPod {
  std::vector<SeenSandbox> sandboxes;
  std::vector<SeenContainer> containers;
};

/// As the kubelet: the first restart is at once, then after `first`, doubled up
/// to `last`; a container that ran for twice as long as `last` begins anew.
struct BackOff {
  milliseconds first{10'000};
  milliseconds last{300'000};
};

enum class Goal {
  kHold,  ///< The pod has no devices now: nothing of it is started or ended.
  kRun,
  kEnd,   ///< It is over; what the runtime knows of it stays.
  kGone,  ///< It is not wanted any more: nothing of it is to stay.
};

struct Step {
  enum class Kind {
    kWait,             ///< `until`, or until something changes.
    kRunSandbox,       ///< With `attempt`.
    kStopSandbox,      ///< `id`
    kRemoveSandbox,    ///< `id`
    kStartContainer,   ///< `container`, with `attempt` and `back_off`.
    kStopContainer,    ///< `id`, at once: the runtime has lost sight of it.
    kRemoveContainer,  ///< `id`
    kEnd,              ///< Stop all that runs; the pod is over, as `phase`.
    kRemovePod,        ///< Stop all that runs, and remove it.
    kForget,           ///< Nothing of it is left.
  };
  Kind kind = Kind::kWait;
  std::string id;
  PlannedContainer container;
  std::uint32_t attempt = 0;
  milliseconds back_off{0};
  std::optional<Time> until;
  std::string phase;  ///< `Succeeded` or `Failed`; empty when it was known.
};

/// The step that is next. To be asked again after it was taken, whether or not
/// it succeeded.
Step NextStep(const PodPlan& plan, const SeenPod& seen, Goal goal,
              const BackOff& back_off, Time now);

}  // namespace edge
