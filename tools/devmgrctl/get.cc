// SPDX-License-Identifier: Apache-2.0
//
// get plugins|resources|claims|debts|pods|devices|classes|holders|sources|
// slices|numa|changes [NAME].
#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "commands.h"
#include "holders.h"
#include "listing.h"
#include "lookup.h"
#include "numa.h"
#include "objects.h"
#include "sections.h"
#include "slices.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

/// Without -n all namespaces are shown.
template <typename Info>
void KeepNamespace(const std::string& ns, std::vector<Info>& infos) {
  if (ns.empty()) return;
  std::erase_if(infos, [&](const Info& info) { return info.name.ns != ns; });
}

/// Objects that are not shown, or not as their manifests have them now.
void NoteManifestProblems(const Session& session, Inspector& inspector,
                          const std::string& kind) {
  constexpr std::size_t kMost = 20;
  const auto node = inspector.Node();
  if (!node.ok()) return;
  const std::string& ns = session.options().ns;
  std::size_t count = 0;
  for (const ObjectProblem& problem : node->object_problems) {
    if (problem.object_kind != kind) continue;
    if (!ns.empty() && problem.object.ns != ns) continue;
    if (++count > kMost) continue;
    session.Note(fmt::format("{} '{}': {}", kind, problem.object.ToString(),
                             problem.problem));
  }
  if (count > kMost) {
    session.Note(
        fmt::format("{} more have bad manifests, see 'status'", count - kMost));
  }
}

/// Without a resource or driver all devices are shown.
void KeepOwner(const std::string& owner, std::vector<DeviceInfo>& devices) {
  if (owner.empty()) return;
  std::erase_if(devices, [&](const DeviceInfo& device) {
    return device.resource != owner && device.driver != owner;
  });
}

std::string WaitingText(const PodInfo& pod) {
  std::vector<std::string> parts;
  for (const WaitingFor& waiting : pod.waiting_for) {
    parts.push_back(std::string(WaitingForKindName(waiting.kind)) + "/" +
                    waiting.name);
  }
  return Join(parts, ",");
}

const Listing<PodInfo> kPods = {
    "PodList",
    "pod",
    {"NAMESPACE", "NAME", "STATE", "REASON", "WAITING FOR", "AGE"},
    {"UID", "CONTAINERS", "CLAIMS", "MESSAGE"},
    [](const PodInfo& pod) {
      return std::vector<std::string>{pod.name.ns, pod.name.name,
                                      pod.uid.value};
    },
    [](const PodInfo& pod) { return pod.name.name; },
    [](const Session& session, const PodInfo& pod) {
      return Row{pod.name.ns,
                 pod.name.name,
                 {std::string(PodStateName(pod.state)), ToneOf(pod.state)},
                 pod.reason,
                 WaitingText(pod),
                 session.Age(pod.first_seen)};
    },
    [](const Session&, const PodInfo& pod) {
      return Row{pod.uid.value, Join(pod.containers, ","),
                 Join(pod.claims, ","), pod.message};
    }};

std::string DriverNames(const ClaimInfo& claim) {
  std::vector<std::string> names;
  for (const ClaimDriverInfo& driver : claim.drivers) {
    names.push_back(driver.driver);
  }
  return Join(names, ",");
}

/// All entries of one list of every driver.
std::string OfDrivers(const ClaimInfo& claim,
                      std::vector<std::string> ClaimDriverInfo::*list) {
  std::vector<std::string> all;
  for (const ClaimDriverInfo& driver : claim.drivers) {
    const std::vector<std::string>& some = driver.*list;
    all.insert(all.end(), some.begin(), some.end());
  }
  return Join(all, ",");
}

