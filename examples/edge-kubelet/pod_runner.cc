// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_texts.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <iterator>
#include <set>
#include <thread>

#include "node.h"

namespace edge {
namespace {

namespace fs = std::filesystem;
using devmgr::PodRun;
using std::chrono::seconds;

constexpr milliseconds kAtOnce{0};
constexpr milliseconds kRetry{2'000};
constexpr seconds kPatience{120};

absl::Status WriteFile(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path draft = file.parent_path() / "draft";
  std::ofstream stream(draft);
  stream << text << std::flush;
  if (stream) fs::rename(draft, file, error);
  if (stream && !error) return absl::OkStatus();
  return absl::UnavailableError("cannot write '" + file.string() + "'");
}

class PodRunner {
 public:
  PodRunner(Node* node, const PodId& pod)
      : node_(*node),
        pod_(pod),
        folder_(node->FolderOf(pod)),
        logs_(node->root / "logs" / folder_.filename()) {}

  void Run() {
    std::string last_error;
    while (!is_gone_) {
      const absl::StatusOr<milliseconds> wait = Turn();
      const std::string error(wait.status().message());
      if (!error.empty() && error != last_error) Say(error);
      last_error = error;
      if (!is_gone_) std::this_thread::sleep_for(wait.value_or(kRetry));
    }
  }

 private:
  /// Takes one step; how long to wait for the next.
  absl::StatusOr<milliseconds> Turn() {
    const auto info = node_.manager->View()->PodInfoOf(pod_.uid);
    const bool is_over = node_.pods->Has(pod_.name);
    // The manager knows no pod that is over, or that is gone and holds nothing.
    const bool is_gone =
        is_over || !info.ok() ? !HasManifest() : IsReleased(*info);
    const bool is_ready = info.ok() && info->state == devmgr::PodState::kReady;
    if (!is_gone && !is_over && !is_ready) return kPeriod;
    const auto run = Look();
    if (!run.ok()) return run.status();
    absl::Status status = ReadPlan();
    if (is_gone) {
      status = Remove(*run);
    } else if (is_over) {
      if (!run->IsRunning()) return kPeriod;
      status = StopAll(*run);
    } else if (status.ok()) {
      return TakeStep(*run);
    }
    if (!status.ok()) return status;
    return kAtOnce;
  }

  absl::StatusOr<milliseconds> TakeStep(const PodRun& run) {
    absl::Status status;
    const std::string phase = PhaseOf(plan_, run);
    const WallTime now = std::chrono::system_clock::now();
    const Step step = NextStep(&plan_, run, node_.back_off, now);
    if (!phase.empty()) {
      status = StopAll(run);
      if (status.ok()) status = node_.End(pod_, phase);
      if (status.ok()) Say("the pod is over: " + phase);
    } else if (step.call == "RunPodSandbox") {
      status = RunSandbox();
    } else if (step.call == "CreateContainer") {
      status = StartContainer(step, run);
    } else if (!step.call.empty()) {
      status = Call(step.call, step.what);
    } else {
      const WallTime until = step.until.value_or(now + kPeriod);
      return std::min(std::chrono::ceil<milliseconds>(until - now), kPeriod);
    }
    if (!status.ok()) return status;
    return kAtOnce;
  }

  bool HasManifest() const {
    const auto objects = node_.manager->Objects();
    const auto pod = objects->pods.find(pod_.name);
    if (pod != objects->pods.end()) {
      return pod->second->metadata.uid == pod_.uid.value;
    }
    // A directory without the manager's marker may not be mounted yet.
    return !objects->complete || objects->marker.empty();
  }

  static bool IsReleased(const devmgr::PodInfo& info) {
    return info.state == devmgr::PodState::kReleasing ||
           std::any_of(info.waiting_for.begin(), info.waiting_for.end(),
                       [](const devmgr::WaitingFor& what) {
                         return what.kind == devmgr::WaitingFor::Kind::kRuntime;
                       });
  }

  /// What the runtime has of the pod now.
  absl::StatusOr<PodRun> Look() const {
    const auto looked = std::make_shared<std::promise<void>>();
    const std::future<void> end = looked->get_future();
    if (node_.runtime->Refresh([looked] { looked->set_value(); })) end.wait();
    const auto runtime = node_.runtime->Snapshot();
    if (!runtime->known) return absl::UnavailableError(runtime->reason);
    const auto found = runtime->pods.find(pod_.uid);
    return found == runtime->pods.end() ? PodRun() : *found->second;
  }

  /// Once the pod has begun, its manifest is what it was then.
  absl::Status ReadPlan() {
    if (!plan_.containers.empty()) return absl::OkStatus();
    manifest_ = ReadFile(folder_ / "manifest.json");
    if (manifest_.empty()) manifest_ = FindManifest();
    auto plan = ReadPod(manifest_, pod_.uid.value, folder_ / "volumes");
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    plan_.sandbox.set_log_directory(logs_.string());
    if (!plan_.ignored.empty()) Say("these have no effect:" + plan_.ignored);
    return absl::OkStatus();
  }

  /// Of two files that have the pod the first by name counts, as for the
  /// library.
  std::string FindManifest() const {
    std::error_code error;
    std::set<fs::path> files;
    for (const auto& file :
         fs::directory_iterator(node_.root / "manifests", error)) {
      files.insert(file.path());
    }
    for (const fs::path& file : files) {
      const fs::path suffix = file.extension();
      if (suffix != ".yaml" && suffix != ".yml" && suffix != ".json") continue;
      const auto pods = devmgr::PodTextsOf(ReadFile(file), file.string());
      if (!pods.ok()) continue;  // The manager reports it.
      for (const devmgr::PodText& pod : *pods) {
        if (pod.name == pod_.name) return pod.json;
      }
    }
    return "";
  }

  absl::Status RunSandbox() {
    absl::Status status = WriteFile(folder_ / "manifest.json", manifest_);
    if (!status.ok()) return status;
    std::error_code error;  // The runtime says so if they are not there.
    for (const PlannedContainer& one : plan_.containers) {
      fs::create_directories(logs_ / one.name, error);
    }
    for (const std::string& name : plan_.empty_dirs) {
      fs::create_directories(folder_ / "volumes" / name, error);
      fs::permissions(folder_ / "volumes" / name, fs::perms::all, error);
    }
    cri::RunPodSandboxRequest request;
    *request.mutable_config() = plan_.sandbox;
    return node_.cri
        .Call("RuntimeService/RunPodSandbox", request, 2 * kPatience)
        .status();
  }

  absl::Status StartContainer(const Step& step, const PodRun& run) {
    const auto planned =
        std::find_if(plan_.containers.begin(), plan_.containers.end(),
                     [&](const auto& one) { return one.name == step.what; });
    absl::Status status = CheckImage(planned->config.image());
    if (status.ok() && planned->kind == PlannedContainer::Kind::kApp) {
      status = node_.manager->ReleaseInitContainers(pod_.uid);
    }
    if (!status.ok()) return status;
    cri::CreateContainerRequest request;
    request.set_pod_sandbox_id(run.sandboxes.front().id);
    *request.mutable_sandbox_config() = plan_.sandbox;
    *request.mutable_config() = planned->config;
    request.mutable_config()->mutable_metadata()->set_attempt(step.attempt);
    request.mutable_config()->set_log_path(
        step.what + "/" + std::to_string(step.attempt) + ".log");
    const auto created = node_.cri.Call<cri::CreateContainerResponse>(
        "RuntimeService/CreateContainer", request, kPatience);
    if (!created.ok()) return created.status();
    status = Call("StartContainer", created->container_id());
    if (status.ok()) Say("container '" + step.what + "' started");
    return status;
  }

  absl::Status CheckImage(const cri::ImageSpec& image) const {
    cri::ImageStatusRequest request;
    *request.mutable_image() = image;
    const auto answer = node_.cri.Call<cri::ImageStatusResponse>(
        "ImageService/ImageStatus", request, kPatience);
    if (!answer.ok() || answer->has_image()) return answer.status();
    return absl::NotFoundError("the runtime has no image '" + image.image() +
                               "', and edge-kubelet pulls none");
  }

  /// Of a method that takes the ID of a sandbox or a container, which is the
  /// first field of all such requests.
  absl::Status Call(const std::string& method, const std::string& id,
                    seconds grace = seconds(0)) const {
    cri::StopContainerRequest request;
    request.set_container_id(id);
    request.set_timeout(grace.count());
    return node_.cri
        .Call("RuntimeService/" + method, request, kPatience + grace)
        .status();
  }

  /// Sidecars after the others, the last one first.
  absl::Status StopAll(const PodRun& run) const {
    const auto stop = [&](const PlannedContainer& planned) {
      // What does not stop is stopped with its sandbox.
      if (const auto* one = Newest(run, planned.name)) {
        Call("StopContainer", one->id, plan_.grace).IgnoreError();
      }
    };
    std::vector<std::future<void>> calls;
    for (const PlannedContainer& one : plan_.containers) {
      if (one.kind == PlannedContainer::Kind::kSidecar) continue;
      calls.push_back(std::async(std::launch::async, stop, std::cref(one)));
    }
    calls.clear();  // When they have ended.
    for (std::size_t i = plan_.containers.size(); i-- > 0;) {
      const PlannedContainer& one = plan_.containers[i];
      if (one.kind == PlannedContainer::Kind::kSidecar) stop(one);
    }
    return CallForSandboxes("StopPodSandbox", run);
  }

  absl::Status Remove(const PodRun& run) {
    absl::Status status = StopAll(run);
    if (status.ok()) status = CallForSandboxes("RemovePodSandbox", run);
    if (!status.ok()) return status;
    std::error_code error;
    // Another pod of that name may be over, too.
    const bool was_over = fs::exists(folder_ / "phase", error);
    fs::remove_all(logs_, error);
    fs::remove_all(folder_, error);
    if (was_over) node_.pods->Set(pod_.name, "");
    if (!run.sandboxes.empty()) Say("the pod is removed");
    is_gone_ = true;
    return status;
  }

  absl::Status CallForSandboxes(const std::string& method,
                                const PodRun& run) const {
    for (const devmgr::SandboxRun& one : run.sandboxes) {
      const absl::Status status = Call(method, one.id);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  void Say(const std::string& text) const {
    Log("pod '" + pod_.name.ToString() + "': " + text);
  }

  Node& node_;
  const PodId pod_;
  const fs::path folder_;
  const fs::path logs_;
  std::string manifest_;
  PodPlan plan_;  ///< Of `manifest_`; without containers while it is unknown.
  bool is_gone_ = false;
};

}  // namespace

std::string ReadFile(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

absl::Status Node::End(const PodId& pod, const std::string& phase) {
  const absl::Status status = WriteFile(FolderOf(pod) / "phase", phase);
  pods->Set(pod.name, phase);
  return status;
}

void RunPod(Node* node, const PodId& pod) { PodRunner(node, pod).Run(); }

}  // namespace edge
