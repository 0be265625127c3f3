// SPDX-License-Identifier: Apache-2.0
//
// Wires a device manager together: checks the options, fills the seams, opens
// the ledger, and gives the manager its drivers.
#include <devmgr/device_manager.h>
#include <devmgr/feature_gates.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "api/names.h"
#include "checkpoint/ledger_store.h"
#include "common/boot_id.h"
#include "common/status.h"
#include "dra/api_version.h"
#include "manager/manager.h"
#include "node/node_peers.h"
#include "rpc/connection.h"

namespace devmgr {
namespace {

template <typename Add>
void CheckDebtPolicy(const std::string& what, const DebtPolicy& policy,
                     const Add& add) {
  if (policy.kind != DebtPolicy::Kind::kForgive) return;
  if (policy.forgive_after.count() > 0) return;
  add(fmt::format("{}: forgive_after must be positive, not {} ms", what,
                  policy.forgive_after.count()));
}

/// All that is wrong with the options, in one message.
absl::Status CheckOptions(const DeviceManagerOptions& options) {
  std::string text;
  const auto add = [&](const std::string& problem) {
    text += (text.empty() ? "" : "; ") + problem;
  };
  if (options.state_dir.empty() && !options.ledger.in_memory) {
    add("state_dir is required");
  }
  if (options.dra.call_timeout.count() <= 0) {
    add(fmt::format("dra.call_timeout must be positive, not {} ms",
                    options.dra.call_timeout.count()));
  }
  if (options.dra.max_calls <= 0) {
    add(fmt::format("dra.max_calls must be positive, not {}",
                    options.dra.max_calls));
  }
  if (const absl::Status api =
          dra::CheckApiOptions({options.dra.compat, options.dra.apis});
      !api.ok()) {
    add(MessageOf(api));
  }
  if (options.health.healthy_for.count() < 0) {
    add(fmt::format("health.healthy_for must not be negative, as {} ms is",
                    options.health.healthy_for.count()));
  }
  if (options.topology.max_numa_nodes < kDefaultMaxNumaNodes) {
    add(fmt::format(
        "topology.max_numa_nodes must not be less than {}, as {} is",
        kDefaultMaxNumaNodes, options.topology.max_numa_nodes));
  }
  if (options.max_events == 0) add("max_events must be positive");
  for (const auto& [name, duration] :
       std::initializer_list<std::pair<const char*, std::chrono::milliseconds>>{
           {"device_plugins.call_timeout", options.device_plugins.call_timeout},
           {"device_plugins.grace_period", options.device_plugins.grace_period},
           {"policies.admission_wait", options.policies.admission_wait},
           {"policies.starvation_limit", options.policies.starvation_limit},
           {"health.unhealthy_for", options.health.unhealthy_for},
           {"dra.slice_grace_period", options.dra.slice_grace_period},
           {"retries.first", options.retries.first},
           {"retries.last", options.retries.last},
           {"retries.sweep", options.retries.sweep}}) {
    if (duration.count() > 0) continue;
    add(fmt::format("{} must be positive, not {} ms", name, duration.count()));
  }
  for (const auto& [resource, timeout] : options.device_plugins.call_timeouts) {
    if (timeout.count() > 0) continue;
    add(fmt::format(
        "device_plugins.call_timeouts of '{}' must be positive, not {} ms",
        resource, timeout.count()));
  }
  if (const absl::Status gates = CheckFeatureGates(options.feature_gates);
      !gates.ok()) {
    add(MessageOf(gates));
  }
  if (options.retries.last < options.retries.first) {
    add(fmt::format("retries.last of {} ms is less than retries.first of {} ms",
                    options.retries.last.count(),
                    options.retries.first.count()));
  }
  CheckDebtPolicy("dra.debt_policy", options.dra.debt_policy, add);
  for (const auto& [driver, policy] : options.dra.debt_policies) {
    CheckDebtPolicy(fmt::format("dra.debt_policies of '{}'", driver), policy,
                    add);
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
  if (options.ledger.in_memory) return checkpoint::NewInMemoryStore();
  checkpoint::RocksDbStoreOptions store;
  store.directory = options.state_dir;
  store.recovery = options.ledger.recovery;
  store.pods_first = true;
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
  parts.options = options;
  DEVMGR_RETURN_IF_ERROR(manager::ReadNuma(&parts));
  DEVMGR_ASSIGN_OR_RETURN(parts.store, OpenStore(options, host));
  if (auto pods = parts.store->PodsFirst(); pods.has_value()) {
    parts.state = *std::move(pods);
    parts.has_pods_only = true;
  } else {
    DEVMGR_ASSIGN_OR_RETURN(parts.state, parts.store->Load());
  }
  parts.hardware_host = upkeep::SystemHardwareHost();
  auto runtime = rpc::Runtime::Start();
  if (!runtime.ok()) return runtime.status();
  parts.host = host;
  auto peers =
      std::make_shared<node::NodePeers>(*std::move(runtime), options, host);
  parts.drivers = [peers](Executor& executor,
                          std::function<void(const std::string&)> on_change) {
    return peers->MakeDrivers(executor, std::move(on_change));
  };
  parts.plugins = [peers](Executor& executor,
                          plugin::PluginListener& listener) {
    return peers->MakePlugins(executor, listener);
  };
  absl::Status opened;
  parts.endpoints = [peers, &opened](Executor& executor) {
    auto endpoints = peers->OpenPluginEndpoints(executor);
    opened = endpoints.status();
    return endpoints.ok() ? *std::move(endpoints) : nullptr;
  };
  std::unique_ptr<DeviceManager> manager =
      manager::Manager::Start(std::move(parts));
  DEVMGR_RETURN_IF_ERROR(opened);
  return manager;
}

}  // namespace devmgr
