// SPDX-License-Identifier: Apache-2.0
//
// devmgrd: the library as a process. Reads its configuration, opens the
// manager, and waits for a signal.
#include <devmgr/api_server.h>
#include <devmgr/control.h>
#include <devmgr/device_manager.h>
#include <devmgr/driver_endpoint.h>
#include <devmgr/feature_gates.h>
#include <devmgr/inspection.h>
#include <devmgr/runtime_source.h>
#include <devmgr/version.h>
#include <malloc.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <system_error>
#include <thread>

#include "devmgrd/command_line.h"
#include "devmgrd/config.h"
#include "devmgrd/control_users.h"
#include "devmgrd/import_kubelet.h"
#include "devmgrd/kubelet_clients.h"
#include "devmgrd/metrics.h"
#include "devmgrd/quiet_memory.h"
#include "devmgrd/write_metrics.h"

namespace {

using devmgrd::Config;

/// What the exposer has for its end; it takes two seconds when nobody asks.
constexpr std::chrono::seconds kExposerEnd{3};

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

/// Both are absolute, or relative to the same directory.
bool IsBelow(const std::filesystem::path& directory,
             const std::filesystem::path& root) {
  const std::filesystem::path way =
      directory.lexically_normal().lexically_relative(root);
  return !way.empty() && *way.begin() != "..";
}

absl::Status MakeDirectories(const Config& config) {
  std::vector<std::filesystem::path> directories = {
      config.device_plugin_dir, config.plugin_registry_dir,
      config.endpoint.parent_path()};
  if (devmgrd::ReadsManifests(config)) {
    directories.push_back(config.manifests_dir);
  }
  if (!config.root.empty()) {
    directories.push_back(config.root / "plugins");
    // Those of the system are others' to make.
    std::copy_if(config.cdi_spec_dirs.begin(), config.cdi_spec_dirs.end(),
                 std::back_inserter(directories), [&](const auto& directory) {
                   return IsBelow(directory, config.root);
                 });
  }
  for (const auto& directory : directories) {
    if (directory.empty()) continue;
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (!error) continue;
    const std::string message = "cannot make directory '" + directory.string() +
                                "': " + error.message();
    return absl::PermissionDeniedError(absl::string_view(message));
  }
  return absl::OkStatus();
}

void SetUpLog(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("devmgrd");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(logger);
}

void Log(devmgr::LogLevel level, std::string_view text) {
  switch (level) {
    case devmgr::LogLevel::kDebug:
      spdlog::debug("{}", text);
      return;
    case devmgr::LogLevel::kInfo:
      spdlog::info("{}", text);
      return;
    case devmgr::LogLevel::kWarning:
      spdlog::warn("{}", text);
      return;
    case devmgr::LogLevel::kError:
      spdlog::error("{}", text);
      return;
  }
}

/// Logs what happens to pods and plugins.
class EventLogger final : public devmgr::DeviceManagerObserver {
 public:
  void OnEvent(const devmgr::EventInfo& event) override {
    std::string text = event.reason + " " + event.object_kind + " " +
                       event.object.ToString() + ": " + event.message;
    if (event.count > 1) {
      text += " (repeated " + std::to_string(event.count - 1) + " times)";
    }
    Log(event.warning ? devmgr::LogLevel::kWarning : devmgr::LogLevel::kInfo,
        text);
  }
};

/// The signal that ends us.
int WaitForEnd(const sigset_t& signals, devmgr::ApiServerSource* api_server) {
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal == SIGALRM) {
      devmgrd::GiveMemoryBack();
      if (api_server != nullptr) alarm(devmgrd::QuietMemory::kAgainSeconds);
    } else if (signal != SIGHUP) {
      return signal;
    } else if (api_server != nullptr) {
      api_server->Hurry();
    } else {
      spdlog::info("nothing is read again on SIGHUP: files are followed");
    }
  }
}

