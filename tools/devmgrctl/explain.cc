// SPDX-License-Identifier: Apache-2.0
//
// explain pod NAME: why it is in its state. What it waits for and who has that,
// what it holds, and which step took how long.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "commands.h"
#include "listing.h"
#include "numa.h"
#include "objects.h"
#include "sections.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

using ctl::ItemOf;  // And those below.
using std::chrono::milliseconds;

/// A plugin may have very many.
constexpr std::size_t kMaxDevices = 20;

/// What a pod waits for, and all that is known of it.
struct Awaited {
  WaitingFor what;
  std::optional<ResourceInfo> resource;
  std::vector<DeviceInfo> devices;  ///< Of the resource, the first of them.
  std::size_t device_count = 0;     ///< All of them.
  std::vector<PluginInfo> plugins;  ///< Of the resource, or the driver.
  std::vector<ClaimInfo> claims;    ///< One, or more that had its name.
  std::optional<PodInfo> pod;
  std::optional<RuntimeSourceInfo> runtime;
};

/// Something that happened to the pod.
struct Step {
  std::string name;  ///< A decision's kind; of the first `Seen`, last `Now`.
  WallTime time;
  milliseconds after{0};  ///< The step before.
  std::string message;
};

struct Explanation {
  PodInfo pod;
  std::vector<Awaited> awaited;
  std::vector<ClaimInfo> held_claims;
  std::vector<DeviceInfo> held_devices;
  std::vector<Step> steps;
  std::vector<EventInfo> events;
  std::optional<PodAlignmentInfo> alignment;
};

/// What the explanations are taken from.
struct Known {
  std::vector<ResourceInfo> resources;
  std::vector<DeviceInfo> devices;
  std::vector<PluginInfo> plugins;
  std::vector<ClaimInfo> claims;
};

template <typename T>
absl::Status Take(absl::StatusOr<std::vector<T>> from, std::vector<T>* to) {
  if (!from.ok()) return from.status();
  *to = *std::move(from);
  return absl::OkStatus();
}

absl::StatusOr<Known> AskFor(Inspector& inspector) {
  Known known;
  absl::Status status = Take(inspector.Resources(), &known.resources);
  if (status.ok()) status = Take(inspector.Devices(), &known.devices);
  if (status.ok()) status = Take(inspector.Plugins(), &known.plugins);
  if (status.ok()) status = Take(inspector.Claims(), &known.claims);
  if (!status.ok()) return status;
  Sort(known.devices);
  Sort(known.claims);
  return known;
}

template <typename T, typename IsWanted>
std::vector<T> Those(const std::vector<T>& all, IsWanted is_wanted) {
  std::vector<T> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), is_wanted);
  return some;
}

bool Contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

void AddResource(const Known& known, Awaited* awaited) {
  const std::string& name = awaited->what.name;
  for (const ResourceInfo& resource : known.resources) {
    if (resource.name == name) awaited->resource = resource;
  }
  for (const DeviceInfo& device : known.devices) {
    if (device.resource != name) continue;
    if (awaited->device_count++ < kMaxDevices) {
      awaited->devices.push_back(device);
    }
  }
}

Awaited Look(const WaitingFor& what, const Known& known, Inspector& inspector) {
  Awaited awaited;
  awaited.what = what;
  switch (what.kind) {
    case WaitingFor::Kind::kResource:
      AddResource(known, &awaited);
      [[fallthrough]];
    case WaitingFor::Kind::kDriver:
      awaited.plugins = Those(known.plugins, [&](const PluginInfo& plugin) {
        return plugin.name == what.name;
      });
      break;
    case WaitingFor::Kind::kClaim:
      awaited.claims = Those(known.claims, [&](const ClaimInfo& claim) {
        return claim.name.ToString() == what.name;
      });
      break;
    case WaitingFor::Kind::kPod: {
      const std::size_t slash = what.name.find('/');
      if (slash == std::string::npos) break;
      auto pod = inspector.FindPod(
          {what.name.substr(0, slash), what.name.substr(slash + 1)});
      // It may have ended since.
      if (pod.ok()) awaited.pod = *std::move(pod);
      break;
    }
    case WaitingFor::Kind::kRuntime: {
      const auto node = inspector.Node();
      if (node.ok()) awaited.runtime = node->runtime;
      break;
    }
    case WaitingFor::Kind::kDevices:
    case WaitingFor::Kind::kFreeDevices:
    case WaitingFor::Kind::kFewerDevices:
      awaited.plugins = Those(known.plugins, [&](const PluginInfo& plugin) {
        return plugin.name == what.name;
      });
      break;
    case WaitingFor::Kind::kTaint:
    case WaitingFor::Kind::kDeviceClass:
    case WaitingFor::Kind::kClaimTemplate:
    case WaitingFor::Kind::kQuota:
    case WaitingFor::Kind::kAuthority:
      break;
  }
  return awaited;
}

