// SPDX-License-Identifier: Apache-2.0
#include "pod_worker.h"

#include <devmgr/pod_texts.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

namespace edge {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

/// How often the runtime is asked about what runs, as by the kubelet.
constexpr milliseconds kPeriod{1'000};
constexpr milliseconds kUntilWoken{std::chrono::hours(1)};
/// What is left of a grace period at the least, for each sidecar.
constexpr seconds kLeastGrace{2};

Time TimeOf(std::int64_t nanos) {
  return Time(std::chrono::duration_cast<Time::duration>(
      std::chrono::nanoseconds(nanos)));
}

/// The manifest of a pod; of two files that have it, the first by name counts,
/// as for the library.
absl::StatusOr<std::string> FindManifest(const fs::path& folder,
                                         const devmgr::ObjectName& name) {
  std::set<fs::path> files;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const fs::path suffix = file.path().extension();
    if (suffix == ".yaml" || suffix == ".yml" || suffix == ".json") {
      files.insert(file.path());
    }
  }
  for (const fs::path& file : files) {
    std::ifstream stream(file);
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    const auto pods = devmgr::PodTextsOf(text, file.string());
    if (!pods.ok()) continue;  // The manager reports it.
    for (const devmgr::PodText& pod : *pods) {
      if (pod.name == name) return pod.json;
    }
  }
  return absl::NotFoundError("no file of the manifests has it now");
}

}  // namespace

PodWorker::PodWorker(const Services& services, devmgr::PodUid uid,
                     devmgr::ObjectName name)
    : services_(services),
      uid_(std::move(uid)),
      name_(std::move(name)),
      places_{services.root / "pods" / uid_.value / "volumes",
              services.root / "logs" /
                  (name_.ns + "_" + name_.name + "_" + uid_.value)},
      thread_([this] { Run(); }) {}

void PodWorker::Wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  woken_ = true;
  wake_.notify_all();
}

void PodWorker::Run() {
  while (!done_) {
    const milliseconds wait = Turn();
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait_for(lock, wait, [this] { return woken_ || done_; });
    woken_ = false;
  }
}

milliseconds PodWorker::Turn() {
  SeenPod seen;
  Step step;
  absl::Status status = Look(&seen);
  const Goal goal = GoalNow();
  if (status.ok() && goal == Goal::kRun && !spec_) status = LoadSpec();
  if (status.ok()) {
    step = NextStep(spec_ ? spec_->plan : PodPlan(), seen, goal,
                    services_.back_off, std::chrono::system_clock::now());
    status = Take(step, seen);
  }
  if (!status.ok()) {
    const std::string text(status.message());
    if (std::exchange(last_error_, text) != text) Say(text);
    const BackOff& back_off = services_.back_off;
    retry_ = std::clamp(2 * retry_, back_off.first, back_off.last);
    return retry_;
  }
  if (step.kind != Step::Kind::kWait) {
    last_error_.clear();
    retry_ = milliseconds(0);
    return milliseconds(0);
  }
  milliseconds wait = kUntilWoken;
  for (const SeenSandbox& one : seen.sandboxes) {
    if (one.ready) wait = kPeriod;
  }
  if (!step.until) return wait;
  const auto left = *step.until - std::chrono::system_clock::now();
  return std::clamp(std::chrono::ceil<milliseconds>(left), milliseconds(0),
                    wait);
}

Goal PodWorker::GoalNow() const {
  const auto objects = services_.manager->Objects();
  const auto object = objects->pods.find(name_);
  const bool gone =
      objects->complete && (object == objects->pods.end() ||
                            object->second->metadata.uid != uid_.value);
  if (!gone && services_.ended->Has(name_)) return Goal::kEnd;
  const auto info = services_.manager->View()->PodInfoOf(uid_);
  // The manager knows no pod that is over, or that holds nothing and is gone.
  if (!info.ok()) return gone ? Goal::kGone : Goal::kHold;
  const bool released =
      info->state == devmgr::PodState::kReleasing ||
      std::any_of(info->waiting_for.begin(), info->waiting_for.end(),
                  [](const devmgr::WaitingFor& what) {
                    return what.kind == devmgr::WaitingFor::Kind::kRuntime;
                  });
  if (released) return Goal::kGone;
  return info->state == devmgr::PodState::kReady ? Goal::kRun : Goal::kHold;
}

