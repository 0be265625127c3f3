// SPDX-License-Identifier: Apache-2.0
//
// What a program that runs pods does next for a pod: the order of init
// containers and sidecars, restarts, the end. For embedders that call a
// container runtime by themselves, in the place of a kubelet.
#pragma once

#include <devmgr/export.h>
#include <devmgr/objects.h>
#include <devmgr/runtime_source.h>
#include <devmgr/status_types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace devmgr {

/// How long a container that has ended waits until it is started again. As the
/// kubelet: the first restart is at once, the second one after `first`, doubled
/// from one to the next up to `last`; a container that ran for longer than
/// twice `last` begins anew.
struct RestartBackOff {
  std::chrono::milliseconds first{10'000};
  std::chrono::milliseconds last{300'000};
};

/// One thing to do.
struct PodStep {
  /// A method of CRI's RuntimeService: RunPodSandbox, CreateContainer,
  /// StopContainer, RemoveContainer, RemovePodSandbox. CreateContainer is to be
  /// followed by the container's StartContainer. Empty: there is nothing to do
  /// before `until`, or, without it, before something else changes.
  std::string method;
  /// The ID of a container or sandbox; of CreateContainer the container's name.
  std::string what = {};
  // Of CreateContainer.
  std::uint32_t attempt = 0;
  /// No init container is to run again; the devices that they alone hold can be
  /// given back (DeviceManager::ReleaseInitContainers).
  bool is_initialized = false;
  std::optional<WallTime> until = std::nullopt;
};

/// The steps of one pod. They follow from what the runtime has of the pod and
/// from nothing that is remembered, but for the times of a back-off that were
/// forgiven: after a restart of the process another one goes on where it was.
/// There is no more than one step at a time.
///
/// A pod whose sandbox was lost, as when the machine was off, begins anew with
/// all of its containers, unless its restart policy is `Never` and a container
/// has begun, or all of them have succeeded.
/// Pure; one thread at a time.
class DEVMGR_EXPORT PodSteps {
 public:
  /// Copies what it needs of the pod: its containers and restart policies.
  explicit PodSteps(const Pod& pod, RestartBackOff back_off = {});

  /// `Succeeded` or `Failed` when no container is to run any more, except
  /// sidecars, which are to be stopped; else empty.
  std::string PhaseOf(const PodRun& run) const;

  /// The step that is next while PhaseOf is empty. To be asked again with a new
  /// `run` after the step was taken, whether or not it succeeded.
  PodStep Next(const PodRun& run, WallTime now);

  /// The IDs of the containers to stop when the pod ends, in groups to be
  /// stopped one after the other: first all containers but sidecars, then the
  /// sidecars, the last one of the pod first. Stopping those that have ended is
  /// harmless, and they are among them.
  std::vector<std::vector<std::string>> StopOrder(const PodRun& run) const;

 private:
  enum class Kind { kInit, kSidecar, kApp };
  struct Planned {
    std::string name;
    Kind kind;
    /// Its crashes up to this attempt do not count any more.
    std::uint32_t recovered_attempt = 0;
  };

  bool AnyAppHasBegun(const PodRun& run) const;
  bool IsDone(Kind kind, const ContainerRun* one) const;
  WallTime DueAt(Planned* planned, const ContainerRun& exited) const;
  PodStep StartNext(const PodRun& run, WallTime now);

  std::string restart_policy_;
  RestartBackOff back_off_;
  /// Init containers and sidecars in their order, then the others.
  std::vector<Planned> containers_;
};

}  // namespace devmgr