bool IsAbout(const DecisionInfo& decision, const PodInfo& pod) {
  // The name alone may be that of an earlier pod.
  return decision.uids.empty() ? Contains(decision.pods, pod.name.ToString())
                               : Contains(decision.uids, pod.uid.value);
}

bool IsDecided(PodState state) {
  return state == PodState::kReady || state == PodState::kRejected;
}

/// From when the pod was first seen until now, or until it was decided.
std::vector<Step> StepsOf(const Session& session, Inspector& inspector,
                          const PodInfo& pod) {
  std::vector<Step> steps;
  const auto decisions = inspector.History(0);
  if (!decisions.ok()) {
    session.Note("history: " + MessageOf(decisions.status()));
    return steps;
  }
  for (const DecisionInfo& decision : *decisions) {
    if (!IsAbout(decision, pod)) continue;
    steps.push_back({std::string(decision.kind.name()),
                     decision.time,
                     {},
                     decision.message});
  }
  const bool known_since = pod.first_seen.time_since_epoch().count() > 0;
  if (known_since && (steps.empty() || pod.first_seen < steps.front().time)) {
    steps.insert(steps.begin(), {"Seen", pod.first_seen, {}, ""});
  }
  if (!IsDecided(pod.state) && !session.options().offline()) {
    steps.push_back({"Now",
                     session.environment().now(),
                     {},
                     "still " + std::string(PodStateName(pod.state))});
  }
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto after = std::chrono::duration_cast<milliseconds>(
        steps[i].time - steps[i - 1].time);
    // A clock may have been set back.
    steps[i].after = std::max(after, milliseconds(0));
  }
  return steps;
}

absl::StatusOr<Explanation> Gather(const Session& session,
                                   Inspector& inspector) {
  Explanation all;
  auto pod = FindPod(inspector, session.options().name);
  if (!pod.ok()) return pod.status();
  all.pod = *std::move(pod);
  const auto known = AskFor(inspector);
  if (!known.ok()) return known.status();
  for (const WaitingFor& what : all.pod.waiting_for) {
    all.awaited.push_back(Look(what, *known, inspector));
  }
  const std::string name = all.pod.name.ToString();
  all.held_claims = Those(known->claims, [&](const ClaimInfo& claim) {
    return Contains(claim.pods, name);
  });
  all.held_devices = Those(known->devices, [&](const DeviceInfo& device) {
    return Contains(device.used_by, name);
  });
  all.steps = StepsOf(session, inspector, all.pod);
  all.events = EventsOf(session, inspector, "Pod", all.pod.name);
  // Without a policy there is none, nor in a state directory.
  if (auto alignment = inspector.AlignmentOf(all.pod.uid); alignment.ok()) {
    all.alignment = *std::move(alignment);
  }
  return all;
}

template <typename T>
Json ItemsOf(const std::vector<T>& values) {
  Json items = Json::array();
  for (const T& value : values) items.push_back(ItemOf(value));
  return items;
}

Json ItemOf(const Step& step) {
  Json item{{"name", step.name}};
  const std::string time = TimeText(step.time);
  if (!time.empty()) item["time"] = time;
  item["afterMs"] = step.after.count();
  item["message"] = step.message;
  return item;
}

Json ItemOf(const Awaited& awaited) {
  Json item{{"kind", WaitingForKindName(awaited.what.kind)},
            {"name", awaited.what.name}};
  switch (awaited.what.kind) {
    case WaitingFor::Kind::kResource:
      if (awaited.resource) item["resource"] = ItemOf(*awaited.resource);
      item["deviceCount"] = awaited.device_count;
      item["devices"] = ItemsOf(awaited.devices);
      item["plugins"] = ItemsOf(awaited.plugins);
      break;
    case WaitingFor::Kind::kDriver:
    case WaitingFor::Kind::kDevices:
    case WaitingFor::Kind::kFreeDevices:
    case WaitingFor::Kind::kFewerDevices:
      item["plugins"] = ItemsOf(awaited.plugins);
      break;
    case WaitingFor::Kind::kTaint:
    case WaitingFor::Kind::kDeviceClass:
    case WaitingFor::Kind::kClaimTemplate:
    case WaitingFor::Kind::kQuota:
    case WaitingFor::Kind::kAuthority:
      break;
    case WaitingFor::Kind::kClaim:
      item["claims"] = ItemsOf(awaited.claims);
      break;
    case WaitingFor::Kind::kPod:
      if (awaited.pod) item["pod"] = ItemOf(*awaited.pod);
      break;
    case WaitingFor::Kind::kRuntime:
      if (awaited.runtime) item["runtime"] = ItemOf(*awaited.runtime);
      break;
  }
  return item;
}

