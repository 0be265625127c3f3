// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/gauges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <prometheus/client_metric.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "devmgrd/gauge.h"
#include "devmgrd/name_limit.h"

namespace devmgrd {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

/// What the manager shows of itself, as lists.
struct Views {
  devmgr::NodeInfo node;
  std::vector<devmgr::PodInfo> pods;
  std::vector<devmgr::ClaimInfo> claims;
  std::vector<devmgr::DebtInfo> debts;
  std::vector<devmgr::ForeignHolderInfo> holders;
  std::vector<devmgr::DeviceHolderInfo> device_holders;
  std::vector<devmgr::PluginInfo> plugins;
  std::vector<devmgr::RegistrationSocketInfo> sockets;
  std::vector<devmgr::ResourceInfo> resources;
  std::vector<devmgr::RuntimeInfo> runtimes;
};

Views ViewsOf(const devmgr::NodeView& view) {
  return {view.Node(),           view.Pods(),
          view.Claims(),         view.Debts(),
          view.ForeignHolders(), view.DeviceHolders(),
          view.Plugins(),        view.RegistrationSockets(),
          view.Resources(),      view.Runtimes()};
}

Gauge SocketGauge(const Views& views) {
  Gauge gauge("plugin_manager_total_plugins",
              "Sockets in the registration directory (desired), and those "
              "whose plugin is registered (actual)");
  NameLimit names;
  for (const auto& socket : views.sockets) {
    const std::string path = names.Of(socket.path);
    gauge.Add({{"socket_path", path}, {"state", "desired_state_of_world"}}, 1);
    if (!socket.registered) continue;
    gauge.Add({{"socket_path", path}, {"state", "actual_state_of_world"}}, 1);
  }
  return gauge;
}

Gauge ResourceGauge(const Views& views) {
  Gauge gauge("devmgr_resource_devices",
              "Devices of an extended resource: all of them (capacity), usable "
              "ones (allocatable), those that pods hold (held)");
  NameLimit names;
  for (const devmgr::ResourceInfo& resource : views.resources) {
    const std::string name = names.Of(resource.name);
    for (const auto& [kind, count] :
         {std::pair("capacity", resource.capacity),
          std::pair("allocatable", resource.allocatable),
          std::pair("held", resource.held)}) {
      gauge.Add({{"resource_name", name}, {"kind", kind}},
                static_cast<double>(count));
    }
  }
  return gauge;
}

Gauge PodGauge(const Views& views) {
  using State = devmgr::PodState;
  Gauge gauge("devmgr_pods", "Pods that the ledger knows, by state");
  for (const State state :
       {State::kWaiting, State::kPreparing, State::kReady, State::kRejected,
        State::kReleasing, State::kEvicting}) {
    gauge.Add({{"state", std::string(PodStateName(state))}}, 0);
  }
  for (const devmgr::PodInfo& pod : views.pods) {
    gauge.Add({{"state", std::string(PodStateName(pod.state))}}, 1);
  }
  return gauge;
}

Gauge PluginGauge(const Views& views) {
  Gauge gauge("devmgr_plugins",
              "DRA drivers and device plugins, an instance each, by state");
  for (const devmgr::PluginInfo& plugin : views.plugins) {
    gauge.Add({{"kind", std::string(plugin.kind.name())},
               {"state", std::string(plugin.state.name())}},
              1);
  }
  return gauge;
}

/// Of each DRA driver: by state, and those that failed since they connected.
std::vector<Gauge> DriverGauges(const Views& views) {
  Gauge instances("devmgr_dra_driver_instances",
                  "Instances of a DRA driver, by state");
  Gauge failing("devmgr_dra_driver_failing_instances",
                "Instances of a DRA driver of which an error is shown");
  NameLimit drivers;
  for (const devmgr::PluginInfo& plugin : views.plugins) {
    if (plugin.kind != devmgr::PluginKind::kDra) continue;
    const std::string name = drivers.Of(plugin.name);
    instances.Add(
        {{"driver_name", name}, {"state", std::string(plugin.state.name())}},
        1);
    failing.Add({{"driver_name", name}}, plugin.last_error.empty() ? 0 : 1);
  }
  return {instances, failing};
}

/// Of the plugins of one kind.
Gauge PausedGauge(const Views& views, devmgr::PluginKind kind, std::string name,
                  std::string help) {
  Gauge gauge(std::move(name), std::move(help));
  double breaker = 0;
  double quarantine = 0;
  for (const devmgr::PluginInfo& plugin : views.plugins) {
    if (plugin.kind != kind) continue;
    if (plugin.breaker == devmgr::PluginBreaker::kOpen) ++breaker;
    if (plugin.quarantined_until.has_value()) ++quarantine;
  }
  gauge.Add({{"reason", "breaker"}}, breaker);
  gauge.Add({{"reason", "quarantine"}}, quarantine);
  return gauge;
}

/// Prepared ones: at a driver, and at all of their drivers.
Gauge ClaimGauge(const Views& views) {
  Gauge gauge("dra_resource_claims_in_use",
              "Claims that are prepared, by driver; <any>: of all drivers");
  gauge.Add({{"driver_name", "<any>"}}, 0);
  NameLimit drivers;
  for (const devmgr::ClaimInfo& claim : views.claims) {
    if (claim.state != devmgr::ClaimState::kPrepared) continue;
    gauge.Add({{"driver_name", "<any>"}}, 1);
    for (const devmgr::ClaimDriverInfo& driver : claim.drivers) {
      gauge.Add({{"driver_name", drivers.Of(driver.driver)}}, 1);
    }
  }
  return gauge;
}

Gauge DebtGauge(const Views& views) {
  Gauge gauge("devmgr_debts",
              "Claims that a driver should have unprepared and has not");
  NameLimit drivers;
  for (const devmgr::DebtInfo& debt : views.debts) {
    gauge.Add({{"driver_name", drivers.Of(debt.driver)}}, 1);
  }
  return gauge;
}

Gauge HolderGauge(const Views& views) {
  Gauge gauge("devmgr_foreign_holders",
              "Containers that hold devices which no pod was given");
  for (const char* state : {"held", "freed"}) gauge.Add({{"state", state}}, 0);
  for (const devmgr::ForeignHolderInfo& info : views.holders) {
    gauge.Add({{"state", info.freed.empty() ? "held" : "freed"}}, 1);
  }
  return gauge;
}

std::string Joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ","));
}

