// SPDX-License-Identifier: Apache-2.0
//
// describe pod|claim|plugin|resource|device|slice NAME.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "commands.h"
#include "listing.h"
#include "lookup.h"
#include "objects.h"
#include "sections.h"
#include "slices.h"
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
    session.out() << Clean(name) << "\n";
    return true;
  }
  return false;
}

absl::Status DescribePod(const Session& session, Inspector& inspector) {
  const auto pod = FindPod(inspector, session.options().name);
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
  AddManifestProblem(inspector, "Pod", pod->name, &fields);
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
    if (devices.ok()) {
      PrintSection(session,
                   InjectedTable(session, *devices,
                                 SharedCdiNamesOf(inspector, pod->name)));
    }
    if (!devices.ok()) session.Note(MessageOf(devices.status()));
  }
  PrintSection(session, AllocatedTable(session, *pod));
  PrintEvents(session, EventsOf(session, inspector, "Pod", pod->name));
  return absl::OkStatus();
}

/// A claim that was re-created shows up once per UID.
absl::Status DescribeClaims(const Session& session, Inspector& inspector) {
  const ObjectName& name = session.options().name;
  const auto claims = FindClaims(inspector, name);
  if (!claims.ok()) return claims.status();
  for (const ClaimInfo& claim : *claims) {
    if (PrintForPrograms(session, "Claim", "claim/" + claim.name.name, claim)) {
      return absl::OkStatus();
    }
    if (&claim != &claims->front()) session.out() << "\n";
    Fields fields(session.color());
    fields.Add("Name", claim.name.name);
    fields.Add("Namespace", claim.name.ns);
    fields.Add("UID", claim.uid.value);
    fields.Add("State", {claim.state.name(),
                         claim.state == ClaimState::kPrepared ? Tone::kGood
                                                              : Tone::kWarn});
    fields.Add("Pods", Join(claim.pods, ", "));
    AddManifestProblem(inspector, "ResourceClaim", claim.name, &fields);
    fields.Print(session.out());
    PrintSection(session, DriverTable(session, claim));
  }
  PrintEvents(session, EventsOf(session, inspector, "ResourceClaim", name));
  return absl::OkStatus();
}

/// A resource may have several plugins at a time, as when one replaces another.
absl::Status DescribePlugin(const Session& session, Inspector& inspector) {
  const std::string& name = session.options().name.name;
  const auto plugins = FindPlugins(session, inspector, name);
  if (!plugins.ok()) return plugins.status();
  for (const PluginInfo& plugin : *plugins) {
    if (PrintForPrograms(session, "Plugin", "plugin/" + name, plugin)) {
      return absl::OkStatus();
    }
    if (&plugin != &plugins->front()) session.out() << "\n";
    Fields fields(session.color());
    fields.Add("Name", plugin.name);
    AddFields(plugin, &fields);
    fields.Print(session.out());
  }
  PrintEvents(session, EventsOf(session, inspector, "Plugin", {"", name}));
  return absl::OkStatus();
}

/// How many devices are in which health and why, and how many of them are held.
Table HealthTable(const Session& session,
                  const std::vector<DeviceInfo>& devices) {
  struct Count {
    Tone tone = Tone::kPlain;
    int all = 0;
    int held = 0;
  };
  std::map<std::pair<std::string, std::string>, Count> counts;
  for (const DeviceInfo& device : devices) {
    Count& count = counts[{HealthText(device), device.health_reason}];
    count.tone = ToneOf(device);
    ++count.all;
    if (!device.used_by.empty()) ++count.held;
  }
  Table table = session.MakeTable({"HEALTH", "DEVICES", "HELD", "REASON"});
  for (const auto& [key, count] : counts) {
    table.Add({{key.first, count.tone},
               fmt::format("{}", count.all),
               fmt::format("{}", count.held),
               key.second});
  }
  return table;
}

Table HolderTable(const Session& session,
                  const std::vector<DeviceInfo>& devices) {
  std::map<std::string, std::vector<std::string>> held;
  for (const DeviceInfo& device : devices) {
    for (const std::string& pod : device.used_by) {
      held[pod].push_back(device.device);
    }
  }
  Table table = session.MakeTable({"HELD BY", "DEVICES"});
  for (const auto& [pod, ids] : held) table.Add({pod, Join(ids, ",")});
  return table;
}

absl::Status DescribeResource(const Session& session, Inspector& inspector) {
  const std::string& name = session.options().name.name;
  const auto resource = FindResource(inspector, name);
  if (!resource.ok()) return resource.status();
  if (PrintForPrograms(session, "Resource", "resource/" + name, *resource)) {
    return absl::OkStatus();
  }
  auto devices = inspector.Devices();
  if (!devices.ok()) return devices.status();
  std::erase_if(*devices, [&](const auto& d) { return d.resource != name; });
  Sort(*devices);
  Fields fields(session.color());
  fields.Add("Name", name);
  AddFields(session, *resource, &fields);
  fields.Print(session.out());
  PrintSection(session, HealthTable(session, *devices));
  PrintSection(session, HolderTable(session, *devices));
  std::vector<EventInfo> events =
      EventsOf(session, inspector, "Plugin", {"", name});
  for (EventInfo& event :
       EventsOf(session, inspector, "Resource", {"", name})) {
    events.push_back(std::move(event));
  }
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
    return a.sequence < b.sequence;
  });
  PrintEvents(session, events);
  return absl::OkStatus();
}

absl::Status DescribeDevice(const Session& session, Inspector& inspector) {
  auto devices = inspector.Devices();
  if (!devices.ok()) return devices.status();
  Sort(*devices);
  const auto device = FindDevice(*devices, session.options().name.name);
  if (!device.ok()) return device.status();
  if (PrintForPrograms(session, "Device", "device/" + NameOf(*device),
                       *device)) {
    return absl::OkStatus();
  }
  Fields fields(session.color());
  fields.Add("Name", device->device);
  if (device->resource.empty()) {
    fields.Add("Driver", device->driver);
    fields.Add("Pool", device->pool);
    fields.Add("CDI devices", Join(device->cdi_devices, ", "));
  } else {
    fields.Add("Resource", device->resource);
  }
  // Some drivers tell nothing of it.
  if (!device->resource.empty() || device->health.has_value()) {
    fields.Add("Health", {HealthText(*device), ToneOf(*device)});
    fields.Add("Reason", device->health_reason);
    fields.Add("Since", TimeText(device->since));
  }
  if (!device->resource.empty()) {
    fields.Add("NUMA nodes", NumaText(*device));
  }
  fields.Add("Used by", Join(device->used_by, ", "));
  fields.Print(session.out());
  return absl::OkStatus();
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
    case Kind::kResource:
      return DescribeResource(session, **inspector);
    case Kind::kDevice:
      return DescribeDevice(session, **inspector);
    case Kind::kSlice:
      return DescribeSlice(session, **inspector);
    default:
      return DescribePod(session, **inspector);
  }
}

}  // namespace devmgr::ctl
