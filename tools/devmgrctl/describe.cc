// SPDX-License-Identifier: Apache-2.0
//
// describe pod|claim|plugin NAME.
#include <fmt/format.h>

#include "commands.h"
#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

/// For the formats that need no more than the object itself.
/// False: the caller prints it for people.
template <typename Info>
bool PrintForPrograms(const Session& session, const char* kind,
                      const std::string& name, const Info& info) {
  if (session.is_document()) {
    PrintDocument(session.out(), DocumentOf(kind, ItemOf(info)),
                  session.options().format);
    return true;
  }
  if (session.options().format == Format::kName) {
    session.out() << name << "\n";
    return true;
  }
  return false;
}

/// The events of one object, as far as they are known. A state directory has
/// none; that is no reason to fail.
void PrintEvents(const Session& session, Inspector& inspector,
                 const std::string& kind, const ObjectName& object) {
  if (session.options().offline()) return;
  const auto events = inspector.Events(0, std::chrono::milliseconds(0));
  if (!events.ok()) {
    session.Note("events: " + MessageOf(events.status()));
    return;
  }
  Table table = session.MakeTable({"EVENT", "AGE", "TYPE", "MESSAGE"});
  for (const EventInfo& event : *events) {
    if (event.object != object || event.object_kind != kind) continue;
    table.Add({event.reason,
               session.Age(event.time),
               {event.warning ? "Warning" : "Normal",
                event.warning ? Tone::kWarn : Tone::kPlain},
               event.message});
  }
  if (table.empty()) return;
  session.out() << "\n";
  table.Print(session.out());
}

void PrintDrivers(const Session& session, const ClaimInfo& claim) {
  Table table = session.MakeTable(
      {"DRIVER", "STATE", "DEVICES", "CDI DEVICES", "LAST ERROR"});
  for (const ClaimDriverInfo& driver : claim.drivers) {
    const bool good = driver.state == "Prepared";
    table.Add({driver.driver,
               {driver.state, good ? Tone::kGood : Tone::kWarn},
               Join(driver.devices, ","),
               Join(driver.cdi_devices, ","),
               {driver.last_error,
                driver.last_error.empty() ? Tone::kPlain : Tone::kBad}});
  }
  if (table.empty()) return;
  session.out() << "\n";
  table.Print(session.out());
}

void PrintDevices(const Session& session, const PodDevices& devices) {
  Table table = session.MakeTable({"CONTAINER", "INJECTED", "VALUE", "FROM"});
  for (const ContainerDevices& container : devices.containers) {
    const auto add = [&](const char* what, const std::string& value,
                         const std::string& from = "") {
      table.Add({container.name, what, value, from});
    };
    for (const CdiDevice& device : container.cdi_devices) {
      const DeviceOrigin& origin = device.origin;
      add("CDI device", device.name,
          fmt::format("{} {}/{} {}/{}", origin.driver, origin.pool,
                      origin.device, origin.claim, origin.request));
    }
    for (const NamedValue& env : container.env) {
      // Values may be secrets: -o json has them.
      add("environment", env.name + "=***");
    }
    for (const DeviceMount& mount : container.mounts) {
      add("mount", mount.host_path + ":" + mount.container_path +
                       (mount.read_only ? ":ro" : ""));
    }
    for (const DeviceNode& node : container.devices) {
      add("device node",
          node.host_path + ":" + node.container_path + ":" + node.permissions);
    }
    for (const NamedValue& annotation : container.annotations) {
      add("annotation", annotation.name + "=" + annotation.value);
    }
  }
  if (table.empty()) return;
  session.out() << "\n";
  table.Print(session.out());
}