/// What exporters join with what they know of containers or of devices. The
/// same devices are left out each time, where there are too many.
std::vector<Gauge> ContainerDeviceGauges(const Views& views) {
  Gauge info("devmgr_container_device_info",
             "1 for each device that a container has which has not exited");
  Gauge left_out("devmgr_container_devices_left_out",
                 "Devices of containers for which devmgr_container_device_info "
                 "has no room");
  std::size_t shown = 0;
  double more = 0;
  for (const devmgr::DeviceHolderInfo& holder : views.device_holders) {
    if (holder.state == "exited") continue;
    for (const devmgr::ContainerDevice& device : holder.devices) {
      if (shown >= kMostContainerDevices) {
        ++more;
        continue;
      }
      ++shown;
      info.Set({{"namespace", holder.pod.ns},
                {"pod", holder.pod.name},
                {"pod_uid", holder.pod_uid.value},
                {"container", holder.container.value},
                {"container_id", holder.container_id},
                {"resource_name", device.resource.value},
                {"driver_name", device.driver},
                {"pool", device.pool},
                {"device", device.device},
                {"cdi_device", Joined(device.cdi_devices)},
                {"uuid", device.uuid},
                {"pci_address", device.pci_address}},
               1);
    }
  }
  left_out.Add({}, more);
  return {info, left_out};
}

