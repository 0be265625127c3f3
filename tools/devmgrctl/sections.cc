// SPDX-License-Identifier: Apache-2.0
#include "sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

constexpr char kUnknown[] = "<unknown>";

std::string OriginText(const DeviceOrigin& origin) {
  std::string text = fmt::format("{} {}/{} {}/{}", origin.driver, origin.pool,
                                 origin.device, origin.claim, origin.request);
  return origin.resource.empty() ? text : text + " " + origin.resource.value;
}

std::string OriginText(const ContainerDevices& container,
                       const std::string& resource) {
  const std::string ids = Join(DevicesOf(container, resource), ",");
  return ids.empty() ? resource : resource + " " + ids;
}

/// One row of InjectedTable but for the container: what, value, from.
using Injected = std::vector<std::string>;

std::vector<Injected> InjectedInto(const ContainerDevices& container,
                                   const SharedCdiNames& shared,
                                   bool show_env) {
  std::vector<Injected> rows;
  for (const CdiDevice& device : container.cdi_devices) {
    const DeviceOrigin& origin = device.origin;
    rows.push_back({"CDI device", device.name,
                    origin.driver.empty()
                        ? OriginText(container, origin.resource)
                        : OriginText(origin)});
    if (const auto all = shared.find(device.name); all != shared.end()) {
      rows.back().back() +=
          fmt::format(" (for {})", fmt::join(all->second, ", "));
    }
  }
  for (const NamedValue& env : container.env) {
    // Values may be secrets.
    rows.push_back({"environment",
                    env.name + "=" + (show_env ? env.value : "***"),
                    OriginText(container, env.resource)});
  }
  for (const DeviceMount& mount : container.mounts) {
    rows.push_back({"mount",
                    mount.host_path + ":" + mount.container_path +
                        (mount.read_only ? ":ro" : ""),
                    OriginText(container, mount.resource)});
  }
  for (const DeviceNode& node : container.devices) {
    rows.push_back(
        {"device node",
         node.host_path + ":" + node.container_path + ":" + node.permissions,
         OriginText(container, node.resource)});
  }
  for (const NamedValue& annotation : container.annotations) {
    rows.push_back({"annotation", annotation.name + "=" + annotation.value,
                    OriginText(container, annotation.resource)});
  }
  if (container.devices_released) {
    rows.push_back({"(released)", "", "init containers ended"});
  }
  if (rows.empty()) rows.push_back({"", "", ""});
  return rows;
}

/// What is wrong with an object's manifest; empty, too, when that is not known.
std::string ManifestProblemOf(Inspector& inspector, const std::string& kind,
                              const ObjectName& object) {
  const auto node = inspector.Node();
  if (!node.ok()) return "";
  for (const ObjectProblem& problem : node->object_problems) {
    if (problem.object_kind == kind && problem.object == object) {
      return problem.problem;
    }
  }
  return "";
}

}  // namespace

std::string StateText(const ResourceInfo& resource) {
  return resource.state ? WordOf(resource.state) : kUnknown;
}

std::string FigureText(const ResourceInfo& resource, std::int64_t figure) {
  return HasFigures(resource) ? fmt::format("{}", figure) : kUnknown;
}

std::string HealthText(const DeviceInfo& device) {
  // Some drivers tell nothing of it.
  if (device.resource.empty()) return WordOf(device.health);
  return device.health ? WordOf(device.health) : kUnknown;
}

std::string NumaText(const DeviceInfo& device) {
  return fmt::format("{}", fmt::join(device.numa_nodes, ","));
}

void AddManifestProblem(Inspector& inspector, const std::string& kind,
                        const ObjectName& object, Fields* fields) {
  const std::string problem = ManifestProblemOf(inspector, kind, object);
  if (!problem.empty()) fields->Add("Manifest", {problem, Tone::kBad});
}

absl::StatusOr<PodInfo> FindPod(Inspector& inspector, const ObjectName& name) {
  auto pod = inspector.FindPod(name);
  if (pod.status().code() != absl::StatusCode::kNotFound) return pod;
  const std::string problem = ManifestProblemOf(inspector, "Pod", name);
  if (problem.empty()) return pod;
  return MakeError(absl::StatusCode::kNotFound,
                   fmt::format("{}; its manifest cannot be used: {}",
                               MessageOf(pod.status()), problem));
}

void AddFields(const Session& session, const ResourceInfo& resource,
               Fields* fields) {
  fields->Add("Owner", WordOf(resource.owner));
  fields->Add("State", {StateText(resource), ToneOf(resource)});
  fields->Add("Age", session.Age(resource.since));
  fields->Add("Capacity", FigureText(resource, resource.capacity));
  fields->Add("Allocatable", FigureText(resource, resource.allocatable));
  fields->Add("Held", fmt::format("{}", resource.held));
  if (!resource.by_operator.empty()) {
    fields->Add("By operator", resource.by_operator);
  }
  if (!resource.device_class.empty()) {
    fields->Add("Device class", resource.device_class);
  }
  if (!resource.drivers.empty()) {
    fields->Add("Drivers", Join(resource.drivers, ", "));
  }
}

