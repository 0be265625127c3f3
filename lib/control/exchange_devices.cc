// SPDX-License-Identifier: Apache-2.0
#include "control/exchange_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "claim/draft.h"
#include "common/status.h"

namespace devmgr::control {
namespace {

using state::ClaimRecord;
using state::DriverPhase;
using state::DriverRecord;
using state::LocalClaimRecord;
using state::PodRecord;

using DevicesByDriver =
    std::map<std::string, std::vector<state::AllocatedDevice>>;

DevicesByDriver DevicesOf(const LocalClaimRecord& claim) {
  DevicesByDriver devices;
  for (const auto& result : claim.object->status.allocation->results) {
    state::AllocatedDevice device{
        result.pool,
        result.device,
        result.admin_access || !result.share_id.empty(),
        {}};
    const state::DeviceKey key{result.driver, result.pool, result.device};
    for (const state::DeviceHardware& known : claim.hardware) {
      if (known.device == key) device.hardware = known.hardware;
    }
    devices[result.driver].push_back(std::move(device));
  }
  return devices;
}

/// By the changes of a provision; null when it did not allocate the claim.
const LocalClaimRecord* FindProvided(const std::vector<state::Change>& provided,
                                     const ClaimUid& uid) {
  for (const state::Change& change : provided) {
    const auto& claim = std::get<state::PutLocalClaim>(change).claim;
    if (claim->uid.value == uid.value &&
        claim->object->status.allocation.has_value()) {
      return claim.get();
    }
  }
  return nullptr;
}

std::string ListOf(const std::vector<state::AllocatedDevice>& devices) {
  std::vector<std::string> names;
  for (const state::AllocatedDevice& device : devices) {
    names.push_back(device.pool + "/" + device.device);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Has the drivers of the claim unprepare it, and prepare the new devices.
absl::Status Renew(const ClaimRecord& old, DevicesByDriver devices,
                   std::vector<std::string>* what, claim::Draft* draft) {
  ClaimRecord* record = draft->EditClaim(old.uid);
  for (auto& [driver, part] : record->drivers) {
    const auto given = devices.find(driver);
    if (given == devices.end()) {
      return FailedPreconditionError(
          "claim '{}' would have no device of driver '{}' any more",
          old.name.ToString(), driver);
    }
    if (given->second == part.allocated) continue;
    what->push_back(fmt::format("{} of {} for {}", ListOf(given->second),
                                driver, ListOf(part.allocated)));
    DriverRecord anew = part.Anew();
    anew.allocated = std::move(given->second);
    anew.spec_recovery = state::SpecRecovery::kUnprepareFirst;
    part = std::move(anew);
  }
  if (devices.size() == record->drivers.size()) return absl::OkStatus();
  return FailedPreconditionError("claim '{}' would be another driver's",
                                 old.name.ToString());
}

}  // namespace

bool MayExchange(const state::State& state, const PodRecord& pod,
                 const ContainerName& container, const ClaimUid& uid) {
  const ClaimRecord* claim = state.FindClaim(uid);
  const LocalClaimRecord* local = state.FindLocalClaim({uid.value});
  if (claim == nullptr || local == nullptr ||
      claim->pods != std::set<PodUid>{pod.uid} ||
      !local->object->status.allocation.has_value() ||
      local->object->status.reserved_for.size() != 1) {
    return false;
  }
  for (const auto& [name, part] : claim->drivers) {
    if (part.phase != DriverPhase::kPrepared || part.skipped.prepare ||
        part.skipped.unprepare) {
      return false;
    }
  }
  return std::none_of(
      pod.needs.begin(), pod.needs.end(), [&](const auto& need) {
        return need.name != container &&
               std::any_of(need.wants.begin(), need.wants.end(),
                           [&](const auto& want) { return want.claim == uid; });
      });
}

std::vector<state::Change> Deallocated(const state::State& state,
                                       const std::set<ClaimUid>& claims) {
  std::vector<state::Change> changes;
  for (const ClaimUid& uid : claims) {
    const LocalClaimRecord* old = state.FindLocalClaim({uid.value});
    if (old == nullptr) continue;
    auto record = std::make_shared<LocalClaimRecord>(*old);
    auto object = std::make_shared<ResourceClaim>(*old->object);
    object->status.allocation.reset();
    object->status.reserved_for.clear();
    record->object = std::move(object);
    record->counters.clear();
    record->hardware.clear();
    changes.emplace_back(state::PutLocalClaim{std::move(record)});
  }
  return changes;
}

absl::StatusOr<state::Decision> ExchangeDevices(
    const state::State& state, const PodUid& uid,
    const ContainerName& container, const std::set<ClaimUid>& claims,
    const std::vector<state::Change>& provided, const std::string& boot_id) {
  const PodRecord* pod = state.FindPod(uid);
  if (pod == nullptr || pod->phase != state::PodPhase::kReady ||
      pod->boot_id != boot_id) {
    return FailedPreconditionError("the pod with UID '{}' is not Ready",
                                   uid.value);
  }
  claim::Draft draft(state);
  std::vector<std::string> what;
  for (const ClaimUid& claim : claims) {
    const LocalClaimRecord* given = FindProvided(provided, claim);
    if (given == nullptr || !MayExchange(state, *pod, container, claim)) {
      return FailedPreconditionError(
          "claim with UID '{}' cannot be given other devices now", claim.value);
    }
    DEVMGR_RETURN_IF_ERROR(
        Renew(*state.FindClaim(claim), DevicesOf(*given), &what, &draft));
  }
  PodRecord* edited = draft.EditPod(uid);
  edited->phase = state::PodPhase::kPreparing;
  edited->answer = nullptr;
  state::Decision decision =
      draft.Finish(state::DecisionKind::kReplaced,
                   fmt::format("container '{}' starts again and gets {}",
                               container, fmt::join(what, "; ")));
  decision.changes.insert(decision.changes.end(), provided.begin(),
                          provided.end());
  return decision;
}

}  // namespace devmgr::control
