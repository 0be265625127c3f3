// SPDX-License-Identifier: Apache-2.0
//
// A pod, what the ledger has of it, and what a runtime runs of it.
#pragma once

#include <devmgr/runtime_source.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "podstatus/pod_status.h"

namespace devmgr::podstatus {

inline WallTime At(int seconds) {
  return WallTime(std::chrono::seconds(1'700'000'000 + seconds));
}

inline Container NamedContainer(const std::string& name,
                                const std::string& restart_policy = "") {
  Container container;
  container.name = name;
  container.image = "image-of-" + name;
  container.restart_policy = restart_policy;
  return container;
}

inline ContainerRun RunningContainer(const std::string& name,
                                     std::uint32_t attempt = 0) {
  ContainerRun run;
  run.id = name + "-" + std::to_string(attempt);
  run.name = name;
  run.attempt = attempt;
  run.state = RuntimeContainer::State::kRunning;
  run.image = "image-of-" + name;
  run.image_id = "sha256:" + name;
  run.started_at = At(10);
  return run;
}

inline ContainerRun ExitedContainer(const std::string& name, int exit_code,
                                    std::uint32_t attempt = 0) {
  ContainerRun run = RunningContainer(name, attempt);
  run.state = RuntimeContainer::State::kExited;
  run.exit_code = exit_code;
  run.finished_at = At(20);
  return run;
}

/// A node with the pod `ns/a`, of one container `c`, that is Ready.
struct KnownPod {
  KnownPod() {
    pod.metadata.ns = "ns";
    pod.metadata.name = "a";
    pod.metadata.uid = "u-a";
    pod.spec.containers = {NamedContainer("c")};
    info.name = {"ns", "a"};
    info.uid = PodUid{"u-a"};
    info.state = PodState::kReady;
    info.first_seen = At(0);
    runtime.known = true;
    runtime.runtime = "containerd 1.6.20";
    run.name = {"ns", "a"};
  }
  void AddSandbox(bool ready = true) {
    run.sandboxes.push_back({.id = "s", .ready = ready});
  }
  std::optional<ReportedPodStatus> Status() {
    Publish();
    return StatusOf(Facts());
  }
  bool Finished() {
    Publish();
    return IsFinished(Facts());
  }
  PodFacts Facts() {
    return {.pod = pod,
            .info = in_ledger ? &info : nullptr,
            .failure = failure ? &*failure : nullptr,
            .runtime = has_runtime ? &runtime : nullptr,
            .former = former ? &*former : nullptr,
            .now = now};
  }
  void Publish() {
    runtime.pods.clear();
    if (run.sandboxes.empty() && run.containers.empty()) return;
    runtime.pods[info.uid] = std::make_shared<const PodRun>(run);
  }

  Pod pod;
  PodInfo info;
  bool in_ledger = true;
  RuntimeSnapshot runtime;
  bool has_runtime = true;
  PodRun run;
  std::optional<PodFailure> failure;
  std::optional<ReportedPodStatus> former;
  WallTime now = At(100);
};

inline const Condition* FindCondition(const ReportedPodStatus& status,
                                      const std::string& type) {
  for (const Condition& condition : status.conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

}  // namespace devmgr::podstatus