void AddFields(const PluginInfo& plugin, Fields* fields) {
  fields->Add("Kind", plugin.kind.name());
  fields->Add("Endpoint", plugin.endpoint);
  fields->Add("Version", plugin.version);
  fields->Add("State", {plugin.state.name(), ToneOf(plugin)});
  fields->Add("Registered", TimeText(plugin.registered_since));
  fields->Add("Serves", plugin.serves ? "yes" : "no");
  fields->Add("Calls", fmt::format("{} under way, {} queued", plugin.calls,
                                   plugin.queued));
  if (plugin.calling_since) {
    fields->Add("Calling since", TimeText(*plugin.calling_since));
  }
  if (plugin.kind == PluginKind::kDevicePlugin) {
    fields->Add("Via", WordOf(plugin.via));
    fields->Add("Devices", fmt::format("{}", plugin.devices));
  }
  fields->Add(
      "Breaker",
      {plugin.breaker.name(),
       plugin.breaker == PluginBreaker::kClosed ? Tone::kGood : Tone::kBad});
  fields->Add("Quarantined until",
              {TimeText(plugin.quarantined_until.value_or(WallTime())),
               plugin.quarantined_until ? Tone::kBad : Tone::kPlain});
  fields->Add("Last error", plugin.last_error);
}

void PrintSection(const Session& session, Table table) {
  if (table.empty()) return;
  session.out() << "\n";
  table.Print(session.out());
}

Table DriverTable(const Session& session, const ClaimInfo& claim) {
  Table table = session.MakeTable(
      {"DRIVER", "STATE", "DEVICES", "CDI DEVICES", "LAST ERROR"});
  for (const ClaimDriverInfo& driver : claim.drivers) {
    const bool good = driver.state == ClaimState::kPrepared;
    table.Add({driver.driver,
               {driver.state.name(), good ? Tone::kGood : Tone::kWarn},
               Join(driver.devices, ","),
               Join(driver.cdi_devices, ","),
               {driver.last_error,
                driver.last_error.empty() ? Tone::kPlain : Tone::kBad}});
  }
  return table;
}

SharedCdiNames SharedCdiNamesOf(Inspector& inspector, const ObjectName& pod) {
  SharedCdiNames shared;
  const auto devices = inspector.Devices();
  if (!devices.ok()) return shared;
  for (const DeviceInfo& device : *devices) {
    if (std::find(device.used_by.begin(), device.used_by.end(),
                  pod.ToString()) == device.used_by.end()) {
      continue;
    }
    for (const std::string& name : device.cdi_devices) {
      shared[name].push_back(device.pool + "/" + device.device);
    }
  }
  std::erase_if(shared,
                [](const auto& entry) { return entry.second.size() < 2; });
  return shared;
}

Table InjectedTable(const Session& session, const PodDevices& devices,
                    const SharedCdiNames& shared) {
  std::vector<std::string> headers = {"CONTAINER", "INJECTED", "VALUE", "FROM"};
  if (session.wide()) headers.emplace_back("INIT");
  Table table = session.MakeTable(std::move(headers));
  for (const ContainerDevices& container : devices.containers) {
    for (const Injected& injected :
         InjectedInto(container, shared, session.options().show_env)) {
      std::vector<Cell> row = {container.name};
      row.insert(row.end(), injected.begin(), injected.end());
      if (session.wide()) row.emplace_back(container.init ? "true" : "false");
      table.Add(std::move(row));
    }
  }
  return table;
}

Table AllocatedTable(const Session& session, const PodInfo& pod) {
  Table table = session.MakeTable(
      {"CONTAINER", "RESOURCE", "DEVICE", "HEALTH", "SINCE", "MESSAGE"});
  for (const ContainerResourceStatus& container : pod.allocated_resources) {
    for (const ResourceStatus& resource : container.resources) {
      for (const ResourceHealth& device : resource.resources) {
        table.Add({container.container, resource.name, device.resource_id,
                   device.health.name(), TimeText(device.since),
                   device.message});
      }
    }
  }
  return table;
}

std::vector<EventInfo> EventsOf(const Session& session, Inspector& inspector,
                                const std::string& kind,
                                const ObjectName& object) {
  if (session.options().offline()) return {};
  auto events = inspector.Events(0, std::chrono::milliseconds(0));
  if (!events.ok()) {
    session.Note("events: " + MessageOf(events.status()));
    return {};
  }
  std::erase_if(*events, [&](const EventInfo& event) {
    return event.object != object || event.object_kind != kind;
  });
  return *std::move(events);
}

void PrintEvents(const Session& session, const std::vector<EventInfo>& events) {
  Table table = session.MakeTable({"EVENT", "AGE", "TYPE", "MESSAGE"});
  for (const EventInfo& event : events) {
    table.Add({event.reason,
               session.Age(event.time),
               {event.warning ? "Warning" : "Normal",
                event.warning ? Tone::kWarn : Tone::kPlain},
               MessageOf(event)});
  }
  PrintSection(session, std::move(table));
}

}  // namespace devmgr::ctl
