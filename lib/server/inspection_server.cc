// SPDX-License-Identifier: Apache-2.0
#include <devmgr/inspection.h>

#include <atomic>
#include <utility>

#include "common/executor.h"
#include "common/status.h"
#include "peer/log_fold.h"
#include "rpc/connection.h"
#include "rpc/server.h"
#include "server/inspection_service.h"

namespace devmgr {
namespace {

class InspectionServerImpl : public InspectionServer {
 public:
  InspectionServerImpl(DeviceManager& manager,
                       std::unique_ptr<rpc::Runtime> runtime, LogSink log)
      : manager_(manager),
        runtime_(std::move(runtime)),
        executor_(ThreadExecutor::Start("devmgr-inspect")),
        service_(manager, *executor_),
        log_(*executor_, std::move(log)) {}

  absl::Status Serve(const std::filesystem::path& endpoint) {
    observation_ = manager_.Observe(service_);
    rpc::ServerOptions options;
    options.socket = endpoint;
    options.mode = 0600;
    // So that one client does not take all that may wait in the service.
    options.max_calls = 128;
    options.on_turned_away = [this](const std::string& why) {
      // A flood of them is one task at a time.
      if (telling_.exchange(true)) return;
      executor_->Post([this, why] {
        telling_ = false;
        log_.Log(LogLevel::kWarning, "clients", "inspection socket: " + why);
      });
    };
    options.methods = service_.Methods();
    DEVMGR_ASSIGN_OR_RETURN(server_,
                            rpc::Server::Start(*runtime_, std::move(options)));
    return absl::OkStatus();
  }

  /// First nobody calls the service, then nothing is left to run in it.
  ~InspectionServerImpl() override {
    server_.reset();
    observation_.reset();
    executor_->Stop();
  }

 private:
  DeviceManager& manager_;
  const std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<ThreadExecutor> executor_;
  server::InspectionService service_;
  std::unique_ptr<Observation> observation_;
  peer::LogFold log_;
  std::atomic<bool> telling_ = false;  ///< Of a client that is turned away.
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InspectionServer>> InspectionServer::Start(
    DeviceManager& manager, const std::filesystem::path& endpoint,
    LogSink log) {
  DEVMGR_ASSIGN_OR_RETURN(std::unique_ptr<rpc::Runtime> runtime,
                          rpc::Runtime::Start());
  auto server = std::make_unique<InspectionServerImpl>(
      manager, std::move(runtime), std::move(log));
  DEVMGR_RETURN_IF_ERROR(server->Serve(endpoint));
  return server;
}

}  // namespace devmgr