const Listing<ClaimInfo> kClaims = {
    "ClaimList",
    "claim",
    {"NAMESPACE", "NAME", "STATE", "DRIVERS", "PODS"},
    {"UID", "DEVICES", "CDI DEVICES"},
    [](const ClaimInfo& claim) {
      return std::vector<std::string>{claim.name.ns, claim.name.name,
                                      claim.uid.value};
    },
    [](const ClaimInfo& claim) { return claim.name.name; },
    [](const Session&, const ClaimInfo& claim) {
      const Tone tone =
          claim.state == ClaimState::kPrepared ? Tone::kGood : Tone::kWarn;
      return Row{claim.name.ns,
                 claim.name.name,
                 {claim.state.name(), tone},
                 DriverNames(claim),
                 Join(claim.pods, ",")};
    },
    [](const Session&, const ClaimInfo& claim) {
      return Row{claim.uid.value, OfDrivers(claim, &ClaimDriverInfo::devices),
                 OfDrivers(claim, &ClaimDriverInfo::cdi_devices)};
    }};

const Listing<DebtInfo> kDebts = {
    "DebtList",
    "debt",
    {"NAMESPACE", "CLAIM", "DRIVER", "PODS", "AGE", "ATTEMPTS", "POLICY"},
    {"UID", "LAST ERROR"},
    [](const DebtInfo& debt) {
      return std::vector<std::string>{debt.claim.ns, debt.claim.name,
                                      debt.uid.value, debt.driver};
    },
    [](const DebtInfo& debt) { return debt.claim.name + "/" + debt.driver; },
    [](const Session& session, const DebtInfo& debt) {
      return Row{debt.claim.ns,
                 debt.claim.name,
                 debt.driver,
                 Join(debt.pods, ","),
                 session.Age(debt.since),
                 fmt::format("{}", debt.attempts),
                 debt.policy};
    },
    [](const Session&, const DebtInfo& debt) {
      return Row{debt.uid.value, {debt.last_error, Tone::kBad}};
    }};

const Listing<PluginInfo> kPlugins = {
    "PluginList",
    "plugin",
    {"NAME", "KIND", "VERSION", "STATE", "SERVES", "AGE"},
    {"VIA", "DEVICES", "BREAKER", "QUARANTINED UNTIL", "CALLS", "QUEUED",
     "CALLING SINCE", "ENDPOINT", "LAST ERROR"},
    [](const PluginInfo& plugin) {
      return std::vector<std::string>{
          plugin.name, std::string(plugin.kind.name()), plugin.endpoint};
    },
    [](const PluginInfo& plugin) { return plugin.name; },
    [](const Session& session, const PluginInfo& plugin) {
      return Row{plugin.name,
                 plugin.kind.name(),
                 plugin.version,
                 {plugin.state.name(), ToneOf(plugin)},
                 plugin.serves ? "yes" : "no",
                 session.Age(plugin.registered_since)};
    },
    [](const Session&, const PluginInfo& plugin) {
      const bool of_devices = plugin.kind == PluginKind::kDevicePlugin;
      return Row{
          WordOf(plugin.via),
          of_devices ? fmt::format("{}", plugin.devices) : "",
          plugin.breaker.name(),
          TimeText(plugin.quarantined_until.value_or(WallTime())),
          fmt::format("{}", plugin.calls),
          fmt::format("{}", plugin.queued),
          TimeText(plugin.calling_since.value_or(WallTime())),
          plugin.endpoint,
          plugin.last_error,
      };
    }};

const Listing<ResourceInfo> kResources = {
    "ResourceList",
    "resource",
    {"NAME", "OWNER", "STATE", "CAPACITY", "ALLOCATABLE", "HELD", "AGE"},
    {"CLASS", "DRIVERS", "BY OPERATOR"},
    [](const ResourceInfo& resource) {
      return std::vector<std::string>{resource.name};
    },
    [](const ResourceInfo& resource) { return resource.name.value; },
    [](const Session& session, const ResourceInfo& resource) {
      return Row{resource.name,
                 WordOf(resource.owner),
                 {StateText(resource), ToneOf(resource)},
                 FigureText(resource, resource.capacity),
                 FigureText(resource, resource.allocatable),
                 fmt::format("{}", resource.held),
                 session.Age(resource.since)};
    },
    [](const Session&, const ResourceInfo& resource) {
      return Row{resource.device_class, Join(resource.drivers, ","),
                 resource.by_operator};
    }};