absl::Status DescribePod(const Session& session, Inspector& inspector) {
  const auto pod = inspector.FindPod(session.options().name);
  if (!pod.ok()) return pod.status();
  if (PrintForPrograms(session, "Pod", "pod/" + pod->name.name, *pod)) {
    return absl::OkStatus();
  }
  Fields fields(session.color());
  fields.Add("Name", pod->name.name);
  fields.Add("Namespace", pod->name.ns);
  fields.Add("UID", pod->uid.value);
  fields.Add("State",
             {std::string(PodStateName(pod->state)), ToneOf(pod->state)});
  fields.Add("Reason", pod->reason);
  fields.Add("Message", pod->message);
  for (const WaitingFor& waiting : pod->waiting_for) {
    fields.Add("Waiting for", std::string(WaitingForKindName(waiting.kind)) +
                                  " " + waiting.name);
  }
  fields.Add("Age", session.Age(pod->first_seen));
  fields.Add("Containers", Join(pod->containers, ", "));
  fields.Add("Claims", Join(pod->claims, ", "));
  fields.Print(session.out());
  if (pod->state == PodState::kReady) {
    const auto devices = inspector.Resolve(pod->name);
    if (devices.ok()) PrintDevices(session, *devices);
    if (!devices.ok()) session.Note(MessageOf(devices.status()));
  }
  PrintEvents(session, inspector, "Pod", pod->name);
  return absl::OkStatus();
}

/// A claim that was re-created shows up once per UID.
absl::Status DescribeClaims(const Session& session, Inspector& inspector) {
  const ObjectName& name = session.options().name;
  const auto claims = inspector.Claims();
  if (!claims.ok()) return claims.status();
  bool found = false;
  for (const ClaimInfo& claim : *claims) {
    if (claim.name != name) continue;
    if (PrintForPrograms(session, "Claim", "claim/" + claim.name.name, claim)) {
      return absl::OkStatus();
    }
    if (found) session.out() << "\n";
    found = true;
    Fields fields(session.color());
    fields.Add("Name", claim.name.name);
    fields.Add("Namespace", claim.name.ns);
    fields.Add("UID", claim.uid.value);
    fields.Add("State", {claim.state, claim.state == "Prepared" ? Tone::kGood
                                                                : Tone::kWarn});
    fields.Add("Pods", Join(claim.pods, ", "));
    fields.Print(session.out());
    PrintDrivers(session, claim);
  }
  if (!found) {
    return MakeError(
        absl::StatusCode::kNotFound,
        fmt::format("claim '{}' has no reference, no prepared driver and no "
                    "open intent here; 'history' may know more",
                    name.ToString()));
  }
  PrintEvents(session, inspector, "ResourceClaim", name);
  return absl::OkStatus();
}

absl::Status DescribePlugin(const Session& session, Inspector& inspector) {
  const absl::Status online = session.CheckOnline("describing a plugin");
  if (!online.ok()) return online;
  const std::string& name = session.options().name.name;
  const auto plugins = inspector.Plugins();
  if (!plugins.ok()) return plugins.status();
  for (const PluginInfo& plugin : *plugins) {
    if (plugin.name != name) continue;
    if (PrintForPrograms(session, "Plugin", "plugin/" + name, plugin)) {
      return absl::OkStatus();
    }
    Fields fields(session.color());
    fields.Add("Name", plugin.name);
    fields.Add("Kind", plugin.kind);
    fields.Add("Endpoint", plugin.endpoint);
    fields.Add("Version", plugin.version);
    fields.Add("State",
               {plugin.state,
                plugin.state == "Connected" ? Tone::kGood : Tone::kWarn});
    fields.Add("Registered", TimeText(plugin.registered_since));
    fields.Add("Last error", plugin.last_error);
    fields.Print(session.out());
    PrintEvents(session, inspector, "Plugin", {"", name});
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kNotFound,
                   fmt::format("plugin '{}' is not registered", name));
}

}  // namespace

absl::Status Describe(const Session& session) {
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  switch (session.options().kind) {
    case Kind::kClaim:
      return DescribeClaims(session, **inspector);
    case Kind::kPlugin:
      return DescribePlugin(session, **inspector);
    default:
      return DescribePod(session, **inspector);
  }
}

}  // namespace devmgr::ctl
