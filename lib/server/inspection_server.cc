// SPDX-License-Identifier: Apache-2.0
#include <devmgr/inspection.h>

#include <atomic>
#include <utility>

#include "common/executor.h"
#include "common/status.h"
#include "peer/log_fold.h"
#include "rpc/server.h"
#include "server/access.h"
#include "server/control_service.h"
#include "server/inspection_service.h"
#include "server/look_watch.h"

namespace devmgr {
namespace {

class InspectionServerImpl : public InspectionServer {
 public:
  InspectionServerImpl(DeviceManager& manager, LogSink log,
                       const ControlOptions& control,
                       server::SourcesFunction sources,
                       ReportedRuntimeSource* reported)
      : manager_(manager),
        access_({control.users.begin(), control.users.end()},
                [this](const std::string& why) { Tell(why); }),
        executor_(ThreadExecutor::Start("devmgr-inspect")),
        service_(manager, *executor_, std::move(sources), reported,
                 control.driver_endpoint),
        looks_(reported, *executor_, access_),
        log_(*executor_, std::move(log)) {
    if (control.wanted == nullptr) return;
    control_ = std::make_unique<server::ControlService>(
        manager, *control.wanted, access_, control.driver_endpoint);
  }

  absl::Status Serve(const std::filesystem::path& endpoint) {
    observation_ = manager_.Observe(service_);
    if (control_ != nullptr) control_->Begin();
    rpc::ServerOptions options;
    options.socket = endpoint;
    options.mode = 0600;
    // So that one client does not take all that may wait in the service.
    options.max_calls = 128;
    options.on_turned_away = [this](const std::string& why) { Tell(why); };
    options.users = access_.users();
    options.caller_methods =
        server::GuardInspection(service_.Methods(), access_);
    if (control_ != nullptr) {
      options.caller_methods.merge(control_->Methods());
      options.streams = control_->Streams();
    }
    options.streams.merge(looks_.Streams());
    auto server = rpc::Server::Start(std::move(options));
    if (absl::IsUnimplemented(server.status())) {
      return WithContext(server.status(), "controlUsers");
    }
    DEVMGR_ASSIGN_OR_RETURN(server_, std::move(server));
    return absl::OkStatus();
  }

  /// First nobody calls the service, then nothing is left to run in it.
  ~InspectionServerImpl() override {
    server_.reset();
    observation_.reset();
    control_.reset();
    executor_->Stop();
  }

 private:
  /// Of a client that is turned away or refused. A flood of them is one task at
  /// a time.
  void Tell(const std::string& why) {
    if (telling_.exchange(true)) return;
    executor_->Post([this, why] {
      telling_ = false;
      log_.Log(LogLevel::kWarning, "clients", "inspection socket: " + why);
    });
  }

  DeviceManager& manager_;
  const server::Access access_;
  const std::unique_ptr<ThreadExecutor> executor_;
  server::InspectionService service_;
  server::LookWatch looks_;
  std::unique_ptr<Observation> observation_;
  peer::LogFold log_;
  std::atomic<bool> telling_ = false;
  std::unique_ptr<server::ControlService> control_;  ///< Null: there is none.
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InspectionServer>> InspectionServer::Start(
    DeviceManager& manager, const std::filesystem::path& endpoint, LogSink log,
    const ControlOptions& control,
    std::function<std::vector<SourceInfo>()> sources,
    ReportedRuntimeSource* reported) {
  auto server = std::make_unique<InspectionServerImpl>(
      manager, std::move(log), control, std::move(sources), reported);
  DEVMGR_RETURN_IF_ERROR(server->Serve(endpoint));
  return server;
}

}  // namespace devmgr