absl::Status PodWorker::Look(SeenPod* seen) {
  const auto sandboxes = services_.cri->Sandboxes(kUidLabel, uid_.value);
  if (!sandboxes.ok()) return sandboxes.status();
  std::set<std::string> ours;
  for (const cri::PodSandbox& one : *sandboxes) {
    const auto root = one.labels().find(kRootLabel);
    if (root == one.labels().end() || root->second != services_.root) continue;
    ours.insert(one.id());
    seen->sandboxes.push_back({one.id(), one.metadata().attempt(),
                               one.state() == cri::SANDBOX_READY});
    attempt_ = std::max(attempt_, one.metadata().attempt());
    const auto manifest = one.annotations().find(kManifestAnnotation);
    if (spec_ || manifest == one.annotations().end()) continue;
    auto spec = ReadPodSpec(manifest->second, uid_);
    if (spec.ok()) spec_ = *std::move(spec);
  }
  const auto containers = services_.cri->ContainersOf(uid_.value);
  if (!containers.ok()) return containers.status();
  for (const cri::Container& one : *containers) {
    if (ours.count(one.pod_sandbox_id()) == 0) continue;
    SeenContainer container{one.id(), one.pod_sandbox_id(),
                            one.metadata().name(), one.metadata().attempt(),
                            static_cast<SeenContainer::State>(one.state())};
    const auto back_off = one.annotations().find(kBackOffAnnotation);
    if (back_off != one.annotations().end()) {
      container.back_off = milliseconds(std::atoll(back_off->second.c_str()));
    }
    if (one.state() == cri::CONTAINER_EXITED) {
      auto end = ends_.find(one.id());
      if (end == ends_.end()) {
        const auto status = services_.cri->StatusOf(one.id());
        if (!status.ok()) return status.status();
        end = ends_.emplace(one.id(), *status).first;
        Say("container '" + container.name + "', attempt " +
            std::to_string(container.attempt) + ", exited with code " +
            std::to_string(status->exit_code()) + " (" + status->reason() +
            ") " + status->message());
      }
      container.exit_code = end->second.exit_code();
      container.started_at = TimeOf(end->second.started_at());
      container.finished_at = TimeOf(end->second.finished_at());
    }
    seen->containers.push_back(std::move(container));
  }
  return absl::OkStatus();
}

absl::Status PodWorker::LoadSpec() {
  const auto text = FindManifest(services_.root / "manifests", name_);
  if (!text.ok()) return text.status();
  auto spec = ReadPodSpec(*text, uid_);
  if (!spec.ok()) return spec.status();
  spec_ = *std::move(spec);
  for (const std::string& what : spec_->ignored) Say("no effect: " + what);
  return absl::OkStatus();
}

absl::Status PodWorker::Take(const Step& step, const SeenPod& seen) {
  using Kind = Step::Kind;
  switch (step.kind) {
    case Kind::kWait:
      return absl::OkStatus();
    case Kind::kRunSandbox:
      return RunSandbox(step);
    case Kind::kStopSandbox:
      return services_.cri->DoWithSandbox("StopPodSandbox", step.id);
    case Kind::kRemoveSandbox:
      return services_.cri->DoWithSandbox("RemovePodSandbox", step.id);
    case Kind::kStartContainer:
      return StartContainer(step, seen);
    case Kind::kStopContainer:
      return services_.cri->StopContainer(step.id, seconds(0));
    case Kind::kRemoveContainer:
      return services_.cri->DoWithContainer("RemoveContainer", step.id);
    case Kind::kEnd: {
      const absl::Status status = StopAll(seen);
      if (!status.ok() || step.phase.empty()) return status;
      Say("the pod is over: " + step.phase);
      services_.ended->Add(name_, step.phase);
      return status;
    }
    case Kind::kRemovePod:
      return RemoveAll(seen);
    case Kind::kForget:
      done_ = true;
      return absl::OkStatus();
  }
  return absl::InternalError("unknown step");
}

absl::Status PodWorker::RunSandbox(const Step& step) {
  cri::RunPodSandboxRequest request;
  *request.mutable_config() =
      SandboxConfigOf(*spec_, step.attempt, places_, services_.root);
  std::error_code error;  // The runtime says so if it is not there.
  fs::create_directories(places_.logs, error);
  return services_.cri
      ->Call<cri::RunPodSandboxResponse>("RunPodSandbox", request, seconds(240))
      .status();
}

