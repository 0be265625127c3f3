// SPDX-License-Identifier: Apache-2.0
#include "podstatus/containers.h"

#include <algorithm>
#include <utility>

namespace devmgr::podstatus {
namespace {

using State = ReportedContainerState;

// The kubelet's words.
constexpr char kContainerCreating[] = "ContainerCreating";
constexpr char kPodInitializing[] = "PodInitializing";
constexpr char kContainerStatusUnknown[] = "ContainerStatusUnknown";
constexpr int kLostExitCode = 137;

State LostState(const char* message) {
  return {.kind = State::Kind::kTerminated,
          .reason = kContainerStatusUnknown,
          .message = message,
          .exit_code = kLostExitCode};
}

std::string FullId(const std::string& runtime, const std::string& id) {
  return runtime.empty() ? id : runtime + "://" + id;
}

State TerminatedState(const ContainerRun& run, const std::string& runtime) {
  std::string reason = run.reason;
  if (reason.empty()) reason = run.exit_code == 0 ? "Completed" : "Error";
  return {.kind = State::Kind::kTerminated,
          .reason = std::move(reason),
          .message = run.message,
          .started_at = run.started_at,
          .finished_at = run.finished_at,
          .exit_code = run.exit_code,
          .container_id = FullId(runtime, run.id)};
}

State StateOf(const ContainerRun& run, const std::string& runtime,
              const ReportedContainerStatus* former) {
  switch (run.state) {
    case RuntimeContainer::State::kRunning:
      return {.kind = State::Kind::kRunning, .started_at = run.started_at};
    case RuntimeContainer::State::kExited:
      return TerminatedState(run, runtime);
    case RuntimeContainer::State::kCreated:
      return {.kind = State::Kind::kWaiting, .reason = kContainerCreating};
    case RuntimeContainer::State::kUnknown:
      break;
  }
  if (former != nullptr && former->state.kind == State::Kind::kTerminated) {
    return former->state;
  }
  if (former != nullptr && former->state.kind == State::Kind::kRunning) {
    return LostState(
        "The container could not be located when the pod was "
        "terminated");
  }
  return {.kind = State::Kind::kWaiting, .reason = kContainerStatusUnknown};
}

/// What the runtime has of a container, the newest first.
std::vector<const ContainerRun*> RunsOf(const PodRun* run,
                                        const std::string& name) {
  std::vector<const ContainerRun*> runs;
  if (run == nullptr) return runs;
  for (const ContainerRun& container : run->containers) {
    if (container.name == name) runs.push_back(&container);
  }
  std::stable_sort(runs.begin(), runs.end(), [](const auto* a, const auto* b) {
    return a->attempt > b->attempt;
  });
  return runs;
}

/// What is said of a container that the runtime does not have.
ReportedContainerStatus AbsentStatus(const ContainerFacts& facts,
                                     const Container& container,
                                     const ReportedContainerStatus* former) {
  if (former != nullptr && former->state.kind == State::Kind::kTerminated) {
    return *former;
  }
  ReportedContainerStatus status;
  status.name = container.name;
  status.image = container.image.str();
  status.state.kind = State::Kind::kWaiting;
  status.state.reason = facts.pod.spec.init_containers.empty()
                            ? kContainerCreating
                            : kPodInitializing;
  if (former == nullptr) return status;
  status.restart_count = former->restart_count;
  status.last_state = former->last_state;
  if (former->state.kind != State::Kind::kRunning) return status;
  if (facts.pod.metadata.deletion_timestamp.empty()) {
    status.last_state = LostState(
        "The container could not be located when the pod was "
        "deleted.  The container used to be Running");
    ++status.restart_count;
  } else {
    status.state = LostState(
        "The container could not be located when the pod was terminated");
  }
  return status;
}

ReportedContainerStatus PresentStatus(
    const ContainerFacts& facts, const std::vector<const ContainerRun*>& runs,
    const ReportedContainerStatus* former) {
  const ContainerRun& newest = *runs.front();
  ReportedContainerStatus status;
  status.name = newest.name;
  status.state = StateOf(newest, facts.runtime, former);
  status.restart_count = newest.attempt;
  status.image = newest.image;
  status.image_id = newest.image_id;
  status.container_id = FullId(facts.runtime, newest.id);
  if (runs.size() > 1) {
    status.last_state = StateOf(*runs[1], facts.runtime, nullptr);
    // One that never ran says nothing.
    if (status.last_state.kind == State::Kind::kWaiting) status.last_state = {};
  } else if (former != nullptr) {
    // The runtime removes old containers; what became of them is known.
    status.last_state = former->container_id == status.container_id ||
                                former->state.kind != State::Kind::kTerminated
                            ? former->last_state
                            : former->state;
  }
  return status;
}

ReportedContainerStatus StatusOfContainer(
    const ContainerFacts& facts, const Container& container,
    const std::vector<ReportedContainerStatus>* former) {
  const ReportedContainerStatus* last =
      former == nullptr ? nullptr : FindStatus(*former, container.name);
  const auto runs = RunsOf(facts.run, container.name);
  ReportedContainerStatus status = runs.empty()
                                       ? AbsentStatus(facts, container, last)
                                       : PresentStatus(facts, runs, last);
  status.allocated_resources.clear();
  for (const auto& of_container : facts.info.allocated_resources) {
    if (of_container.container.value != container.name) continue;
    status.allocated_resources = of_container.resources;
    for (ResourceStatus& resource : status.allocated_resources) {
      for (ResourceHealth& health : resource.resources) health.since = {};
    }
  }
  return status;
}

/// There are no probes: a container that runs is taken for ready. An init
/// container is when it has done its work.
void SetReady(bool does_end, ReportedContainerStatus* status) {
  const bool runs = status->state.kind == State::Kind::kRunning;
  const bool succeeded = status->state.kind == State::Kind::kTerminated &&
                         status->state.exit_code == 0;
  status->ready = does_end ? succeeded : runs;
  status->started = runs && !does_end;
}

/// `list`: which containers of the pod these are.
std::vector<ReportedContainerStatus> StatusesOf(
    const ContainerFacts& facts, const std::vector<Container>& containers,
    std::vector<ReportedContainerStatus> ReportedPodStatus::*list) {
  const bool is_init = list == &ReportedPodStatus::init_containers;
  std::vector<ReportedContainerStatus> statuses;
  for (const Container& container : containers) {
    statuses.push_back(StatusOfContainer(
        facts, container,
        facts.former == nullptr ? nullptr : &(facts.former->*list)));
    SetReady(is_init && !IsSidecar(container), &statuses.back());
  }
  return statuses;
}

}  // namespace

bool IsSidecar(const Container& container) {
  return container.restart_policy == "Always";
}

const ReportedContainerStatus* FindStatus(
    const std::vector<ReportedContainerStatus>& statuses,
    const std::string& name) {
  for (const ReportedContainerStatus& status : statuses) {
    if (status.name == name) return &status;
  }
  return nullptr;
}

bool HasStarted(const ReportedContainerStatus& container) {
  return container.state.kind == State::Kind::kRunning ||
         container.state.kind == State::Kind::kTerminated ||
         container.last_state.kind == State::Kind::kTerminated;
}

std::vector<ReportedContainerStatus> InitContainerStatuses(
    const ContainerFacts& facts) {
  return StatusesOf(facts, facts.pod.spec.init_containers,
                    &ReportedPodStatus::init_containers);
}

std::vector<ReportedContainerStatus> AppContainerStatuses(
    const ContainerFacts& facts) {
  return StatusesOf(facts, facts.pod.spec.containers,
                    &ReportedPodStatus::containers);
}

void EndContainers(const Pod& pod, ReportedPodStatus* status) {
  const auto end = [](ReportedContainerStatus& container) {
    if (container.state.kind == State::Kind::kTerminated) return;
    container.state = LostState(
        "The container could not be located when the pod was terminated");
    container.ready = false;
    container.started = false;
  };
  const auto was_begun = [](const ReportedContainerStatus& container) {
    return HasStarted(container);
  };
  const bool is_initialized = pod.spec.init_containers.empty() ||
                              std::any_of(status->containers.begin(),
                                          status->containers.end(), was_begun);
  // Init containers run in their order: those up to the last one that has
  // begun must have.
  auto& init = status->init_containers;
  const auto last = is_initialized
                        ? init.rbegin()
                        : std::find_if(init.rbegin(), init.rend(), was_begun);
  for (auto it = init.begin(); it != last.base(); ++it) end(*it);
  if (!is_initialized) return;
  for (ReportedContainerStatus& container : status->containers) end(container);
}

}  // namespace devmgr::podstatus
