// SPDX-License-Identifier: Apache-2.0
#include "simulation/refusals.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "claim/held_hardware.h"
#include "control/explain_refusals.h"
#include "device/inventory.h"

namespace devmgr::simulation {
namespace {

using allocator::Refusal;

constexpr std::size_t kMostListed = allocator::RequestRefusals::kMostListed;
constexpr char kBusy[] = "busy";
constexpr char kTaken[] = "taken-in-this-run";

/// Pods of this run alone have the claim.
bool IsOfThisRun(const std::string& claim, const Holders& holders) {
  const std::size_t slash = claim.find('/');
  if (slash == std::string::npos) return false;
  const auto* found = holders.node.objects().claims.Find(
      ObjectName{claim.substr(0, slash), claim.substr(slash + 1)});
  if (found == nullptr) return false;
  const auto& consumers = (*found)->status.reserved_for;
  return !consumers.empty() &&
         std::all_of(consumers.begin(), consumers.end(), [&](const auto& pod) {
           return holders.of_this_run.contains(PodUid{pod.uid});
         });
}

/// The same, of hardware that pods have by another name.
bool IsOfThisRun(const claim::HeldHardware& held, const Holders& holders) {
  using Kind = state::HardwareHolding::Kind;
  const state::State& state = holders.node.state();
  switch (held.kind) {
    case Kind::kPod:
      return holders.of_this_run.contains(PodUid{held.uid});
    case Kind::kClaim: {
      const state::ClaimRecord* claim = state.FindClaim(ClaimUid{held.uid});
      return claim != nullptr && IsOfThisRun(claim->name.ToString(), holders);
    }
    case Kind::kLocalClaim: {
      const auto* claim = state.FindLocalClaim({held.uid});
      return claim != nullptr &&
             IsOfThisRun(claim->object->metadata.FullName().ToString(),
                         holders);
    }
    case Kind::kContainer:
      break;
  }
  return false;
}

RefusedDevice DeviceOf(const device::Shortage& shortage,
                       const device::InventoryDevice& device, const PodUid& pod,
                       const Holders& holders) {
  RefusedDevice shown{shortage.resource, "", device.device.id, "none", ""};
  const auto* holder =
      holders.node.reservations().HolderOf(shortage.resource, device.device.id);
  using enum device::Shortage::Kind;
  if (shortage.kind == kHeldByClaims || shortage.kind == kHandedOver) {
    shown.reason = "name-owner";
    shown.detail = shortage.reason;
    if (!shortage.holder_names.empty()) {
      shown.detail = "pod " + shortage.holder_names.front();
    }
  } else if (!device.Usable()) {
    shown.reason = "unhealthy";
    shown.detail = HealthReasonText(device.reason);
  } else if (const auto* held = holder != nullptr
                                    ? holders.node.FindElsewhere(holder->pod)
                                    : nullptr) {
    shown.reason = IsOfThisRun(*held, holders) ? kTaken : kBusy;
    shown.detail = claim::HolderText(*held);
  } else if (holder != nullptr && holder->pod != pod) {
    shown.reason = holders.of_this_run.contains(holder->pod) ? kTaken : kBusy;
    shown.detail = "pod " + holders.node.NameOf(holder->pod);
  } else if (shortage.kind == kNotAligned || shortage.kind == kNeverAligned) {
    shown.reason = "numa";
    shown.detail = shortage.reason;
  }
  return shown;
}

}  // namespace

RefusedRequest PublicOf(const allocator::RequestRefusals& refused,
                        const control::HeldElsewhere::Holders& elsewhere,
                        const Holders& holders) {
  RefusedRequest shown{
      refused.claim, refused.request, refused.wanted, refused.found, {}, {}};
  std::size_t taken = 0;
  for (const allocator::DeviceRefusal& each : refused.devices) {
    RefusedDevice device{
        each.device.driver, each.device.pool, each.device.device,
        std::string(allocator::RefusalName(each.reason)), each.detail};
    if (each.reason == Refusal::kBusy) {
      const auto held = elsewhere.find(each.detail);
      if (held != elsewhere.end() ? IsOfThisRun(held->second, holders)
                                  : IsOfThisRun(each.detail, holders)) {
        device.reason = kTaken;
        ++taken;
      }
      device.detail =
          control::HolderText(each.detail, holders.node.objects(), elsewhere);
    }
    shown.devices.push_back(std::move(device));
  }
  std::map<std::string, std::size_t> counts;
  for (const auto& [reason, count] : refused.counts) {
    counts[std::string(allocator::RefusalName(reason))] += count;
  }
  if (taken > 0) {
    // Those that are not listed are counted as they were found.
    counts[kTaken] += taken;
    counts[kBusy] -= taken;
    if (counts[kBusy] == 0) counts.erase(kBusy);
  }
  shown.counts.assign(counts.begin(), counts.end());
  return shown;
}

RefusedRequest PublicOf(const device::Shortage& shortage, const PodUid& pod,
                        const Holders& holders) {
  RefusedRequest shown;
  shown.request = shortage.container.value + "/" + shortage.resource.value;
  shown.wanted = shortage.requested;
  shown.found = shortage.available;
  std::map<std::string, std::size_t> counts;
  const auto& inventories = holders.node.inventories();
  if (const auto found = inventories.find(shortage.resource);
      found != inventories.end()) {
    for (const device::InventoryDevice& each : found->second.devices()) {
      RefusedDevice device = DeviceOf(shortage, each, pod, holders);
      ++counts[device.reason];
      if (shown.devices.size() < kMostListed) {
        shown.devices.push_back(std::move(device));
      }
    }
  }
  shown.counts.assign(counts.begin(), counts.end());
  return shown;
}

void AddRefusals(const control::QuotaExcess& excess,
                 std::vector<RefusedRequest>* refusals) {
  for (const auto& figure : excess.figures) {
    RefusedRequest shown;
    shown.request = figure.key;
    shown.wanted = figure.requested;
    shown.found = std::max<std::int64_t>(figure.hard - figure.used, 0);
    shown.counts = {{"quota", 1}};
    refusals->push_back(std::move(shown));
  }
}

}  // namespace devmgr::simulation