/// Serves the metrics where it is configured, else nowhere, with the gauges of
/// `manager`, from which they have to be detached before it goes.
absl::StatusOr<std::unique_ptr<prometheus::Exposer>> StartMetrics(
    const Config& config, const std::shared_ptr<devmgrd::Metrics>& metrics,
    devmgr::DeviceManager& manager) {
  if (config.metrics_address.empty()) return nullptr;
  auto address = devmgrd::ParseListenAddress(config.metrics_address);
  if (!address.ok()) return address.status();
  metrics->Attach(manager);
  auto exposer = devmgrd::ServeMetrics(*address, metrics);
  if (!exposer.ok()) {
    const std::string message = "metricsAddress: " + Text(exposer.status());
    return absl::UnavailableError(absl::string_view(message));
  }
  // The port may have been left to the system.
  address->port =
      static_cast<in_port_t>((*exposer)->GetListeningPorts().front());
  spdlog::info("metrics are at http://{}/metrics", address->ToString());
  return exposer;
}

/// Destroys it on a thread of its own, which may be left when we end: the
/// exposer waits for clients that do not read.
std::future<void> End(std::unique_ptr<prometheus::Exposer> exposer) {
  std::packaged_task<void()> end(
      [exposer = std::move(exposer)]() mutable { exposer.reset(); });
  auto ended = end.get_future();
  std::thread(std::move(end)).detach();
  return ended;
}

absl::StatusOr<devmgr::ControlOptions> ControlOf(
    const Config& config, devmgr::WantedPods& wanted,
    devmgr::DriverEndpoint* endpoint) {
  auto users = devmgrd::FindUsers(config.control_users);
  if (!users.ok()) return users.status();
  devmgr::ControlOptions control;
  control.wanted = &wanted;
  control.driver_endpoint = endpoint;
  control.users = *std::move(users);
  return control;
}

/// Where objects come from, and what the node writes goes.
struct Objects {
  std::unique_ptr<devmgr::ObjectSource> manifests;
  std::unique_ptr<devmgr::ApiServerSource> api_server;
  std::unique_ptr<devmgr::ObjectSource> both;
  /// Null: drivers publish elsewhere.
  std::unique_ptr<devmgr::DriverEndpoint> endpoint;

  devmgr::ObjectSource& source() const {
    if (endpoint != nullptr) return endpoint->source();
    if (both != nullptr) return *both;
    return api_server != nullptr ? *api_server : *manifests;
  }
  /// Null: nothing is written.
  devmgr::ObjectSink* sink() const {
    return api_server != nullptr ? &api_server->Sink() : nullptr;
  }
};

absl::Status OfDriverEndpoint(const absl::Status& status) {
  if (status.ok()) return status;
  const std::string message = "driverEndpoint: " + Text(status);
  return absl::Status(status.code(), absl::string_view(message));
}

absl::StatusOr<std::unique_ptr<devmgr::DriverEndpoint>> MakeDriverEndpoint(
    const Config& config, devmgr::ObjectSource& objects) {
  const auto address =
      devmgrd::ParseListenAddress(config.driver_endpoint.listen);
  if (!address.ok()) return address.status();
  devmgr::DriverEndpointOptions options;
  options.node_name = config.node_name;
  options.state_dir = config.state_dir / "endpoint";
  options.kubeconfig_dir = config.driver_endpoint.kubeconfig_dir;
  options.drivers = config.driver_endpoint.drivers;
  options.address = address->host;
  options.port = address->port;
  options.recovery = devmgrd::OptionsOf(config).ledger.recovery;
  options.log = Log;
  auto endpoint = devmgr::DriverEndpoint::Create(options, objects);
  if (!endpoint.ok()) return OfDriverEndpoint(endpoint.status());
  return endpoint;
}

/// The endpoint for drivers, if there is one, and a manager: what drivers
/// publish is in its database, and they are shown the claims as it has them.
class EndpointOfManager {
 public:
  EndpointOfManager(devmgr::DriverEndpoint* endpoint,
                    const devmgr::DeviceManager& manager)
      : endpoint_(endpoint), manager_(manager) {
    if (endpoint_ == nullptr) return;
    endpoint_->ShowObjectsOf([&manager] { return manager.Objects(); });
  }
  ~EndpointOfManager() { Detach(); }
  EndpointOfManager(const EndpointOfManager&) = delete;
  EndpointOfManager& operator=(const EndpointOfManager&) = delete;

