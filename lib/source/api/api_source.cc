// SPDX-License-Identifier: Apache-2.0
#include <devmgr/api_server.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "api/quote.h"
#include "common/executor.h"
#include "common/run_on.h"
#include "common/snapshot_cell.h"
#include "common/status.h"
#include "source/api/api_session.h"
#include "source/api/credentials.h"
#include "source/api/curl_transport.h"
#include "source/api/key_pair.h"
#include "source/api/kubeconfig.h"
#include "source/api/read_file.h"

namespace devmgr {
namespace {

using apiserver::ApiSession;
using apiserver::Kubeconfig;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<Kubeconfig> LoadConfig(const ApiServerOptions& options) {
  if (!options.kubeconfig.empty()) {
    DEVMGR_ASSIGN_OR_RETURN(const std::string text,
                            apiserver::ReadSmallFile(options.kubeconfig));
    return apiserver::ParseKubeconfig(text, options.kubeconfig,
                                      options.context);
  }
  apiserver::InClusterFiles files;
  files.host = Variable("KUBERNETES_SERVICE_HOST");
  files.port = Variable("KUBERNETES_SERVICE_PORT");
  std::error_code unreadable;
  files.has_ca = std::filesystem::exists(files.folder / "ca.crt", unreadable);
  return apiserver::InClusterConfig(files);
}

ApiSession::Options SessionOptions(const ApiServerOptions& options) {
  ApiSession::Options session;
  session.node_name = options.node_name;
  session.stream_lists = options.stream_lists;
  session.pods_version = options.pods_version;
  const std::pair<bool, const char*> kinds[] = {
      {options.watch_claims, "ResourceClaim"},
      {options.watch_device_classes, "DeviceClass"},
      {options.watch_resource_slices, "ResourceSlice"}};
  for (const auto& [is_watched, kind] : kinds) {
    if (is_watched) session.watched_kinds.emplace_back(kind);
  }
  return session;
}

class ApiServerSourceImpl final : public ApiServerSource {
 public:
  ApiServerSourceImpl(const ApiServerOptions& options, const Kubeconfig& config)
      : options_(options),
        description_(fmt::format("API server {} (node {})", config.server,
                                 options.node_name)),
        credentials_(config, CredentialSeams()) {
    Log(LogLevel::kInfo, apiserver::DescribeKubeconfig(config));
    for (const std::string& warning : config.warnings) {
      Log(LogLevel::kWarning, warning);
    }
  }

  ~ApiServerSourceImpl() override {
    RunOn(*executor_, [this] {
      session_.reset();
      transport_.reset();
    });
    executor_->Stop();
  }

  absl::Status Start(const Kubeconfig& config) {
    return RunOn(*executor_, [&]() -> absl::Status {
      DEVMGR_ASSIGN_OR_RETURN(
          transport_, apiserver::StartCurlTransport(config, *executor_));
      session_.emplace(SessionOptions(options_), Parts());
      return absl::OkStatus();
    });
  }

  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    return cell_.Get();
  }
  void Subscribe(std::function<void()> changed) override {
    cell_.SetSubscriber(std::move(changed));
  }
  void Unsubscribe() override { cell_.SetSubscriber({}); }
  std::string Describe() const override { return description_; }
  bool Refresh(ObjectKind kind, const ObjectName& name,
               std::function<void(const absl::Status&)> done) override {
    if (kind != ObjectKind::kResourceClaim || options_.watch_claims) {
      return false;
    }
    executor_->Post([this, kind, name, done = std::move(done)]() mutable {
      if (session_) session_->Refresh(kind, name, std::move(done));
    });
    return true;
  }
  std::string State() const override {
    MutexLock lock(mutex_);
    return state_;
  }

 private:
  apiserver::Credentials::Seams CredentialSeams() {
    return {
        .read_file = apiserver::ReadSmallFile,
        .check_pair = apiserver::CheckKeyPair,
        .wall_clock = [] { return std::chrono::system_clock::now(); },
        .warn =
            [this](const std::string& text) { Log(LogLevel::kWarning, text); }};
  }
  ApiSession::Parts Parts() {
    return {
        .executor = *executor_,
        .transport = *transport_,
        .credentials = credentials_,
        .random =
            [this] {
              return std::uniform_real_distribution<>(0, 1)(generator_);
            },
        .publish =
            [this](std::shared_ptr<const ObjectSnapshot> snapshot) {
              cell_.Put(std::move(snapshot));
              cell_.Notify();
            },
        .on_version = options_.on_version,
        .on_state =
            [this](std::string state) {
              MutexLock lock(mutex_);
              state_.swap(state);
            },
        .warn =
            [this](const std::string& text) { Log(LogLevel::kWarning, text); },
        .wall_clock = [] { return std::chrono::system_clock::now(); }};
  }
  void Log(LogLevel level, const std::string& text) const {
    if (options_.log) options_.log(level, description_ + ": " + text);
  }

  const ApiServerOptions options_;
  const std::string description_;
  SnapshotCell<ObjectSnapshot> cell_;
  mutable Mutex mutex_;
  std::string state_ DEVMGR_GUARDED_BY(mutex_) = "starting";
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("devmgr-api");
  /// These are confined to the executor.
  std::minstd_rand generator_{std::random_device()()};
  apiserver::Credentials credentials_;
  std::unique_ptr<apiserver::Transport> transport_;
  std::optional<ApiSession> session_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ApiServerSource>> WatchApiServer(
    ApiServerOptions options) {
  if (options.node_name.empty()) {
    return InvalidArgumentError("the name of the node is not set");
  }
  DEVMGR_ASSIGN_OR_RETURN(const Kubeconfig config, LoadConfig(options));
  auto source = std::make_unique<ApiServerSourceImpl>(options, config);
  DEVMGR_RETURN_IF_ERROR(source->Start(config));
  return source;
}

}  // namespace devmgr
