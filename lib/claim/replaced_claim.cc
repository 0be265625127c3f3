// SPDX-License-Identifier: Apache-2.0
#include "claim/replaced_claim.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "claim/claim_machine.h"
#include "claim/held_hardware.h"

namespace devmgr::claim {
namespace {

using state::ClaimRecord;
using state::PodPhase;
using state::PodRecord;
using state::State;

Verdict WaitForClaim(std::string reason, std::string message,
                     const ObjectName& claim) {
  return {Verdict::Kind::kWait,
          std::move(reason),
          std::move(message),
          {{WaitingFor::Kind::kClaim, claim.ToString()}}};
}

std::vector<std::string> DriversOf(const ClaimRecord& claim) {
  std::vector<std::string> drivers;
  for (const auto& [driver, part] : claim.drivers) drivers.push_back(driver);
  return drivers;
}

/// Of a claim that was replaced, and what a pod does that is to have the new
/// one.
std::string WhatIsNext(const State& state, const ClaimRecord& replaced,
                       const PodUid& pod, const std::string& boot_id) {
  if (replaced.pods.empty()) return "waiting for it to be unprepared";
  if (!replaced.pods.contains(pod)) {
    const PodUid& holder = *replaced.pods.begin();
    return fmt::format("pod {} has it, and releases it first",
                       state.FindPod(holder)->name.ToString());
  }
  return MayBookAnew(*state.FindPod(pod), boot_id)
             ? "the pod gives up the old one first"
             : "the pod may run with the old one and has to be re-created";
}

/// The pods of a claim that a driver owes may have gone: its devices are held
/// all the same, whether the driver ever answered for them or not.
Verdict CheckNotOwed(const State& state, const PlannedClaim& planned) {
  for (const auto& [driver, devices] : planned.devices) {
    for (const state::AllocatedDevice& device : devices) {
      if (device.shared) continue;
      const ClaimUid* keeper =
          state.KeeperOf({driver, device.pool, device.device});
      if (keeper == nullptr || *keeper == planned.uid) continue;
      const ObjectName& claim = state.FindClaim(*keeper)->name;
      return WaitForClaim(
          "DeviceBeingUnprepared",
          fmt::format("device {}/{} of driver {} is held by ResourceClaim {}, "
                      "which the driver has not unprepared",
                      device.pool, device.device, driver, claim.ToString()),
          claim);
    }
  }
  return {};
}

/// What this node has allocated, and still holds, another party allocated as
/// well: while a server was away, or before it knew of it.
const state::LocalClaimRecord* FindLocalHolder(const State& state,
                                               const std::string& driver,
                                               const state::AllocatedDevice& is,
                                               const ClaimUid& but) {
  for (const auto& [uid, claim] : state.local_claims) {
    const auto& allocation = claim->object->status.allocation;
    if (uid.value == but.value || !allocation.has_value()) continue;
    for (const auto& result : allocation->results) {
      const bool shared = result.admin_access || !result.share_id.empty();
      if (!shared && result.driver == driver && result.pool == is.pool &&
          result.device == is.device) {
        return claim.get();
      }
    }
  }
  return nullptr;
}

/// A pod that has the claim keeps it; none gets a device twice.
Verdict CheckNotDoubleClaimed(const State& state, const PlannedClaim& planned,
                              const PodUid& pod) {
  if (state.FindLocalClaim({planned.uid.value}) != nullptr) return {};
  const ClaimRecord* record = state.FindClaim(planned.uid);
  if (record != nullptr && record->pods.contains(pod)) return {};
  for (const auto& [driver, devices] : planned.devices) {
    for (const state::AllocatedDevice& device : devices) {
      if (device.shared) continue;
      const state::LocalClaimRecord* holder =
          FindLocalHolder(state, driver, device, planned.uid);
      if (holder == nullptr) continue;
      const ObjectName name = holder->object->metadata.FullName();
      return WaitForClaim(
          kDeviceDoubleClaimed,
          fmt::format("device {}/{} of driver {} is allocated to ResourceClaim "
                      "{} and, by this node, to {}, which keeps it",
                      device.pool, device.device, driver, planned.name.name,
                      name.ToString()),
          name);
    }
  }
  return {};
}

/// Another driver, or a device plugin, gave the same hardware to a pod. A pod
/// that has the claim keeps it.
Verdict CheckNotElsewhere(const State& state, const PlannedClaim& planned,
                          const PodUid& pod) {
  const ClaimRecord* record = state.FindClaim(planned.uid);
  if (record != nullptr && record->pods.contains(pod)) return {};
  for (const auto& [driver, devices] : planned.devices) {
    for (const state::AllocatedDevice& device : devices) {
      const auto held = FindHardwareHolder(state, device.hardware,
                                           {driver, pod, planned.uid.value});
      if (!held.has_value()) continue;
      return WaitForHardware(
          fmt::format("device {}/{} of driver {} of ResourceClaim {}",
                      device.pool, device.device, driver, planned.name.name),
          *held);
    }
  }
  return {};
}

/// A pod that has the claim keeps it, however many have it.
Verdict CheckNotTaken(const State& state, const ClaimRecord& claim,
                      const PlannedClaim& planned, const PodUid& pod) {
  if (planned.max_pods == 0 || claim.pods.size() < planned.max_pods ||
      claim.pods.contains(pod)) {
    return {};
  }
  Verdict verdict = WaitForClaim("ClaimInUse", "", planned.name);
  std::vector<std::string> holders;
  for (const PodUid& holder : claim.pods) {
    holders.push_back(state.FindPod(holder)->name.ToString());
    verdict.waiting_for.push_back({WaitingFor::Kind::kPod, holders.back()});
  }
  verdict.message =
      planned.max_pods == 1
          ? fmt::format("ResourceClaim {} is not shareable, and pod {} has it",
                        planned.name.name, holders.front())
          : fmt::format(
                "ResourceClaim {} can be shared by {} pods, and as many "
                "have it: {}",
                planned.name.name, planned.max_pods, fmt::join(holders, ", "));
  return verdict;
}

}  // namespace

Verdict CheckPlanned(const State& state, const PlannedClaim& planned,
                     const PodUid& pod, const std::string& boot_id) {
  for (const ClaimUid& uid : state.ClaimsNamed(planned.name)) {
    if (uid == planned.uid) continue;
    return WaitForClaim(
        "ClaimRecreated",
        fmt::format("old ResourceClaim with same name {} and different UID {} "
                    "still exists, the new one has UID {}: {}",
                    planned.name.name, uid.value, planned.uid.value,
                    WhatIsNext(state, *state.FindClaim(uid), pod, boot_id)),
        planned.name);
  }
  if (const Verdict owed = CheckNotOwed(state, planned);
      owed.kind != Verdict::Kind::kAdmit) {
    return owed;
  }
  if (Verdict twice = CheckNotDoubleClaimed(state, planned, pod);
      twice.kind != Verdict::Kind::kAdmit) {
    return twice;
  }
  if (Verdict elsewhere = CheckNotElsewhere(state, planned, pod);
      elsewhere.kind != Verdict::Kind::kAdmit) {
    return elsewhere;
  }
  const ClaimRecord* record = state.FindClaim(planned.uid);
  if (record == nullptr) return {};
  for (const auto& [driver, part] : record->drivers) {
    if (!Next(StateOf(&part), ClaimEvent::kReference).has_value()) {
      return WaitForClaim(
          "ClaimBeingUnprepared",
          fmt::format("ResourceClaim {} is being unprepared by driver {}",
                      planned.name.name, driver),
          planned.name);
    }
  }
  // A driver that comes late would leave pods Ready that it never prepared for.
  if (const auto drivers = DriversOf(*record); drivers != planned.drivers) {
    return WaitForClaim(
        "ClaimAllocationChanged",
        fmt::format("ResourceClaim {} was allocated from [{}] when a pod took "
                    "it, and now from [{}]: {}",
                    planned.name.name, fmt::join(drivers, ", "),
                    fmt::join(planned.drivers, ", "),
                    WhatIsNext(state, *record, pod, boot_id)),
        planned.name);
  }
  return CheckNotTaken(state, *record, planned, pod);
}

bool HoldsReplaced(const State& state, const PlannedClaim& planned,
                   const PodUid& pod) {
  const std::vector<ClaimUid> named = state.ClaimsNamed(planned.name);
  return std::any_of(named.begin(), named.end(), [&](const ClaimUid& uid) {
    const ClaimRecord& claim = *state.FindClaim(uid);
    return claim.pods.contains(pod) &&
           (uid != planned.uid || DriversOf(claim) != planned.drivers);
  });
}

bool HoldsRecreated(const State& state, const ObjectSnapshot& objects,
                    const PodUid& pod) {
  const PodRecord* record = state.FindPod(pod);
  if (record == nullptr) return false;
  return std::any_of(
      record->claims.begin(), record->claims.end(), [&](const ClaimUid& uid) {
        const ClaimRecord* claim = state.FindClaim(uid);
        if (claim == nullptr) return false;
        const auto* object = objects.claims.Find(claim->name);
        return object != nullptr && (*object)->metadata.uid != uid.value;
      });
}

bool MayBookAnew(const PodRecord& pod, const std::string& boot_id) {
  return pod.phase == PodPhase::kPreparing && pod.boot_id != boot_id;
}

}  // namespace devmgr::claim