  /// Once the ledger is loaded.
  absl::Status Serve(const Config& config) {
    if (endpoint_ == nullptr) return absl::OkStatus();
    const absl::Status status = endpoint_->Serve(manager_.KeptObjects());
    if (!status.ok()) return OfDriverEndpoint(status);
    if (const std::string server = endpoint_->server(); !server.empty()) {
      spdlog::info("drivers publish at {}; their kubeconfigs are in {}", server,
                   config.driver_endpoint.kubeconfig_dir.string());
    }
    return absl::OkStatus();
  }
  /// Before the manager goes. It may be called again.
  void Detach() {
    if (endpoint_ == nullptr) return;
    endpoint_->ShowObjectsOf(nullptr);
    endpoint_->Stop();
  }

 private:
  devmgr::DriverEndpoint* const endpoint_;
  const devmgr::DeviceManager& manager_;
};

absl::StatusOr<Objects> OpenObjects(
    const Config& config,
    const std::shared_ptr<devmgrd::WriteMetrics>& metrics) {
  Objects objects;
  if (devmgrd::ReadsManifests(config)) {
    objects.manifests =
        devmgr::WatchManifests(config.manifests_dir, config.node_name);
  }
  if (!devmgrd::HasApiServer(config)) {
    if (!devmgrd::ServesDrivers(config)) return objects;
    auto endpoint = MakeDriverEndpoint(config, *objects.manifests);
    if (!endpoint.ok()) return endpoint.status();
    objects.endpoint = *std::move(endpoint);
    return objects;
  }
  devmgr::ApiServerOptions options;
  options.kubeconfig = config.kubeconfig;
  options.node_name = config.node_name;
  options.qps = config.qps;
  options.burst = config.burst;
  options.node_agent = config.node_agent;
  options.on_request = [metrics](const devmgr::ApiServerRequest& request) {
    metrics->OnRequest(request);
  };
  options.state_file = config.state_dir / "api-server.json";
  options.log = Log;
  auto source = devmgr::WatchApiServer(std::move(options));
  if (!source.ok()) return source.status();
  objects.api_server = *std::move(source);
  if (objects.manifests != nullptr) {
    objects.both =
        devmgr::CombineSources(*objects.api_server, *objects.manifests);
  }
  return objects;
}

/// Where it is known from what runs.
struct Runtime {
  std::unique_ptr<devmgr::RuntimeSource> source;  ///< Null: it is not known.
  /// `source`, when it is what CRI shims report; else null.
  devmgr::ReportedRuntimeSource* reported = nullptr;
};

Runtime OpenRuntime(const Config& config) {
  if (!config.runtime_endpoint.empty()) {
    return {devmgr::WatchRuntime(config.runtime_endpoint), nullptr};
  }
  if (!config.runtime_from_shims) return {};
  auto reported = devmgr::ReportedRuntimeSource::Make(config.runtime_shims);
  auto* const borrowed = reported.get();
  return {std::move(reported), borrowed};
}