absl::StatusOr<cri::ContainerConfig> PodWorker::ConfigOf(const Step& step) {
  const devmgr::ContainerName name = step.container.name;
  auto devices = services_.manager->ContainerDevicesOf(uid_, name);
  if (!devices.ok()) return devices.status();
  auto config = ContainerConfigOf(*spec_, step, places_, **devices);
  if (!config.ok() || services_.cdi == nullptr) return config;
  devmgr::CriTarget target = services_.target;
  target.pod = name_.ToString();
  target.container = step.container.name;
  // A spec that was written just now counts; of what is wrong in directories
  // only the devices of this container matter, which the expansion reports.
  services_.cdi->Refresh().IgnoreError();
  const devmgr::CriExpansion expansion = devmgr::ExpandCdiForCri(
      *services_.cdi->Registry(), devmgr::CdiNamesOf(**devices), target);
  for (const std::string& warning : expansion.warnings) Say(warning);
  if (!expansion.verdict.ok()) return expansion.verdict;
  ReplaceCdiNames(expansion.edits, &*config);
  return config;
}

absl::Status PodWorker::StartContainer(const Step& step, const SeenPod& seen) {
  devmgr::DeviceManager& manager = *services_.manager;
  absl::Status status;
  if (step.container.kind == PlannedContainer::Kind::kApp) {
    status = manager.ReleaseInitContainers(uid_);
  }
  if (status.ok()) {
    status = manager.BeforeContainerStart(uid_, step.container.name);
  }
  if (!status.ok()) return status;
  auto config = ConfigOf(step);
  if (!config.ok()) return config.status();
  const std::string& image = config->image().image();
  const auto has_image = services_.cri->HasImage(image);
  if (!has_image.ok()) return has_image.status();
  if (!*has_image) {
    const std::string what = "container '" + step.container.name +
                             "': the runtime has no image '" + image +
                             "', and edge-kubelet pulls none: import it, with "
                             "containerd by `ctr -n k8s.io images import`";
    return absl::NotFoundError(absl::string_view(what));
  }
  cri::CreateContainerRequest request;
  for (const SeenSandbox& one : seen.sandboxes) {
    if (one.attempt == attempt_) request.set_pod_sandbox_id(one.id);
  }
  *request.mutable_config() = *std::move(config);
  *request.mutable_sandbox_config() =
      SandboxConfigOf(*spec_, attempt_, places_, services_.root);
  std::error_code error;  // As above.
  fs::create_directories(places_.logs / step.container.name, error);
  const auto created = services_.cri->Call<cri::CreateContainerResponse>(
      "CreateContainer", request);
  if (!created.ok()) return created.status();
  status =
      services_.cri->DoWithContainer("StartContainer", created->container_id());
  if (status.ok()) Say("container '" + step.container.name + "' started");
  return status;
}

absl::Status PodWorker::StopAll(const SeenPod& seen) {
  const seconds grace = spec_ ? spec_->grace : seconds(30);
  const auto end = std::chrono::steady_clock::now() + grace;
  std::map<std::string, std::size_t> sidecars;  // With their places.
  const PodPlan plan = spec_ ? spec_->plan : PodPlan();
  for (const PlannedContainer& one : plan.containers) {
    if (one.kind != PlannedContainer::Kind::kSidecar) continue;
    sidecars.emplace(one.name, sidecars.size());
  }
  // The last of them first.
  std::map<std::size_t, std::string, std::greater<>> later;
  std::vector<std::thread> calls;
  for (const SeenContainer& one : seen.containers) {
    if (one.state == SeenContainer::State::kExited) continue;
    if (const auto sidecar = sidecars.find(one.name);
        sidecar != sidecars.end()) {
      later[sidecar->second] = one.id;
      continue;
    }
    // What does not stop is stopped with its sandbox.
    calls.emplace_back([this, id = one.id, grace] {
      services_.cri->StopContainer(id, grace).IgnoreError();
    });
  }
  for (std::thread& call : calls) call.join();
  for (const auto& [place, id] : later) {
    const auto left = std::chrono::duration_cast<seconds>(
        end - std::chrono::steady_clock::now());
    services_.cri
        ->StopContainer(id, std::max(left, std::min(grace, kLeastGrace)))
        .IgnoreError();
  }
  for (const SeenSandbox& one : seen.sandboxes) {
    const auto status = services_.cri->DoWithSandbox("StopPodSandbox", one.id);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PodWorker::RemoveAll(const SeenPod& seen) {
  absl::Status status = StopAll(seen);
  if (!status.ok()) return status;
  std::error_code error;
  fs::remove_all(places_.volumes.parent_path(), error);
  fs::remove_all(places_.logs, error);
  for (const SeenSandbox& one : seen.sandboxes) {
    status = services_.cri->DoWithSandbox("RemovePodSandbox", one.id);
    if (!status.ok()) return status;
  }
  Say("the pod is removed");
  return status;
}

void PodWorker::Say(const std::string& text) const {
  services_.log("pod '" + name_.ToString() + "': " + text);
}

}  // namespace edge
