// SPDX-License-Identifier: Apache-2.0
//
// Wires a device manager together: checks the options, fills the seams, opens
// the ledger, and gives the manager its drivers.
#include <devmgr/device_manager.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "api/names.h"
#include "checkpoint/ledger_store.h"
#include "common/boot_id.h"
#include "common/status.h"
#include "dra/driver_registry.h"
#include "manager/manager.h"
#include "registration/grpc_plugin_socket.h"
#include "registration/registrar.h"
#include "rpc/connection.h"
#include "watcher/directory_watcher.h"

namespace devmgr {
namespace {

/// The drivers of a real node: registration directory, sockets, gRPC.
/// Lives on the manager's executor.
class NodeDrivers final : public dra::Drivers {
 public:
  NodeDrivers(Executor& executor, std::shared_ptr<rpc::Runtime> runtime,
              const DeviceManagerOptions& options, const Host& host,
              std::function<void(const std::string&)> on_change)
      : runtime_(std::move(runtime)),
        registry_(executor, Dialer(*runtime_),
                  RegistryOptions(options, host, std::move(on_change))) {
    if (options.plugin_registry_dir.empty()) return;
    registrar_ = std::make_unique<registration::Registrar>(
        executor, options.plugin_registry_dir,
        registration::GrpcPluginDialer(*runtime_),
        std::map<std::string, registration::PluginHandler*>{
            {dra::DriverRegistry::kPluginType, &registry_}},
        host.log);
  }

  /// Begins to look at the registration directory.
  absl::Status Watch(Executor& executor,
                     const std::filesystem::path& directory) {
    if (registrar_ == nullptr) return absl::OkStatus();
    auto watcher = watcher::DirectoryWatcher::Start(
        runtime_->poller(), directory,
        [this, alive = std::weak_ptr<int>(alive_),
         &executor](const watcher::DirectoryEvent& event) {
          executor.Post([this, alive, event] {
            if (!alive.expired()) registrar_->OnDirectoryEvent(event);
          });
        });
    if (!watcher.ok()) return watcher.status();
    watcher_ = *std::move(watcher);
    return absl::OkStatus();
  }

  bool IsRegistered(const std::string& driver) const override {
    return registry_.IsRegistered(driver);
  }
  void Prepare(const std::string& driver,
               std::vector<dra::ClaimReference> claims,
               std::function<void(dra::PrepareAnswer)> done) override {
    registry_.Prepare(driver, std::move(claims), std::move(done));
  }
  void Unprepare(const std::string& driver,
                 std::vector<dra::ClaimReference> claims,
                 std::function<void(dra::UnprepareAnswer)> done) override {
    registry_.Unprepare(driver, std::move(claims), std::move(done));
  }
  std::vector<PluginInfo> Plugins() const override {
    return registry_.Plugins();
  }

 private:
  static dra::Dialer Dialer(rpc::Runtime& runtime) {
    return [&runtime](const std::filesystem::path& socket,
                      std::function<void()> on_hang_up) {
      return rpc::Dial(runtime, socket, std::move(on_hang_up));
    };
  }
  static dra::DriverRegistryOptions RegistryOptions(
      const DeviceManagerOptions& options, const Host& host,
      std::function<void(const std::string&)> on_change) {
    dra::DriverRegistryOptions registry;
    registry.instance = {options.driver_call_timeout, options.max_driver_calls};
    registry.endpoint_dirs = options.plugin_dirs;
    if (!registry.endpoint_dirs.empty()) {
      registry.endpoint_dirs.push_back(options.plugin_registry_dir);
    }
    registry.now = host.now;
    registry.on_change = std::move(on_change);
    return registry;
  }

  // Destroyed from the bottom up: no event, then no handshake, then no call.
  const std::shared_ptr<rpc::Runtime> runtime_;  ///< Outlives every socket.
  dra::DriverRegistry registry_;
  std::unique_ptr<registration::Registrar> registrar_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::unique_ptr<watcher::DirectoryWatcher> watcher_;
};

/// All that is wrong with the options, in one message.
absl::Status CheckOptions(const DeviceManagerOptions& options) {
  std::string text;
  const auto add = [&](const std::string& problem) {
    text += (text.empty() ? "" : "; ") + problem;
  };
  if (options.state_dir.empty() && !options.in_memory_ledger) {
    add("state_dir is required");
  }
  if (options.driver_call_timeout.count() <= 0) {
    add(fmt::format("driver_call_timeout must be positive, not {} ms",
                    options.driver_call_timeout.count()));
  }
  if (options.max_driver_calls <= 0) {
    add(fmt::format("max_driver_calls must be positive, not {}",
                    options.max_driver_calls));
  }
  if (options.max_events == 0) add("max_events must be positive");
  for (const auto& [gate, on] : options.feature_gates) {
    if (gate != "DRAExtendedResource") {
      add(fmt::format("feature gate '{}' is not known", gate));
    }
  }
  if (!options.node_name.empty()) {
    const std::string problem = api::CheckSubdomain(options.node_name);
    if (!problem.empty()) add("node_name: " + problem);
  }
  return text.empty() ? absl::OkStatus() : InvalidArgumentError("{}", text);
}

absl::Status FillHost(Host* host) {
  if (!host->now) host->now = [] { return std::chrono::system_clock::now(); };
  if (host->boot_id) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(const std::string id, KernelBootId());
  host->boot_id = [id] { return id; };
  return absl::OkStatus();
}

absl::Status MakeDirectory(const std::filesystem::path& directory) {
  if (directory.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  return ErrnoStatus(error.value(),
                     fmt::format("make directory '{}'", directory.string()));
}

absl::StatusOr<std::unique_ptr<checkpoint::LedgerStore>> OpenStore(
    const DeviceManagerOptions& options, const Host& host) {
  if (options.in_memory_ledger) return checkpoint::NewInMemoryStore();
  checkpoint::RocksDbStoreOptions store;
  store.directory = options.state_dir;
  store.recovery = options.recovery;
  store.now_ms = [&host] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               host.now().time_since_epoch())
        .count();
  };
  return checkpoint::OpenRocksDbStore(store);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceManager>> DeviceManager::Open(
    const DeviceManagerOptions& options, Host host) {
  DEVMGR_RETURN_IF_ERROR(CheckOptions(options));
  DEVMGR_RETURN_IF_ERROR(FillHost(&host));
  DEVMGR_RETURN_IF_ERROR(MakeDirectory(options.plugin_registry_dir));
  manager::ManagerParts parts;
  DEVMGR_ASSIGN_OR_RETURN(parts.store, OpenStore(options, host));
  DEVMGR_ASSIGN_OR_RETURN(parts.state, parts.store->Load());
  auto runtime = rpc::Runtime::Start();
  if (!runtime.ok()) return runtime.status();
  parts.options = options;
  parts.host = host;
  absl::Status watching;
  parts.drivers = [&, runtime =
                          std::shared_ptr<rpc::Runtime>(*std::move(runtime))](
                      Executor& executor,
                      std::function<void(const std::string&)> on_change) {
    auto drivers = std::make_unique<NodeDrivers>(executor, runtime, options,
                                                 host, std::move(on_change));
    watching = drivers->Watch(executor, options.plugin_registry_dir);
    return drivers;
  };
  std::unique_ptr<DeviceManager> manager =
      manager::Manager::Start(std::move(parts));
  DEVMGR_RETURN_IF_ERROR(watching);
  return manager;
}

}  // namespace devmgr