const Listing<DeviceInfo> kDevices = {
    "DeviceList",
    "device",
    {"RESOURCE/DRIVER", "DEVICE", "HEALTH", "USED BY"},
    {"NUMA", "REASON", "AGE", "CDI DEVICES"},
    [](const DeviceInfo& device) {
      return std::vector<std::string>{device.resource, device.driver,
                                      device.pool, device.device};
    },
    NameOf,
    [](const Session&, const DeviceInfo& device) {
      const bool of_plugin = !device.resource.empty();
      return Row{of_plugin ? device.resource.value : device.driver,
                 of_plugin ? device.device : device.pool + "/" + device.device,
                 {HealthText(device), ToneOf(device)},
                 Join(device.used_by, ",")};
    },
    [](const Session& session, const DeviceInfo& device) {
      return Row{NumaText(device), device.health_reason,
                 device.health ? session.Age(device.since) : "",
                 Join(device.cdi_devices, ",")};
    }};

const Listing<DeviceClassInfo> kClasses = {
    "DeviceClassList",
    "class",
    {"NAME", "EXTENDED RESOURCE", "SHADOWED BY", "IMPLICIT RESOURCE"},
    {"NOTE"},
    [](const DeviceClassInfo& item) {
      return std::vector<std::string>{item.name};
    },
    [](const DeviceClassInfo& item) { return item.name; },
    [](const Session&, const DeviceClassInfo& item) {
      return Row{item.name, item.extended_resource_name, item.shadowed_by,
                 item.implicit_resource_name};
    },
    [](const Session&, const DeviceClassInfo& item) { return Row{item.note}; }};

absl::Status GetPods(const Session& session, Inspector& inspector) {
  const ObjectName& name = session.options().name;
  if (!name.name.empty()) {
    const auto pod = inspector.FindPod(name);
    if (!pod.ok()) return pod.status();
    return ListNamed(session, std::vector<PodInfo>{*pod}, kPods);
  }
  auto pods = inspector.Pods();
  if (!pods.ok()) return pods.status();
  KeepNamespace(session.options().ns, *pods);
  NoteManifestProblems(session, inspector, "Pod");
  return List(session, *std::move(pods), kPods);
}

absl::Status GetClaims(const Session& session, Inspector& inspector) {
  const ObjectName& name = session.options().name;
  // Programs get the objects, too, which a ledger alone does not have.
  const bool with_objects =
      session.is_document() && !session.options().offline();
  auto claims =
      with_objects ? inspector.ClaimsWithObjects() : inspector.Claims();
  if (!claims.ok()) return claims.status();
  if (!name.name.empty()) {
    std::erase_if(*claims,
                  [&](const ClaimInfo& claim) { return claim.name != name; });
    if (!claims->empty()) return ListNamed(session, *claims, kClaims);
    return FindClaims(inspector, name).status();
  }
  KeepNamespace(session.options().ns, *claims);
  NoteManifestProblems(session, inspector, "ResourceClaim");
  return List(session, *std::move(claims), kClaims);
}

/// What is owed for a claim; `CLAIM/DRIVER`, as -o name prints it, is one.
absl::Status GetDebts(const Session& session, Inspector& inspector) {
  const std::string& ns = session.options().ns;
  const ObjectName& claim = session.options().name;
  auto debts = inspector.Debts();
  if (!debts.ok()) return debts.status();
  if (!claim.name.empty()) {
    std::erase_if(*debts, [&](const DebtInfo& debt) {
      return debt.claim != claim && kDebts.name(debt) != claim.ToString();
    });
    if (debts->empty()) {
      return MakeError(absl::StatusCode::kNotFound,
                       fmt::format("no driver owes anything for claim '{}'",
                                   claim.ToString()));
    }
    return ListNamed(session, *std::move(debts), kDebts);
  }
  if (!ns.empty()) {
    std::erase_if(*debts,
                  [&](const DebtInfo& debt) { return debt.claim.ns != ns; });
  }
  return List(session, *std::move(debts), kDebts);
}

