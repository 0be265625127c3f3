// SPDX-License-Identifier: Apache-2.0
//
// What the pods of a node share.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/device_manager.h>
#include <devmgr/runtime_source.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/client_unary_call.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

// Where gRPC has it, by its version.
#if __has_include(<grpcpp/impl/proto_utils.h>)
#include <grpcpp/impl/proto_utils.h>
#else
#include <grpcpp/impl/codegen/proto_utils.h>
#endif

#include "pod.h"

namespace edge {

/// A container runtime, called by CRI. Calls block; any thread may call.
class CriClient {
 public:
  explicit CriClient(const std::filesystem::path& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 3'000);
    channel_ = grpc::CreateCustomChannel("unix://" + socket.string(),
                                         grpc::InsecureChannelCredentials(),
                                         arguments);
  }

  /// Calls a method such as `RuntimeService/RunPodSandbox`, as generated stubs
  /// do. Errors are the runtime's, with the method in front.
  template <typename Response = cri::Empty, typename Request>
  absl::StatusOr<Response> Call(const std::string& method,
                                const Request& request,
                                std::chrono::seconds patience) const {
    using Method = grpc::internal::RpcMethod;
    const std::string path = "/runtime.v1." + method;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    Response response;
    const grpc::Status status = grpc::internal::BlockingUnaryCall(
        channel_.get(), Method(path.c_str(), Method::NORMAL_RPC), &context,
        request, &response);
    if (status.ok()) return response;
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        method + ": " + status.error_message());
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

/// A directory of manifests, in which pods that are over have the phase
/// `Succeeded` or `Failed`, as an agent of an API server would write it into
/// their status: so the manager releases them. Thread-safe.
class EndedPods final : public devmgr::ObjectSource {
 public:
  explicit EndedPods(std::unique_ptr<devmgr::ObjectSource> manifests)
      : manifests_(std::move(manifests)) {}

  /// The pod of that name is over; with an empty phase it is not any more.
  void Set(const devmgr::ObjectName& pod, const std::string& phase) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_.erase(pod);
    if (!phase.empty()) ended_[pod].phase = phase;
    if (changed_) changed_();
  }
  bool Has(const devmgr::ObjectName& pod) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ended_.contains(pod);
  }

  std::shared_ptr<const devmgr::ObjectSnapshot> Snapshot() const override {
    auto all =
        std::make_shared<devmgr::ObjectSnapshot>(*manifests_->Snapshot());
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [name, pod] : ended_) {
      const auto manifest = all->pods.find(name);
      if (manifest == all->pods.end()) continue;
      if (pod.manifest != manifest->second) {
        pod.manifest = manifest->second;
        pod.shown = std::make_shared<devmgr::Pod>(*pod.manifest);
        pod.shown->status.phase = pod.phase;
      }
      all->pods.insert_or_assign(name, pod.shown);
    }
    return all;
  }
  void Subscribe(std::function<void()> changed) override {
    manifests_->Subscribe(changed);
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_ = std::move(changed);
  }
  void Unsubscribe() override {
    manifests_->Unsubscribe();
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_ = nullptr;
  }
  std::string Describe() const override { return manifests_->Describe(); }
  void Mark(const std::string& id, std::uint64_t watch) override {
    manifests_->Mark(id, watch);
  }

 private:
  struct Ended {
    std::string phase;
    std::shared_ptr<const devmgr::Pod> manifest;
    /// With the phase; the same pointer as long as the manifest is the same.
    std::shared_ptr<devmgr::Pod> shown;
  };
  const std::unique_ptr<devmgr::ObjectSource> manifests_;
  mutable std::mutex mutex_;  ///< Held while the subscriber is called.
  mutable std::map<devmgr::ObjectName, Ended> ended_;
  std::function<void()> changed_;
};

struct PodId {
  devmgr::ObjectName name;
  devmgr::PodUid uid;
};

struct Node {
  explicit Node(const std::filesystem::path& where)
      : root(where), cri(where / "cri.sock") {}

  const std::filesystem::path root;
  BackOff back_off;
  CriClient cri;  ///< Of the shim, which gives containers their devices.
  std::unique_ptr<devmgr::ShimRuntimeSource> runtime =
      devmgr::ShimRuntimeSource::Make();
  std::unique_ptr<EndedPods> pods;
  std::unique_ptr<devmgr::DeviceManager> manager;

  /// What is to be known of a pod after a restart: its manifest as it was when
  /// the pod began, its phase when it is over; and its volumes.
  std::filesystem::path FolderOf(const PodId& pod) const {
    return root / "pods" /
           (pod.name.ns + "_" + pod.name.name + "_" + pod.uid.value);
  }
  /// Records that a pod is over.
  absl::Status End(const PodId& pod, const std::string& phase);
};

/// Between two looks at a pod, and at which pods there are.
constexpr milliseconds kPeriod{500};

std::string ReadFile(const std::filesystem::path& file);
void Log(const std::string& text);

/// Runs a pod until nothing of it is left. Goes by what the runtime has and by
/// files, so that another process goes on after a kill.
void RunPod(Node* node, const PodId& pod);

}  // namespace edge
