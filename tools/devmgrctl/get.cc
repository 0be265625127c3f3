// SPDX-License-Identifier: Apache-2.0
//
// get plugins|claims|pods|devices|classes.
#include <algorithm>
#include <tuple>

#include "commands.h"
#include "listing.h"
#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

using Row = std::vector<Cell>;

/// Compares part by part, numbers in names as numbers.
bool PartsLess(const std::vector<std::string>& a,
               const std::vector<std::string>& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const std::string& x, const std::string& y) {
        return NaturalLess(x, y);
      });
}

/// How one kind is listed.
template <typename Info>
struct Listing {
  const char* list_kind;  ///< `PodList`.
  const char* name_kind;  ///< `pod`.
  std::vector<std::string> headers;
  std::vector<std::string> wide_headers;
  std::vector<std::string> (*sort_key)(const Info&);
  std::string (*name)(const Info&);
  Row (*row)(const Session&, const Info&);
  Row (*wide_row)(const Info&);
};

template <typename Info>
void SortBy(const Listing<Info>& listing, std::vector<Info>& infos) {
  std::stable_sort(infos.begin(), infos.end(),
                   [&](const Info& a, const Info& b) {
                     return PartsLess(listing.sort_key(a), listing.sort_key(b));
                   });
}

template <typename Info>
Table TableOf(const Session& session, const std::vector<Info>& infos,
              const Listing<Info>& listing) {
  std::vector<std::string> headers = listing.headers;
  if (session.wide()) {
    headers.insert(headers.end(), listing.wide_headers.begin(),
                   listing.wide_headers.end());
  }
  Table table = session.MakeTable(std::move(headers));
  for (const Info& info : infos) {
    Row row = listing.row(session, info);
    if (session.wide()) {
      for (Cell& cell : listing.wide_row(info)) row.push_back(std::move(cell));
    }
    table.Add(std::move(row));
  }
  return table;
}

/// For people: a table or names. An empty one is told on stderr.
template <typename Info>
void PrintLines(const Session& session, const std::vector<Info>& infos,
                const Listing<Info>& listing) {
  if (session.options().format == Format::kName && !infos.empty()) {
    for (const Info& info : infos) {
      session.out() << listing.name_kind << "/" << Clean(listing.name(info))
                    << "\n";
    }
    return;
  }
  Table table = TableOf(session, infos, listing);
  session.Print(table);
}

template <typename Info>
absl::Status List(const Session& session, std::vector<Info> infos,
                  const Listing<Info>& listing) {
  SortBy(listing, infos);
  if (session.is_document()) {
    std::vector<Json> items;
    for (const Info& info : infos) items.push_back(ItemOf(info));
    PrintDocument(session.out(), ListOf(listing.list_kind, std::move(items)),
                  session.options().format);
  } else {
    PrintLines(session, infos, listing);
  }
  return absl::OkStatus();
}

/// Without -n all namespaces are shown.
template <typename Info>
void KeepNamespace(const std::string& ns, std::vector<Info>& infos) {
  if (ns.empty()) return;
  std::erase_if(infos, [&](const Info& info) { return info.name.ns != ns; });
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
    [](const PodInfo& pod) {
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
      const Tone tone = claim.state == "Prepared" ? Tone::kGood : Tone::kWarn;
      return Row{claim.name.ns,
                 claim.name.name,
                 {claim.state, tone},
                 DriverNames(claim),
                 Join(claim.pods, ",")};
    },
    [](const ClaimInfo& claim) {
      return Row{claim.uid.value, OfDrivers(claim, &ClaimDriverInfo::devices),
                 OfDrivers(claim, &ClaimDriverInfo::cdi_devices)};
    }};

const Listing<PluginInfo> kPlugins = {
    "PluginList",
    "plugin",
    {"NAME", "KIND", "VERSION", "STATE", "AGE"},
    {"ENDPOINT", "LAST ERROR"},
    [](const PluginInfo& plugin) {
      return std::vector<std::string>{plugin.name, plugin.kind,
                                      plugin.endpoint};
    },
    [](const PluginInfo& plugin) { return plugin.name; },
    [](const Session& session, const PluginInfo& plugin) {
      const Tone tone = plugin.state == "Connected" ? Tone::kGood : Tone::kWarn;
      return Row{plugin.name,
                 plugin.kind,
                 plugin.version,
                 {plugin.state, tone},
                 session.Age(plugin.registered_since)};
    },
    [](const PluginInfo& plugin) {
      return Row{plugin.endpoint, plugin.last_error};
    }};

const Listing<DeviceInfo> kDevices = {
    "DeviceList",
    "device",
    {"DRIVER", "POOL", "DEVICE", "USED BY"},
    {"CDI DEVICES"},
    [](const DeviceInfo& device) {
      return std::vector<std::string>{device.driver, device.pool,
                                      device.device};
    },
    [](const DeviceInfo& device) {
      return device.driver + "/" + device.pool + "/" + device.device;
    },
    [](const Session&, const DeviceInfo& device) {
      return Row{device.driver, device.pool, device.device,
                 Join(device.used_by, ",")};
    },
    [](const DeviceInfo& device) {
      return Row{Join(device.cdi_devices, ",")};
    }};

const Listing<DeviceClassInfo> kClasses = {
    "DeviceClassList",
    "class",
    {"NAME", "EXTENDED RESOURCE", "IMPLICIT RESOURCE"},
    {"NOTE"},
    [](const DeviceClassInfo& item) {
      return std::vector<std::string>{item.name};
    },
    [](const DeviceClassInfo& item) { return item.name; },
    [](const Session&, const DeviceClassInfo& item) {
      return Row{item.name, item.extended_resource_name,
                 item.implicit_resource_name};
    },
    [](const DeviceClassInfo& item) { return Row{item.note}; }};

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
  auto opened = session.Open();
  if (!opened.ok()) return opened.status();
  Inspector& inspector = **opened;
  const std::string& ns = session.options().ns;
  const Kind kind = session.options().kind;
  if (session.options().offline() &&
      (kind == Kind::kPlugin || kind == Kind::kClass)) {
    session.Note("plugins and classes are known to a running daemon only");
  }
  switch (kind) {
    case Kind::kPod: {
      auto pods = inspector.Pods();
      if (!pods.ok()) return pods.status();
      KeepNamespace(ns, *pods);
      return List(session, *std::move(pods), kPods);
    }
    case Kind::kClaim: {
      auto claims = inspector.Claims();
      if (!claims.ok()) return claims.status();
      KeepNamespace(ns, *claims);
      return List(session, *std::move(claims), kClaims);
    }
    case Kind::kPlugin: {
      auto plugins = inspector.Plugins();
      if (!plugins.ok()) return plugins.status();
      return List(session, *std::move(plugins), kPlugins);
    }
    case Kind::kDevice: {
      auto devices = inspector.Devices();
      if (!devices.ok()) return devices.status();
      return List(session, *std::move(devices), kDevices);
    }
    case Kind::kClass: {
      auto classes = inspector.DeviceClasses();
      if (!classes.ok()) return classes.status();
      return List(session, *std::move(classes), kClasses);
    }
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