/// Of each CRI shim that has reported, by its socket.
std::vector<Gauge> ShimGauges(const Views& views) {
  Gauge known("devmgr_shim_known",
              "Sandboxes and containers of which a CRI shim knows");
  Gauge containers("devmgr_shim_containers_total",
                   "Containers created through a CRI shim, by what it did",
                   prometheus::MetricType::Counter);
  Gauge calls("devmgr_shim_calls_total",
              "Calls that a CRI shim decided about; those of them that it "
              "refused or could not read",
              prometheus::MetricType::Counter);
  Gauge losses("devmgr_shim_runtime_losses_total",
               "Connections to the runtime that broke while they served",
               prometheus::MetricType::Counter);
  Gauge turned_away("devmgr_shim_callers_turned_away_total",
                    "Connections to a CRI shim that were closed because too "
                    "many were open",
                    prometheus::MetricType::Counter);
  NameLimit sockets;
  for (const devmgr::RuntimeInfo& runtime : views.runtimes) {
    const devmgr::RuntimeCounters& all = runtime.counters;
    const std::string socket = sockets.Of(runtime.listen);
    const auto add = [&](Gauge& gauge, const char* label, const char* value,
                         std::uint64_t count) {
      gauge.Add({{"socket_path", socket}, {label, value}},
                static_cast<double>(count));
    };
    add(known, "kind", "sandboxes", all.sandboxes);
    add(known, "kind", "sandboxes_of_no_pod", all.foreign_sandboxes);
    add(known, "kind", "containers", all.containers);
    add(known, "kind", "containers_of_unknown_pods", all.unknown_containers);
    add(containers, "outcome", "changed", all.injected);
    add(containers, "outcome", "unchanged", all.unchanged);
    add(calls, "outcome", "all", all.calls);
    add(calls, "outcome", "refused", all.refused);
    add(calls, "outcome", "unreadable", all.unreadable);
    losses.Add({{"socket_path", socket}},
               static_cast<double>(all.runtime_losses));
    turned_away.Add({{"socket_path", socket}},
                    static_cast<double>(all.turned_away));
  }
  return {known, containers, calls, losses, turned_away};
}

/// Of sources that are servers.
std::vector<Gauge> SourceGauges(const std::vector<devmgr::SourceInfo>& infos) {
  Gauge requests("devmgr_source_requests_total",
                 "Requests to an API server, by the code of the answer; none: "
                 "there was no answer",
                 prometheus::MetricType::Counter);
  Gauge restarts("devmgr_source_watch_restarts_total",
                 "Watches of an API server that followed an earlier one",
                 prometheus::MetricType::Counter);
  Gauge age("devmgr_source_age_seconds",
            "How old what is known of the pods of an API server may be; 0 "
            "while they are watched");
  Gauge queue("devmgr_source_queue", "Claims that are still to be read");
  for (const devmgr::SourceInfo& info : infos) {
    for (const devmgr::SourceRequests& one : info.requests) {
      requests.Add(
          {{"verb", one.verb},
           {"resource", one.resource},
           {"code", one.code == 0 ? "none" : fmt::format("{}", one.code)}},
          static_cast<double>(one.count));
    }
    restarts.Add({}, static_cast<double>(info.watch_restarts));
    queue.Add({}, static_cast<double>(info.queued));
    if (info.known_at == devmgr::WallTime()) continue;
    const auto passed = std::chrono::floor<std::chrono::seconds>(
        std::chrono::system_clock::now() - info.known_at);
    age.Add({}, std::max(0.0, std::chrono::duration<double>(passed).count()));
  }
  return {requests, restarts, age, queue};
}

Gauge SimulationCounter(const devmgr::SimulationCounts& counts) {
  Gauge counter("devmgr_simulations_total",
                "Simulations that ended, by the worst of their verdicts",
                prometheus::MetricType::Counter);
  const auto add = [&](const char* verdict, std::uint64_t count) {
    counter.Add({{"verdict", verdict}}, static_cast<double>(count));
  };
  add("admit", counts.admit);
  add("wait", counts.wait);
  add("reject", counts.reject);
  add("interrupted", counts.interrupted);
  return counter;
}

Gauge Single(std::string name, std::string help, double value) {
  Gauge gauge(std::move(name), std::move(help));
  gauge.Add({}, value);
  return gauge;
}