Json ItemOf(const Explanation& all) {
  Json item = ItemOf(all.pod);
  const std::string seen = TimeText(all.pod.first_seen);
  if (!seen.empty()) item["status"]["firstSeen"] = seen;
  item["waitingFor"] = ItemsOf(all.awaited);
  item["holds"] = Json{{"claims", ItemsOf(all.held_claims)},
                       {"devices", ItemsOf(all.held_devices)}};
  if (all.alignment) item["alignment"] = ItemOf(*all.alignment);
  item["steps"] = ItemsOf(all.steps);
  item["events"] = ItemsOf(all.events);
  return item;
}

void PrintTitle(const Session& session, const std::string& text) {
  session.out() << "\n"
                << Painted(Clean(text), Tone::kTitle, session.color()) << "\n";
}

void PrintPod(const Session& session, Inspector& inspector,
              const PodInfo& pod) {
  Fields fields(session.color());
  fields.Add("Name", pod.name.name);
  fields.Add("Namespace", pod.name.ns);
  fields.Add("UID", pod.uid.value);
  fields.Add("State",
             {std::string(PodStateName(pod.state)), ToneOf(pod.state)});
  fields.Add("Reason", pod.reason);
  fields.Add("Message", pod.message);
  AddManifestProblem(inspector, "Pod", pod.name, &fields);
  const std::string seen = TimeText(pod.first_seen);
  fields.Add("First seen", seen.empty()
                               ? "<unknown>"
                               : fmt::format("{}, {} ago", seen,
                                             session.Age(pod.first_seen)));
  fields.Print(session.out());
}

void PrintDevices(const Session& session, const Awaited& awaited) {
  Table table =
      session.MakeTable({"DEVICE", "HEALTH", "REASON", "NUMA", "USED BY"});
  for (const DeviceInfo& device : awaited.devices) {
    table.Add({device.device,
               {HealthText(device), ToneOf(device)},
               device.health_reason,
               NumaText(device),
               Join(device.used_by, ",")});
  }
  PrintSection(session, std::move(table));
  if (awaited.device_count > awaited.devices.size()) {
    session.out() << fmt::format("... and {} more, see 'get devices {}'\n",
                                 awaited.device_count - awaited.devices.size(),
                                 Clean(awaited.what.name));
  }
}

void PrintPlugins(const Session& session,
                  const std::vector<PluginInfo>& plugins) {
  for (const PluginInfo& plugin : plugins) {
    session.out() << "\n";
    Fields fields(session.color());
    fields.Add("Plugin", plugin.name);
    AddFields(plugin, &fields);
    fields.Print(session.out());
  }
}

/// Of a name that a class has and no device plugin serves.
std::string ClassText(const ResourceInfo& resource) {
  const std::string drivers =
      resource.drivers.empty()
          ? std::string("the drivers that its selectors choose")
          : "DRA driver " + Join(resource.drivers, ", ");
  return Clean(fmt::format(
             "No device plugin has served it here. It is the name of "
             "DeviceClass '{}', whose devices come from {}: a scheduler "
             "allocates them in a ResourceClaim, and names that in the pod's "
             "status.extendedResourceClaimStatus.",
             resource.device_class, drivers)) +
         "\n";
}

void PrintResource(const Session& session, const Awaited& awaited) {
  if (awaited.resource) {
    Fields fields(session.color());
    AddFields(session, *awaited.resource, &fields);
    fields.Print(session.out());
    if (!awaited.resource->device_class.empty() && !awaited.resource->state) {
      session.out() << ClassText(*awaited.resource);
    }
  } else {
    session.out() << "No device plugin has served it here.\n";
  }
  PrintDevices(session, awaited);
  PrintPlugins(session, awaited.plugins);
}

void PrintClaims(const Session& session, const Awaited& awaited) {
  if (awaited.claims.empty()) {
    session.out() << "No pod holds it and no driver has prepared it.\n";
  }
  for (const ClaimInfo& claim : awaited.claims) {
    Fields fields(session.color());
    fields.Add("UID", claim.uid.value);
    fields.Add("State", claim.state.name());
    fields.Add("Pods", Join(claim.pods, ", "));
    fields.Print(session.out());
    PrintSection(session, DriverTable(session, claim));
  }
}

void PrintRuntime(const Session& session, const Awaited& awaited) {
  if (!awaited.runtime) {
    session.out() << "There is no such source any more.\n";
    return;
  }
  const RuntimeSourceInfo& runtime = *awaited.runtime;
  Fields fields(session.color());
  if (!runtime.runtime.empty()) fields.Add("Runtime", runtime.runtime);
  fields.Add("Known", {runtime.known ? "yes" : "no",
                       runtime.known ? Tone::kGood : Tone::kBad});
  fields.Add("For", session.Age(runtime.since));
  if (!runtime.reason.empty()) fields.Add("Reason", runtime.reason);
  fields.Print(session.out());
}

