// SPDX-License-Identifier: Apache-2.0
#include "admission/release_hold.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include "api/meta.h"

namespace devmgr::admission {
namespace {

constexpr std::size_t kMostNames = 3;

std::string TimeIn(WallTime time) {
  return api::TimestampOf(std::chrono::duration_cast<std::chrono::milliseconds>(
                              time.time_since_epoch())
                              .count());
}

/// `, ` and what began when; nothing when that is not known.
std::string SinceText(const char* what, WallTime time) {
  if (time == WallTime()) return "";
  return fmt::format(", {} {}", what, TimeIn(time));
}

std::string TextOfOne(const ContainerRun& container) {
  const std::string since =
      container.started_at.has_value()
          ? SinceText("which runs since", *container.started_at)
          : SinceText("which was created at", container.created_at);
  return fmt::format("waits until container '{}' of the pod has ended{}",
                     container.name, since);
}

std::string TextOfSome(const std::vector<const ContainerRun*>& containers) {
  std::string names;
  for (std::size_t i = 0; i < std::min(containers.size(), kMostNames); ++i) {
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", containers[i]->name);
  }
  if (containers.size() > kMostNames) {
    names += fmt::format(" and {} more", containers.size() - kMostNames);
  }
  return fmt::format("waits until containers {} of the pod have ended", names);
}

std::string TextOfRun(const PodRun& pod) {
  std::vector<const ContainerRun*> running;
  for (const ContainerRun& container : pod.containers) {
    if (container.state == RuntimeContainer::State::kExited) continue;
    running.push_back(&container);
  }
  if (running.size() == 1) return TextOfOne(*running.front());
  if (!running.empty()) return TextOfSome(running);
  const auto ready =
      std::find_if(pod.sandboxes.begin(), pod.sandboxes.end(),
                   [](const SandboxRun& sandbox) { return sandbox.ready; });
  return "waits until the sandbox of the pod has stopped" +
         SinceText("which was created at", ready->created_at);
}

}  // namespace

WaitingFor RuntimeAwaited(const std::string& source) {
  constexpr std::string_view kKind = "runtime ";
  return {WaitingFor::Kind::kRuntime,
          source.rfind(kKind, 0) == 0 ? source.substr(kKind.size()) : source};
}

Verdict WhyReleaseAsks(const std::string& source, WallTime since) {
  return {Verdict::Kind::kWait,
          kRuntimeUnknown,
          fmt::format("waits until {} has answered what it runs{}", source,
                      SinceText("for which it is asked since", since)),
          {RuntimeAwaited(source)}};
}

Verdict WhyEvictionWaits() {
  return {Verdict::Kind::kWait,
          kRuntimeUnknown,
          "no container runtime is configured that could say what runs: the "
          "devices are held until the pod is gone",
          {}};
}

std::optional<Verdict> WhyReleaseWaits(const RuntimeSnapshot& runtime,
                                       const PodUid& pod,
                                       const std::string& source) {
  Verdict wait{
      Verdict::Kind::kWait, kRuntimeUnknown, "", {RuntimeAwaited(source)}};
  if (!runtime.known) {
    wait.message =
        fmt::format("waits because it is not known what {} runs{}: {}", source,
                    SinceText("since", runtime.since), runtime.reason);
    return wait;
  }
  const auto run = runtime.pods.find(pod);
  if (run == runtime.pods.end() || !run->second->IsRunning()) {
    return std::nullopt;
  }
  wait.reason = kContainersRunning;
  wait.message = TextOfRun(*run->second);
  return wait;
}

}  // namespace devmgr::admission
