// SPDX-License-Identifier: Apache-2.0
#include "claim/backing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/names.h"
#include "claim/device_class.h"
#include "common/status.h"

namespace devmgr::claim {
namespace {

using state::Backing;
using state::Decision;
using state::State;

constexpr std::size_t kMostNames = 16;

std::string_view OwnerText(Backing backing) {
  return backing == Backing::kPlugin ? "device plugin" : "device class";
}

Decision HandOver(const ResourceName& resource, Backing backing,
                  std::int64_t now_ms) {
  auto record = std::make_shared<state::ResourceRecord>();
  record->name = resource;
  record->backing = backing;
  record->since_ms = now_ms;
  Decision decision;
  decision.kind = state::DecisionKind::kBacking;
  decision.message = fmt::format("{} is served by a {} from now on", resource,
                                 OwnerText(backing));
  decision.changes.push_back(state::PutResource{std::move(record)});
  return decision;
}

bool MayHandOver(const State& state, const ResourceName& resource, Backing to,
                 const Candidates& candidates, Sharing sharing) {
  const bool careful = sharing == Sharing::kOneOwner;
  switch (to) {
    case Backing::kPlugin:
      return candidates.plugin &&
             !(careful && !state.ClassHoldersOf(resource, 1).empty());
    case Backing::kClass:
      return candidates.device_class && !candidates.plugin &&
             !(careful && (candidates.plugin_awaited ||
                           !state.PluginHoldersOf(resource, 1).empty() ||
                           !state.ForeignHoldersOf(resource, 1).empty()));
  }
  return false;
}

/// `pod` itself does not count.
std::vector<PodUid> Others(std::vector<PodUid> holders, const PodUid& pod) {
  std::erase(holders, pod);
  return holders;
}

}  // namespace

Candidates CandidatesOf(const ResourceName& resource,
                        device::EndpointState state,
                        const ObjectMap<DeviceClass>& classes) {
  Candidates candidates;
  candidates.plugin = device::HasPlugin(state);
  candidates.plugin_awaited = state == device::EndpointState::kRestored ||
                              state == device::EndpointState::kStopped;
  candidates.device_class = ResourceClasses(classes).Find(resource) != nullptr;
  return candidates;
}

bool IsServedByClass(const State& state, const ResourceName& resource,
                     const Candidates& candidates, Sharing sharing) {
  const state::ResourceRecord* record = state.FindResource(resource);
  if (record != nullptr && sharing == Sharing::kOneOwner) {
    return record->backing == state::Backing::kClass;
  }
  return candidates.device_class && !candidates.plugin &&
         !candidates.plugin_awaited;
}

Decision DecideBacking(const State& state, const ResourceName& resource,
                       const Candidates& candidates, Sharing sharing,
                       std::int64_t now_ms) {
  const state::ResourceRecord* record = state.FindResource(resource);
  Decision nothing;
  nothing.kind = state::DecisionKind::kBacking;
  if (record != nullptr && !record->by_operator.empty()) return nothing;
  const bool abandoned = !candidates.plugin && !candidates.plugin_awaited &&
                         !candidates.device_class;
  if (record != nullptr && record->backing == Backing::kClass && abandoned) {
    return ForgetResource(state, resource);
  }
  // A class does not come first: the pods that use it are what records it.
  const Backing to = record != nullptr && record->backing == Backing::kPlugin
                         ? Backing::kClass
                         : Backing::kPlugin;
  if (MayHandOver(state, resource, to, candidates, sharing)) {
    return HandOver(resource, to, now_ms);
  }
  return nothing;
}

absl::StatusOr<Decision> HandOverByOperator(const State& state,
                                            const ResourceName& resource,
                                            std::optional<Backing> to,
                                            const std::string& reason,
                                            std::int64_t now_ms) {
  if (reason.empty()) return InvalidArgumentError("a reason is required");
  if (!api::CanBeDraExtendedResource(resource)) {
    return InvalidArgumentError("'{}' is not the name of an extended resource",
                                resource);
  }
  const state::ResourceRecord* record = state.FindResource(resource);
  if (!to.has_value() && record == nullptr) {
    return NotFoundError("no device plugin and no DeviceClass serves '{}'",
                         resource);
  }
  auto changed = record != nullptr
                     ? std::make_shared<state::ResourceRecord>(*record)
                     : std::make_shared<state::ResourceRecord>();
  changed->name = resource;
  if (record == nullptr || (to.has_value() && *to != record->backing)) {
    changed->backing = *to;
    changed->since_ms = now_ms;
  }
  changed->by_operator = to.has_value() ? reason : "";
  Decision decision;
  decision.kind = state::DecisionKind::kBacking;
  if (record != nullptr && *changed == *record) return decision;
  decision.message =
      to.has_value()
          ? fmt::format("an operator decided that {} is served by a {}: {}",
                        resource, OwnerText(*to), reason)
          : fmt::format(
                "an operator withdrew his decision on {}, which is served by "
                "the rules again: {}",
                resource, reason);
  decision.changes.push_back(state::PutResource{std::move(changed)});
  return decision;
}

std::string TakenFromPlugin(const State& state, const ResourceName& resource) {
  const state::ResourceRecord* record = state.FindResource(resource);
  if (record == nullptr || record->backing != Backing::kClass) return "";
  return record->by_operator;
}

std::string WhyNotServed(const state::ResourceRecord* resource,
                         bool has_plugin) {
  if (resource == nullptr) {
    return has_plugin ? "" : "no device plugin serves it";
  }
  if (resource->backing == state::Backing::kPlugin) return "";
  if (!resource->by_operator.empty()) {
    return fmt::format("an operator gave it to a device class: {}",
                       resource->by_operator);
  }
  if (!has_plugin) return "a device class serves it";
  return "pods use it through a device class, and its device plugin gives "
         "none until they have ended";
}

Decision ForgetResource(const State& state, const ResourceName& resource) {
  Decision decision;
  decision.kind = state::DecisionKind::kBacking;
  const state::ResourceRecord* record = state.FindResource(resource);
  if (record == nullptr || !record->by_operator.empty() ||
      !state.PluginHoldersOf(resource, 1).empty() ||
      !state.ClassHoldersOf(resource, 1).empty()) {
    return decision;
  }
  decision.message = fmt::format("{} is not served any more", resource);
  decision.changes.push_back(state::EraseResource{resource});
  return decision;
}

absl::Status CheckNoClaims(const State& state, const ResourceName& resource,
                           const PodUid& pod) {
  if (const auto reason = TakenFromPlugin(state, resource); !reason.empty()) {
    return AbortedError("an operator gave '{}' to a device class: {}", resource,
                        reason);
  }
  const std::vector<PodUid> holders =
      Others(state.ClassHoldersOf(resource, 2), pod);
  if (holders.empty()) return absl::OkStatus();
  return AbortedError("pod with UID '{}' holds a claim for '{}'",
                      holders.front().value, resource);
}

Verdict CheckNoPluginDevices(const State& state, const ResourceName& resource,
                             const PodUid& pod) {
  const std::vector<PodUid> holders =
      Others(state.PluginHoldersOf(resource, kMostNames + 1), pod);
  const auto foreign = state.ForeignHoldersOf(resource, kMostNames, pod);
  if (holders.empty() && foreign.empty()) return {};
  Verdict verdict{Verdict::Kind::kWait, "ResourceHeldByPlugin", "", {}};
  std::vector<std::string> names;
  for (const PodUid& uid : holders) {
    if (names.size() == kMostNames) break;
    const state::PodRecord* holder = state.FindPod(uid);
    names.push_back(holder->name.ToString());
    verdict.waiting_for.push_back({WaitingFor::Kind::kPod, names.back()});
  }
  for (const state::ForeignHolderRecord* holder : foreign) {
    if (names.size() < kMostNames) names.push_back(HolderText(*holder));
  }
  if (!foreign.empty()) {
    verdict.waiting_for.push_back({WaitingFor::Kind::kResource, resource});
  }
  verdict.message = fmt::format(
      "extended resource '{}' is mapped to a claim, and devices of its device "
      "plugin are held by {}{}",
      resource, fmt::join(names, ", "),
      holders.size() + foreign.size() > kMostNames ? ", ..." : "");
  return verdict;
}

}  // namespace devmgr::claim