/// When the pods that wait for something of this kind are judged again.
std::string_view WhenAgain(WaitingFor::Kind kind) {
  switch (kind) {
    case WaitingFor::Kind::kDevices:
      return "The pod is judged again when a driver publishes devices, or "
             "other "
             "properties of them.";
    case WaitingFor::Kind::kFreeDevices:
      return "The pod is judged again when a claim that has devices of this "
             "driver is released.";
    case WaitingFor::Kind::kFewerDevices:
      return "The pod wants all devices, and is judged again when there is one "
             "less.";
    case WaitingFor::Kind::kTaint:
      return "The pod is judged again when a taint of this device ends.";
    case WaitingFor::Kind::kDeviceClass:
      return "Its pods are judged again when the class is created or changed.";
    case WaitingFor::Kind::kClaimTemplate:
      return "Its pods are judged again when the template is created or "
             "changed.";
    case WaitingFor::Kind::kQuota:
      return "Its pods are judged again when a quota allows more under this "
             "key, or a pod or claim that counts under it is gone.";
    case WaitingFor::Kind::kAuthority:
      return "The pod is judged again when the hand-over to this authority has "
             "ended.";
    default:
      return "";
  }
}

void PrintAwaited(const Session& session, Inspector& inspector,
                  const Awaited& awaited) {
  PrintTitle(session,
             fmt::format("Waits for {} {}",
                         std::string(WaitingForKindName(awaited.what.kind)),
                         awaited.what.name));
  switch (awaited.what.kind) {
    case WaitingFor::Kind::kResource:
      PrintResource(session, awaited);
      return;
    case WaitingFor::Kind::kDriver:
      if (awaited.plugins.empty()) {
        session.out() << "No such driver is registered.\n";
      }
      PrintPlugins(session, awaited.plugins);
      return;
    case WaitingFor::Kind::kClaim:
      PrintClaims(session, awaited);
      return;
    case WaitingFor::Kind::kPod:
      if (awaited.pod) PrintPod(session, inspector, *awaited.pod);
      if (!awaited.pod) session.out() << "It is not known any more.\n";
      return;
    case WaitingFor::Kind::kRuntime:
      PrintRuntime(session, awaited);
      return;
    case WaitingFor::Kind::kDevices:
    case WaitingFor::Kind::kFreeDevices:
    case WaitingFor::Kind::kFewerDevices:
      session.out() << WhenAgain(awaited.what.kind) << "\n";
      PrintPlugins(session, awaited.plugins);
      return;
    case WaitingFor::Kind::kTaint:
    case WaitingFor::Kind::kDeviceClass:
    case WaitingFor::Kind::kClaimTemplate:
    case WaitingFor::Kind::kQuota:
    case WaitingFor::Kind::kAuthority:
      session.out() << WhenAgain(awaited.what.kind) << "\n";
      return;
  }
}

void PrintHeld(const Session& session, const Explanation& all) {
  PrintTitle(session, "Holds");
  if (all.held_claims.empty() && all.held_devices.empty()) {
    session.out() << "Nothing.\n";
    return;
  }
  Table table = session.MakeTable({"KIND", "NAME", "STATE"});
  for (const ClaimInfo& claim : all.held_claims) {
    table.Add({"claim", claim.name.ToString(), claim.state.name()});
  }
  for (const DeviceInfo& device : all.held_devices) {
    table.Add({"device", NameOf(device), {HealthText(device), ToneOf(device)}});
  }
  table.Print(session.out());
}

void PrintSteps(const Session& session, const std::vector<Step>& steps) {
  Table table = session.MakeTable({"STEP", "TIME", "AFTER", "MESSAGE"});
  for (const Step& step : steps) {
    table.Add({step.name, TimeText(step.time), DurationText(step.after),
               step.message});
  }
  PrintSection(session, std::move(table));
}

}  // namespace

absl::Status Explain(const Session& session) {
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const auto all = Gather(session, **inspector);
  if (!all.ok()) return all.status();
  if (session.is_document()) {
    PrintDocument(session.out(), DocumentOf("PodExplanation", ItemOf(*all)),
                  session.options().format);
    return absl::OkStatus();
  }
  if (session.options().format == Format::kName) {
    session.out() << "pod/" << Clean(all->pod.name.name) << "\n";
    return absl::OkStatus();
  }
  PrintPod(session, **inspector, all->pod);
  for (const Awaited& awaited : all->awaited) {
    PrintAwaited(session, **inspector, awaited);
  }
  if (all->alignment) PrintAlignment(session, *all->alignment);
  PrintHeld(session, *all);
  PrintSteps(session, all->steps);
  PrintEvents(session, all->events);
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
