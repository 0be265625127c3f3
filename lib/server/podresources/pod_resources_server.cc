// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_resources_server.h>

#include <atomic>
#include <system_error>
#include <utility>

#include "common/executor.h"
#include "common/status.h"
#include "peer/log_fold.h"
#include "rpc/server.h"
#include "server/podresources/service.h"

namespace devmgr {
namespace {

/// Calls of one connection that are handled at a time. Further ones wait in it,
/// so that a client with one connection keeps below its limit in the service.
constexpr int kMaxCallsOfConnection = 16;
static_assert(kMaxCallsOfConnection <= podresources::Service::kMaxCallsOfOne);

/// Only the last one has the kubelet's mode.
absl::Status MakeDirectory(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (directory.empty() || fs::is_directory(directory, error)) {
    return absl::OkStatus();
  }
  error.clear();
  fs::create_directories(directory, error);
  if (!error) {
    constexpr auto kMode =
        fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec;
    fs::permissions(directory, kMode, error);
  }
  if (!error) return absl::OkStatus();
  return PermissionDeniedError("cannot make directory '{}': {}",
                               directory.string(), error.message());
}

class PodResourcesServerImpl final : public PodResourcesServer {
 public:
  PodResourcesServerImpl(DeviceManager& manager,
                         const PodResourcesOptions& options)
      : executor_(ThreadExecutor::Start("devmgr-podres")),
        service_(manager, *executor_, options.strict_kubelet),
        log_(*executor_, options.log) {}

  absl::Status Serve(const std::filesystem::path& socket) {
    rpc::ServerOptions options;
    options.socket = socket;
    options.mode = 0660;
    options.max_calls = kMaxCallsOfConnection;
    options.streams = service_.Methods();
    options.on_turned_away = [this](const std::string& why) { Tell(why); };
    DEVMGR_ASSIGN_OR_RETURN(server_, rpc::Server::Start(std::move(options)));
    return absl::OkStatus();
  }

  /// First nobody calls the service, then nothing is left to run in it.
  ~PodResourcesServerImpl() override {
    server_.reset();
    executor_->Stop();
  }

  PodResourcesCounters Counters() const override { return service_.counters(); }

 private:
  /// Of a client that is turned away. A flood of them is one task at a time.
  void Tell(const std::string& why) {
    if (telling_.exchange(true)) return;
    executor_->Post([this, why] {
      telling_ = false;
      log_.Log(LogLevel::kWarning, "clients", "pod-resources socket: " + why);
    });
  }

  const std::unique_ptr<ThreadExecutor> executor_;
  podresources::Service service_;
  peer::LogFold log_;
  std::atomic<bool> telling_ = false;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PodResourcesServer>> PodResourcesServer::Start(
    DeviceManager& manager, const PodResourcesOptions& options) {
  if (options.socket.empty()) {
    return InvalidArgumentError("no socket is given for pod-resources");
  }
  DEVMGR_RETURN_IF_ERROR(MakeDirectory(options.socket.parent_path()));
  auto server = std::make_unique<PodResourcesServerImpl>(manager, options);
  DEVMGR_RETURN_IF_ERROR(server->Serve(options.socket));
  return server;
}

}  // namespace devmgr