/// The kubelet's, by version of the API, and two of ours.
std::vector<Gauge> PodResourcesGauges(
    const devmgr::PodResourcesCounters& counters) {
  using OfVersion = devmgr::PodResourcesCounters::OfVersion;
  constexpr auto kCounter = prometheus::MetricType::Counter;
  struct Counted {
    const char* name;
    const char* help;
    std::uint64_t OfVersion::*count;
  };
  static constexpr Counted kCounted[] = {
      {"requests_total", "Calls of the pod-resources API",
       &OfVersion::requests},
      {"requests_list", "Calls of List", &OfVersion::list},
      {"requests_get_allocatable", "Calls of GetAllocatableResources",
       &OfVersion::get_allocatable},
      {"requests_get", "Calls of Get", &OfVersion::get},
      {"errors_list", "Calls of List that failed", &OfVersion::errors_list},
      {"errors_get_allocatable", "Calls of GetAllocatableResources that failed",
       &OfVersion::errors_get_allocatable},
      {"errors_get", "Calls of Get that failed", &OfVersion::errors_get}};
  std::vector<Gauge> gauges;
  for (const Counted& counted : kCounted) {
    Gauge& gauge = gauges.emplace_back(
        std::string("kubelet_pod_resources_endpoint_") + counted.name,
        counted.help, kCounter);
    gauge.Add({{"server_api_version", "v1"}},
              static_cast<double>(counters.v1.*counted.count));
    gauge.Add({{"server_api_version", "v1alpha1"}},
              static_cast<double>(counters.v1alpha1.*counted.count));
  }
  gauges
      .emplace_back("devmgr_pod_resources_refused_total",
                    "Calls of the pod-resources API that a limit refused",
                    kCounter)
      .Add({}, static_cast<double>(counters.refused));
  gauges
      .emplace_back("devmgr_pod_resources_missing_claims_total",
                    "Claims that answers of the pod-resources API left out",
                    kCounter)
      .Add({}, static_cast<double>(counters.missing_claims));
  return gauges;
}

std::vector<Gauge> NodeGauges(const Views& views) {
  const devmgr::NodeInfo& node = views.node;
  std::vector<Gauge> gauges = {
      SocketGauge(views),
      ResourceGauge(views),
      PodGauge(views),
      PluginGauge(views),
      PausedGauge(views, devmgr::PluginKind::kDevicePlugin,
                  "devmgr_device_plugins_paused",
                  "Device plugins that get no calls: calls exceeded their "
                  "deadlines (breaker), or connections were lost again and "
                  "again (quarantine)"),
      PausedGauge(views, devmgr::PluginKind::kDra, "devmgr_dra_drivers_paused",
                  "Instances of DRA drivers that are called only when no "
                  "other one can be: calls exceeded their deadlines "
                  "(breaker), or connections were lost again and again "
                  "(quarantine)"),
      ClaimGauge(views),
      DebtGauge(views),
      HolderGauge(views),
      Single("devmgr_claims", "Resource claims that the ledger knows",
             node.claims),
      Single("devmgr_ledger_sequence", "Number of the ledger's last decision",
             static_cast<double>(node.ledger_sequence)),
      Single("devmgr_ledger_writable", "1 while the ledger takes decisions",
             node.ledger_error.empty() ? 1 : 0),
      Single("devmgr_source_complete",
             "1 while all objects of the source could be read",
             node.source_complete ? 1 : 0),
  };
  if (node.runtime.has_value()) {
    gauges.push_back(
        Single("devmgr_runtime_known",
               "1 while it is known what the container runtime runs",
               node.runtime->known ? 1 : 0));
  }
  for (Gauge& gauge : DriverGauges(views)) gauges.push_back(std::move(gauge));
  for (Gauge& gauge : ShimGauges(views)) gauges.push_back(std::move(gauge));
  for (Gauge& gauge : ContainerDeviceGauges(views)) {
    gauges.push_back(std::move(gauge));
  }
  return gauges;
}

Families ToFamilies(const std::vector<Gauge>& gauges) {
  Families families;
  for (const Gauge& gauge : gauges) families.push_back(gauge.Family());
  return families;
}

}  // namespace

Families FamiliesOf(const devmgr::NodeView& view) {
  return ToFamilies(NodeGauges(ViewsOf(view)));
}

Families FamiliesOf(const devmgr::SimulationCounts& counts) {
  return ToFamilies({SimulationCounter(counts)});
}

Families FamiliesOf(const devmgr::PodResourcesCounters& counters) {
  return ToFamilies(PodResourcesGauges(counters));
}

Families FamiliesOf(const std::vector<devmgr::SourceInfo>& infos) {
  return ToFamilies(SourceGauges(infos));
}

}  // namespace devmgrd