absl::Status GetPlugins(const Session& session, Inspector& inspector) {
  const std::string& name = session.options().name.name;
  if (!name.empty()) {
    auto named = FindPlugins(session, inspector, name);
    if (!named.ok()) return named.status();
    return ListNamed(session, *std::move(named), kPlugins);
  }
  auto plugins = inspector.Plugins();
  if (!plugins.ok()) return plugins.status();
  return List(session, *std::move(plugins), kPlugins);
}

absl::Status GetResources(const Session& session, Inspector& inspector) {
  const std::string& name = session.options().name.name;
  if (!name.empty()) {
    const auto resource = FindResource(inspector, name);
    if (!resource.ok()) return resource.status();
    return ListNamed(session, std::vector<ResourceInfo>{*resource}, kResources);
  }
  auto resources = inspector.Resources();
  if (!resources.ok()) return resources.status();
  return List(session, *std::move(resources), kResources);
}

/// The devices of a resource or driver of that name, else those of that name.
absl::Status GetDevices(const Session& session, Inspector& inspector) {
  const std::string& name = session.options().name.name;
  auto devices = inspector.Devices();
  if (!devices.ok()) return devices.status();
  std::vector<DeviceInfo> owned = *devices;
  KeepOwner(name, owned);
  if (owned.empty() && !name.empty()) {
    return ListNamed(session, DevicesNamed(*devices, name), kDevices);
  }
  return List(session, std::move(owned), kDevices);
}

absl::Status GetClasses(const Session& session, Inspector& inspector) {
  const std::string& name = session.options().name.name;
  auto classes = inspector.DeviceClasses();
  if (!classes.ok()) return classes.status();
  if (name.empty()) {
    NoteManifestProblems(session, inspector, "DeviceClass");
    return List(session, *std::move(classes), kClasses);
  }
  const absl::Status online = session.CheckOnline("looking for a class");
  if (!online.ok()) return online;
  std::erase_if(*classes, [&](const auto& item) { return item.name != name; });
  if (classes->empty()) {
    return MakeError(absl::StatusCode::kNotFound,
                     fmt::format("class '{}' is not known", name));
  }
  return ListNamed(session, *std::move(classes), kClasses);
}

}  // namespace

void Sort(std::vector<PodInfo>& pods) { SortBy(kPods, pods); }
void Sort(std::vector<ClaimInfo>& claims) { SortBy(kClaims, claims); }
void Sort(std::vector<DeviceInfo>& devices) { SortBy(kDevices, devices); }

void PrintList(const Session& session, const std::vector<PodInfo>& pods) {
  PrintLines(session, pods, kPods);
}
void PrintList(const Session& session, const std::vector<ClaimInfo>& claims) {
  PrintLines(session, claims, kClaims);
}
void PrintList(const Session& session, const std::vector<DeviceInfo>& devices) {
  PrintLines(session, devices, kDevices);
}

absl::Status Get(const Session& session) {
  if (session.options().kind == Kind::kChange) return GetChanges(session);
  auto opened = session.Open();
  if (!opened.ok()) return opened.status();
  Inspector& inspector = **opened;
  const Kind kind = session.options().kind;
  if (session.options().offline() &&
      (kind == Kind::kPlugin || kind == Kind::kClass ||
       kind == Kind::kSource)) {
    session.Note(
        "plugins, classes and sources are known to a running daemon only");
  }
  if (session.options().offline() && kind == Kind::kResource) {
    session.Note("figures of resources are known to a running daemon only");
  }
  switch (kind) {
    case Kind::kPod:
      return GetPods(session, inspector);
    case Kind::kClaim:
      return GetClaims(session, inspector);
    case Kind::kDebt:
      return GetDebts(session, inspector);
    case Kind::kPlugin:
      return GetPlugins(session, inspector);
    case Kind::kResource:
      return GetResources(session, inspector);
    case Kind::kDevice:
      return GetDevices(session, inspector);
    case Kind::kClass:
      return GetClasses(session, inspector);
    case Kind::kHolder:
      return GetHolders(session, inspector);
    case Kind::kSource:
      return GetSources(session, inspector);
    case Kind::kSlice:
      return GetSlices(session, inspector);
    case Kind::kNuma:
      return GetNuma(session, inspector);
    case Kind::kChange:
      break;
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
