// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "api/quote.h"
#include "common/counted.h"
#include "device/selection.h"

namespace devmgr::device {
namespace {

using api::Quoted;

/// `'a', 'b'`; ends with dots where it may have been cut.
template <typename Names, typename TextOf>
std::string List(const Names& names, TextOf text_of) {
  std::string list;
  for (const auto& name : names) {
    if (!list.empty()) list += ", ";
    list += Quoted(text_of(name));
  }
  if (names.size() >= Shortage::kMaxNames) list += ", ...";
  return list;
}

std::string PodList(const Shortage& shortage) {
  if (!shortage.holder_names.empty()) {
    return List(shortage.holder_names,
                [](const std::string& name) { return name; });
  }
  return List(shortage.holders, [](const PodUid& pod) { return pod.value; });
}

std::string DeviceList(const Shortage& shortage) {
  return List(shortage.devices, [](const DeviceId& id) { return id; });
}

/// `container 'c' requests 3 devices (1 taken over from init containers)`.
std::string RequestText(const Shortage& shortage) {
  std::string text =
      fmt::format("container {} requests {}", Quoted(shortage.container),
                  Counted(shortage.requested + shortage.taken_over, "device"));
  if (shortage.taken_over > 0) {
    text += fmt::format(" ({} taken over from init containers)",
                        shortage.taken_over);
  }
  return text;
}

std::string OursText(const Shortage& shortage) {
  return shortage.ours == 0
             ? ""
             : fmt::format(" ({} for other containers of the pod)",
                           shortage.ours);
}

std::string NotServedText(EndpointState state) {
  switch (state) {
    case EndpointState::kUnknown:
      return "no plugin has registered it";
    case EndpointState::kRestored:
      return "its plugin is not back yet";
    case EndpointState::kConnected:
      return "its plugin is connected and has not listed its devices yet";
    case EndpointState::kStopped:
      return "its plugin has gone";
    case EndpointState::kForgotten:
      return "its plugin has gone for good";
    case EndpointState::kLive:
      break;
  }
  return "it is not served";
}

std::string NotAlignedText(const Shortage& shortage) {
  std::string text = fmt::format(
      "resource {}: {} aligned with all else it wants; {}: {} of {} free there",
      Quoted(shortage.resource), RequestText(shortage), shortage.reason,
      shortage.available, shortage.listed);
  if (!shortage.holders.empty()) {
    text += "; others are held by " + PodList(shortage);
  }
  if (!shortage.devices.empty()) {
    text += "; not healthy: " + DeviceList(shortage);
  }
  return text;
}

/// Where the devices of a resource are split.
std::string KeptText(const Shortage& shortage) {
  const KeptDevices& kept = *shortage.kept;
  return fmt::format(
      "resource {}: {}, {} of {} left{}: {} for pods of this node, the others "
      "for pods of the scheduler{}",
      Quoted(shortage.resource), RequestText(shortage), shortage.available,
      kept.local
          ? Counted(kept.local_set, "device")
          : Counted(std::max<std::int64_t>(shortage.listed - kept.local_set, 0),
                    "device"),
      OursText(shortage),
      kept.local_set == 1 ? "1 is" : fmt::format("{} are", kept.local_set),
      shortage.holders.empty() ? "" : "; held by " + PodList(shortage));
}

}  // namespace

std::string ShortageText(const Shortage& shortage) {
  const ResourceName resource = Quoted(shortage.resource);
  switch (shortage.kind) {
    case Shortage::Kind::kNotServed:
      return fmt::format("resource {}: {}, and {}", resource,
                         RequestText(shortage), NotServedText(shortage.state));
    case Shortage::Kind::kHeldByClaims:
      return fmt::format(
          "resource {}: {}, and it is used through a device class by {}: its "
          "device plugin gives none until they end",
          resource, RequestText(shortage), PodList(shortage));
    case Shortage::Kind::kHandedOver:
      return fmt::format(
          "resource {}: {}, and an operator gave it to a device class: {}",
          resource, RequestText(shortage), shortage.reason);
    case Shortage::Kind::kTooFewExist:
      return fmt::format("resource {}: {}, this node has {}{}", resource,
                         RequestText(shortage), shortage.listed,
                         OursText(shortage));
    case Shortage::Kind::kTooFewHealthy:
      return fmt::format("resource {}: {}, {} of {} free{}; not healthy: {}",
                         resource, RequestText(shortage), shortage.available,
                         shortage.listed, OursText(shortage),
                         DeviceList(shortage));
    case Shortage::Kind::kTooFewFree:
      if (shortage.kept.has_value()) return KeptText(shortage);
      return fmt::format(
          "resource {}: {}, {} of {} free{}; others are held by {}", resource,
          RequestText(shortage), shortage.available, shortage.listed,
          OursText(shortage), PodList(shortage));
    case Shortage::Kind::kChangedRequest:
      return fmt::format(
          "resource {}: container {} holds {} and now requests {}", resource,
          Quoted(shortage.container), Counted(shortage.available, "device"),
          shortage.requested);
    case Shortage::Kind::kHeldUnhealthy:
      return fmt::format(
          "resource {}: container {} holds devices that are not healthy: {}",
          resource, Quoted(shortage.container), DeviceList(shortage));
    case Shortage::Kind::kNotAligned:
      return NotAlignedText(shortage);
    case Shortage::Kind::kNeverAligned:
      return fmt::format("container {}: {}", Quoted(shortage.container),
                         shortage.reason);
  }
  return resource;
}

std::string KubeletShortageText(const Shortage& shortage) {
  const ResourceName& resource = shortage.resource;
  switch (shortage.kind) {
    case Shortage::Kind::kNotServed:
      if (shortage.state == EndpointState::kUnknown ||
          shortage.state == EndpointState::kForgotten) {
        return "cannot allocate unregistered device " + resource.value;
      }
      break;
    case Shortage::Kind::kHeldByClaims:
    case Shortage::Kind::kHandedOver:
      return "cannot allocate unregistered device " + resource.value;
    case Shortage::Kind::kTooFewExist:
    case Shortage::Kind::kTooFewHealthy:
    case Shortage::Kind::kTooFewFree:
      if (shortage.none_healthy) break;
      return fmt::format(
          "requested number of devices unavailable for {}. Requested: {}, "
          "Available: {}",
          resource, shortage.requested, shortage.available);
    case Shortage::Kind::kChangedRequest:
      return fmt::format(
          "pod \"{}\" container \"{}\" changed request for resource \"{}\" "
          "from {} to {}",
          shortage.pod.value, shortage.container, resource, shortage.available,
          shortage.requested);
    case Shortage::Kind::kHeldUnhealthy:
      return "previously allocated devices are no longer healthy; cannot "
             "allocate unhealthy devices " +
             resource.value;
    case Shortage::Kind::kNotAligned:
    case Shortage::Kind::kNeverAligned:
      return "Resources cannot be allocated with Topology locality";
  }
  return "no healthy devices present; cannot allocate unhealthy devices " +
         resource.value;
}

}  // namespace devmgr::device
