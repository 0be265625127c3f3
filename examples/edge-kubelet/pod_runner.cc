// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_texts.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <thread>

#include "node.h"
#include "pod.h"

namespace edge {
namespace {

namespace fs = std::filesystem;
using devmgr::PodRun;
using devmgr::PodStep;
using devmgr::WallTime;
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
    const bool is_over = !node_.pods->PhaseOf(pod_.name).empty();
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
    const std::string phase = steps_->PhaseOf(run);
    const WallTime now = std::chrono::system_clock::now();
    const PodStep step = steps_->Next(run, now);
    if (!phase.empty()) {
      status = StopAll(run);
      if (status.ok()) status = node_.End(pod_, phase);
      if (status.ok()) Say("the pod is over: " + phase);
    } else if (step.method == "RunPodSandbox") {
      status = RunSandbox();
    } else if (step.method == "CreateContainer") {
      status = StartContainer(step, run);
    } else if (!step.method.empty()) {
      status = Call(step.method, step.what);
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
    if (steps_.has_value()) return absl::OkStatus();
    manifest_ = ReadFile(folder_ / "manifest.json");
    if (manifest_.empty()) {
      auto found = devmgr::FindPodText(node_.root / "manifests", pod_.name);
      if (!found.ok()) return found.status();
      manifest_ = std::move(found->json);
    }
    auto plan = ReadPod(manifest_, pod_.uid.value, folder_ / "volumes");
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    plan_.sandbox.set_log_directory(logs_.string());
    steps_.emplace(plan_.pod, node_.back_off);
    if (!plan_.ignored.empty()) Say("these have no effect:" + plan_.ignored);
    return absl::OkStatus();
  }

  absl::Status RunSandbox() {
    absl::Status status = WriteFile(folder_ / "manifest.json", manifest_);
    if (!status.ok()) return status;
    std::error_code error;  // The runtime says so if they are not there.
    for (const auto& [name, config] : plan_.containers) {
      fs::create_directories(logs_ / name, error);
    }
    for (const std::string& name : plan_.empty_dirs) {
      fs::create_directories(folder_ / "volumes" / name, error);
      fs::permissions(folder_ / "volumes" / name, fs::perms::all, error);
    }
    cri::RunPodSandboxRequest request;
    *request.mutable_config() = plan_.sandbox;
    return Ask("RuntimeService/RunPodSandbox", request, 2 * kPatience).status();
  }

  absl::Status StartContainer(const PodStep& step, const PodRun& run) {
    const cri::ContainerConfig& config = plan_.containers.at(step.what);
    absl::Status status = CheckImage(config.image());
    if (status.ok() && step.is_initialized) {
      status = node_.manager->ReleaseInitContainers(pod_.uid);
    }
    if (!status.ok()) return status;
    cri::CreateContainerRequest request;
    request.set_pod_sandbox_id(run.sandboxes.front().id);
    *request.mutable_sandbox_config() = plan_.sandbox;
    *request.mutable_config() = config;
    request.mutable_config()->mutable_metadata()->set_attempt(step.attempt);
    request.mutable_config()->set_log_path(
        step.what + "/" + std::to_string(step.attempt) + ".log");
    const auto created = Ask<cri::CreateContainerResponse>(
        "RuntimeService/CreateContainer", request);
    if (!created.ok()) return created.status();
    status = Call("StartContainer", created->container_id());
    if (status.ok()) Say("container '" + step.what + "' started");
    return status;
  }

  absl::Status CheckImage(const cri::ImageSpec& image) const {
    cri::ImageStatusRequest request;
    *request.mutable_image() = image;
    const auto answer =
        Ask<cri::ImageStatusResponse>("ImageService/ImageStatus", request);
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
    return Ask("RuntimeService/" + method, request, kPatience + grace).status();
  }

  template <typename Response = cri::Empty, typename Request>
  absl::StatusOr<Response> Ask(const std::string& method,
                               const Request& request,
                               seconds patience = kPatience) const {
    const auto answer =
        node_.cri->Call(method, request.SerializeAsString(), patience);
    if (!answer.ok()) return answer.status();
    Response response;
    if (response.ParseFromString(*answer)) return response;
    return absl::InternalError(method + ": the answer cannot be read");
  }

  /// What does not stop is stopped with its sandbox.
  absl::Status StopAll(const PodRun& run) const {
    std::vector<std::vector<std::string>> order;
    if (steps_.has_value()) order = steps_->StopOrder(run);
    for (const std::vector<std::string>& together : order) {
      std::vector<std::future<absl::Status>> calls;  // Each waits for its end.
      for (const std::string& id : together) {
        calls.push_back(std::async(std::launch::async, [this, &id] {
          return Call("StopContainer", id, plan_.grace);
        }));
      }
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
    if (was_over) node_.pods->SetPhase(pod_.name, "");
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
  PodPlan plan_;                           ///< Of `manifest_`.
  std::optional<devmgr::PodSteps> steps_;  ///< Empty while there is no plan.
  bool is_gone_ = false;
};

}  // namespace

std::string ReadFile(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

absl::Status Node::End(const PodId& pod, const std::string& phase) {
  const absl::Status status = WriteFile(FolderOf(pod) / "phase", phase);
  pods->SetPhase(pod.name, phase);
  return status;
}

void RunPod(Node* node, const PodId& pod) { PodRunner(node, pod).Run(); }

}  // namespace edge