/// Runs until SIGTERM or SIGINT.
absl::Status Serve(const Config& config, const std::string& boot_id,
                   const sigset_t& signals) {
  const auto write_metrics = std::make_shared<devmgrd::WriteMetrics>();
  auto objects = OpenObjects(config, write_metrics);
  if (!objects.ok()) return objects.status();
  auto wanted = devmgr::WantedPods::Open(config.state_dir / "wanted",
                                         config.node_name, &objects->source());
  if (!wanted.ok()) return wanted.status();
  auto source = devmgr::CombineSources(objects->source(), **wanted);
  // Hears of things until the manager is gone.
  const auto metrics = std::make_shared<devmgrd::Metrics>(
      devmgrd::MetricNamesOf(config.metrics_names));
  EventLogger events;
  devmgrd::QuietMemory memory;
  const Runtime runtime = OpenRuntime(config);
  devmgr::Host host;
  host.runtime = runtime.source.get();
  host.objects = source.get();
  host.object_sink = objects->sink();
  host.log = Log;
  host.observers = {&events, &memory};
  if (objects->endpoint != nullptr) {
    host.observers.push_back(objects->endpoint.get());
  }
  if (!config.metrics_address.empty()) {
    host.metrics = metrics.get();
    host.observers.push_back(metrics.get());
  }
  if (!boot_id.empty()) host.boot_id = [boot_id] { return boot_id; };
  auto manager = devmgr::DeviceManager::Open(devmgrd::OptionsOf(config), host);
  if (!manager.ok()) return manager.status();
  EndpointOfManager drivers(objects->endpoint.get(), **manager);
  std::function<std::vector<devmgr::SourceInfo>()> sources;
  if (objects->api_server != nullptr) {
    sources = [api_server = objects->api_server.get()] {
      return std::vector<devmgr::SourceInfo>{api_server->Info()};
    };
    metrics->AttachSources(sources);
  }
  auto exposer = StartMetrics(config, metrics, **manager);
  if (!exposer.ok()) return exposer.status();
  if (*exposer != nullptr && objects->sink() != nullptr) {
    (*exposer)->RegisterCollectable(write_metrics);
  }
  auto clients = devmgrd::ServeKubeletClients(config, **manager, *metrics, Log);
  if (!clients.ok()) return clients.status();
  auto control = ControlOf(config, **wanted, objects->endpoint.get());
  auto server =
      control.ok()
          ? devmgr::InspectionServer::Start(**manager, config.endpoint, Log,
                                            *control, sources, runtime.reported)
          : absl::StatusOr<std::unique_ptr<devmgr::InspectionServer>>(
                control.status());
  absl::Status status = server.status();
  if (status.ok()) {
    spdlog::info("devmgrd {} is ready at {}", devmgr::Version(),
                 config.endpoint.string());
    // It resolves meanwhile.
    status = (*manager)->WaitUntilLoaded();
    if (status.ok()) status = drivers.Serve(config);
    if (status.ok()) {
      spdlog::info("stopping on signal {}; pods stay prepared",
                   WaitForEnd(signals, objects->api_server.get()));
    }
    // Its clients may wait for the endpoint.
    if (!status.ok()) drivers.Detach();
    server->reset();
  }
  // Side by side, since the exposer takes its time.
  metrics->Detach();
  const auto deadline = std::chrono::steady_clock::now() + kExposerEnd;
  const auto exposer_end = End(*std::move(exposer));
  *clients = {};
  drivers.Detach();
  manager->reset();
  if (exposer_end.wait_until(deadline) == std::future_status::timeout) {
    spdlog::warn(
        "closed the connection of a metrics client that does not read");
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  // Twenty threads that mostly sleep need no heap of their own each, and what
  // is large is rare and soon over: in the heap it would leave holes.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 64 * 1024);
  // Before any thread starts, so that all of them leave the signals to us.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  devmgrd::CommandLine line;
  if (const auto end = devmgrd::ReadCommandLine(argc, argv, &line)) return *end;
  const Config& config = line.config;
  if (line.print_config) {
    std::fputs(devmgrd::PrintConfig(config).c_str(), stdout);
    for (const std::string& warning :
         devmgr::FeatureGateWarnings(config.feature_gates)) {
      std::fprintf(stderr, "devmgrd: warning: %s\n", warning.c_str());
    }
    return 0;
  }
  SetUpLog(config.log_level);
  absl::Status status = MakeDirectories(config);
  if (status.ok() && !line.import_kubelet.empty()) {
    status = devmgrd::ImportFromKubelet(config.state_dir, line.import_kubelet,
                                        line.boot_id);
  }
  if (status.ok()) status = Serve(config, line.boot_id, signals);
  if (status.ok()) return 0;
  spdlog::error("{}", Text(status));
  return absl::IsPermissionDenied(status) ? 5 : 1;
}
