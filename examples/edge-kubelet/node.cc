// SPDX-License-Identifier: Apache-2.0
#include "node.h"

#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

namespace edge {
namespace {

void Log(std::string_view text) {
  std::fprintf(stderr, "edge-kubelet: %.*s\n", static_cast<int>(text.size()),
               text.data());
}

}  // namespace

Node::Node(NodeOptions options)
    : options_(std::move(options)), cri_(options_.runtime) {}

absl::Status Node::Open() {
  for (const char* folder : {"manifests", "plugins", "cdi", "ended", "logs"}) {
    std::error_code error;
    std::filesystem::create_directories(options_.root / folder, error);
    if (!error) continue;
    const std::string what = "cannot make '" +
                             (options_.root / folder).string() +
                             "': " + error.message();
    return absl::PermissionDeniedError(absl::string_view(what));
  }
  auto version = cri_.Version();
  for (; !version.ok(); version = cri_.Version()) {
    Log("waiting for the runtime: " + std::string(version.status().message()));
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  Log("runtime " + *version + ", given CDI devices by " +
      (options_.cdi_names ? "name" : "their edits"));
  if (!options_.cdi_names) {
    devmgr::CdiCacheOptions cdi;
    cdi.directories = options_.cdi_spec_dirs;
    auto cache = devmgr::CdiCache::Open(std::move(cdi));
    if (!cache.ok()) return cache.status();
    cdi_ = *std::move(cache);
    services_.target.runtime = *version;
    for (const auto& dir : options_.cdi_spec_dirs) {
      services_.target.cdi_directories.push_back(dir.string());
    }
  }
  if (absl::Status status = OpenManager(); !status.ok()) return status;
  services_.root = options_.root;
  services_.cri = &cri_;
  services_.manager = manager_.get();
  services_.ended = ended_.get();
  services_.cdi = cdi_.get();
  services_.back_off = options_.back_off;
  services_.log = Log;
  Log("runs the pods of '" + (options_.root / "manifests").string() + "'");
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

absl::Status Node::OpenManager() {
  const std::filesystem::path& root = options_.root;
  ended_ = std::make_unique<EndedPods>(
      devmgr::WatchManifests(root / "manifests", options_.node_name),
      root / "ended");
  runtime_ = devmgr::WatchRuntime(options_.runtime);
  devmgr::DeviceManagerOptions options;
  options.state_dir = root / "state";
  options.plugin_registry_dir = root / "plugins_registry";
  options.device_plugin_dir = root / "device-plugins";
  options.cdi_spec_dirs = options_.cdi_spec_dirs;
  options.node_name = options_.node_name;
  options.actuate = devmgr::Actuate::kSource;
  devmgr::Host host;
  host.objects = ended_.get();
  host.runtime = runtime_.get();
  host.observers = {this};
  host.act_on_pod = [this](const devmgr::PodAction& action) {
    const std::lock_guard<std::mutex> lock(mutex_);
    to_fail_.push_back(action);
    woken_ = true;
    wake_.notify_all();
  };
  auto manager = devmgr::DeviceManager::Open(options, host);
  if (!manager.ok()) return manager.status();
  manager_ = *std::move(manager);
  auto server =
      devmgr::InspectionServer::Start(*manager_, root / "devmgr.sock");
  if (!server.ok()) return server.status();
  server_ = *std::move(server);
  return absl::OkStatus();
}

void Node::OnEvent(const devmgr::EventInfo& event) {
  Log(event.reason + " " + event.object_kind + " " + event.object.ToString() +
      ": " + event.message);
}

void Node::Wake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  woken_ = true;
  wake_.notify_all();
}

void Node::Run() {
  for (bool found_all = true; true; found_all = FindPods()) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto patience =
        found_all ? std::chrono::seconds(3'600) : std::chrono::seconds(1);
    wake_.wait_for(lock, patience, [this] { return woken_; });
    woken_ = false;
    const auto failed = std::exchange(to_fail_, {});
    lock.unlock();
    for (const devmgr::PodAction& action : failed) {
      using Kind = devmgr::PodAction::Kind;
      if (action.kind == Kind::kStop) continue;  // It is being stopped.
      Log("pod '" + action.name.ToString() + "' " +
          (action.kind == Kind::kEvict ? "has to leave its devices" : "fails") +
          ": " + action.reason + ": " + action.message);
      ended_->Add(action.name, "Failed");
    }
  }
}

bool Node::FindPods() {
  for (const devmgr::PodInfo& pod : manager_->View()->Pods()) {
    Work(pod.uid, pod.name);
  }
  // What was left by a process before this one, too.
  const auto sandboxes = cri_.Sandboxes(kRootLabel, options_.root.string());
  if (!sandboxes.ok()) return false;
  for (const cri::PodSandbox& one : *sandboxes) {
    Work({one.metadata().uid()},
         {one.metadata().namespace_(), one.metadata().name()});
  }
  return true;
}

void Node::Work(const devmgr::PodUid& uid, const devmgr::ObjectName& name) {
  auto& worker = workers_[uid];
  if (worker == nullptr || worker->is_done()) {
    worker = std::make_unique<PodWorker>(services_, uid, name);
  } else {
    worker->Wake();
  }
}

}  // namespace edge
