// SPDX-License-Identifier: Apache-2.0
#include "claim/device_booking.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "claim/container_answer.h"
#include "common/status.h"

namespace devmgr::claim {
namespace {

using device::Reservation;
using device::ReservationPhase;
using state::Decision;
using state::DecisionKind;
using state::DeviceHold;
using state::PodPhase;
using state::PodRecord;
using state::State;

bool IsReserved(const DeviceHold& hold) {
  return hold.phase == ReservationPhase::kReserved;
}

absl::Status CheckMayReserve(const PodRecord& pod) {
  switch (pod.phase) {
    case PodPhase::kWaiting:
    case PodPhase::kAllocating:
    case PodPhase::kAdmitted:
    case PodPhase::kPreparing:  // What it has given back; see AddHold.
    case PodPhase::kReady:
      return absl::OkStatus();
    case PodPhase::kRejected:
    case PodPhase::kReleasing:
      break;
  }
  return FailedPreconditionError("pod '{}' is {}: no devices are reserved",
                                 pod.name.ToString(),
                                 state::PodPhaseName(pod.phase));
}

/// Containers of other pods, or of none, have them: as a pod that was faster.
absl::Status CheckNoForeignHolder(const State& state,
                                  const std::vector<Reservation>& plan) {
  for (const Reservation& reservation : plan) {
    for (const device::HeldDevice& device : reservation.devices) {
      const state::ForeignHolderRecord* holder = state.ForeignHolderOf(
          reservation.resource, device.id, reservation.pod);
      if (holder == nullptr) continue;
      return AbortedError("device '{}' of '{}' was found with {} meanwhile",
                          device.id, reservation.resource,
                          state::HolderText(*holder));
    }
  }
  return absl::OkStatus();
}

/// Another pod has the hardware of what is planned or answered.
absl::Status CheckNoClash(const State& state, const PodUid& pod,
                          const HardwareByNeed& hardware) {
  const auto clash = FindClash(state, pod, hardware);
  if (!clash.has_value()) return absl::OkStatus();
  return AbortedError(
      "{}", HeldElsewhereText("a device of " + clash->first.second.value,
                              clash->second));
}

device::Hardware Of(const HardwareByNeed& hardware, const DeviceHold& hold) {
  const auto found = hardware.find({hold.container, hold.resource});
  return found != hardware.end() ? found->second : device::Hardware();
}

absl::Status AddHold(const Reservation& planned, PodRecord* pod) {
  const auto old = std::find_if(pod->holds.begin(), pod->holds.end(),
                                [&](const DeviceHold& hold) {
                                  return hold.container == planned.container &&
                                         hold.resource == planned.resource;
                                });
  if (old != pod->holds.end() && old->Holds()) {
    return FailedPreconditionError(
        "container '{}' of pod '{}' holds devices of '{}' already",
        planned.container, pod->name.ToString(), planned.resource);
  }
  if (old != pod->holds.end()) {
    old->phase = ReservationPhase::kReserved;
    old->devices = planned.devices;
    return absl::OkStatus();
  }
  if (IsLive(*pod)) {
    return FailedPreconditionError(
        "pod '{}' is {}: container '{}' gets no devices of '{}' any more",
        pod->name.ToString(), state::PodPhaseName(pod->phase),
        planned.container, planned.resource);
  }
  pod->holds.push_back({planned.container,
                        planned.kind,
                        planned.resource,
                        ReservationPhase::kReserved,
                        planned.devices,
                        {}});
  return absl::OkStatus();
}

/// `record` in place of what the projection has.
Decision Replace(DecisionKind kind, std::string message,
                 std::shared_ptr<const PodRecord> record) {
  Decision decision;
  decision.kind = kind;
  decision.message = std::move(message);
  decision.pods = {record->name};
  decision.changes.push_back(state::PutPod{std::move(record)});
  return decision;
}

/// The pod without its reservations.
std::shared_ptr<const PodRecord> Freed(const PodRecord& pod) {
  auto record = std::make_shared<PodRecord>(pod);
  if (IsLive(pod)) {
    for (DeviceHold& hold : record->holds) {
      if (IsReserved(hold)) hold.phase = ReservationPhase::kReleased;
    }
    return record;
  }
  std::erase_if(record->holds, IsReserved);
  if (record->holds.empty()) record->alignment = nullptr;
  if (record->phase == PodPhase::kAllocating) {
    record->phase =
        record->holds.empty() ? PodPhase::kWaiting : PodPhase::kAdmitted;
  }
  return record;
}

absl::Status SetAnswer(const State& state, PodRecord* pod) {
  DEVMGR_ASSIGN_OR_RETURN(pod->answer,
                          AnswerFor(*pod, [&](const ClaimUid& claim) {
                            return state.FindClaim(claim);
                          }));
  return absl::OkStatus();
}

/// Its devices are others now: so is the answer, if there is one.
absl::Status Refreeze(const State& state, PodRecord* pod) {
  return pod->answer != nullptr ? SetAnswer(state, pod) : absl::OkStatus();
}

/// The plugins' answers are all that the pod waited for.
absl::Status Freeze(const State& state, const WithoutClaims& pod_has,
                    PodRecord* pod) {
  pod->needs = pod_has.needs;
  DEVMGR_RETURN_IF_ERROR(SetAnswer(state, pod));
  pod->phase = PodPhase::kReady;
  pod->boot_id = pod_has.boot_id;
  return absl::OkStatus();
}

}  // namespace

std::optional<std::pair<device::NeedKey, HeldHardware>> FindClash(
    const State& state, const PodUid& pod, const HardwareByNeed& hardware) {
  for (const auto& [key, had] : hardware) {
    auto held = FindHardwareHolder(state, had, {key.second.value, pod, {}});
    if (held.has_value()) return std::pair(key, *std::move(held));
  }
  return std::nullopt;
}

bool HasReserved(const PodRecord& pod) {
  return std::any_of(pod.holds.begin(), pod.holds.end(), IsReserved);
}

std::vector<device::DeviceNeed> NeedsOfHolds(const PodRecord& pod) {
  std::vector<device::DeviceNeed> needs;
  for (const DeviceHold& hold : pod.holds) {
    needs.push_back({hold.container, hold.kind, hold.resource,
                     static_cast<std::int64_t>(hold.devices.size())});
  }
  return needs;
}

absl::StatusOr<Decision> ReserveDevices(const State& state,
                                        const PodIdentity& pod,
                                        std::int64_t now_ms,
                                        const std::vector<Reservation>& plan,
                                        Sharing sharing,
                                        const HardwareByNeed& hardware) {
  Decision nothing;
  nothing.kind = DecisionKind::kReserve;
  if (plan.empty()) return nothing;
  DEVMGR_RETURN_IF_ERROR(device::CheckStillFree(
      plan, [&](const ResourceName& resource, const DeviceId& id) {
        return state.HolderOf(resource, id);
      }));
  DEVMGR_RETURN_IF_ERROR(CheckNoForeignHolder(state, plan));
  if (sharing == Sharing::kOneOwner) {
    for (const Reservation& planned : plan) {
      DEVMGR_RETURN_IF_ERROR(CheckNoClaims(state, planned.resource, pod.uid));
    }
  }
  const PodRecord* old = state.FindPod(pod.uid);
  auto record = old != nullptr ? std::make_shared<PodRecord>(*old)
                               : NewPod(state, pod, now_ms);
  DEVMGR_RETURN_IF_ERROR(CheckMayReserve(*record));
  DEVMGR_RETURN_IF_ERROR(CheckNoClash(state, pod.uid, hardware));
  for (const Reservation& planned : plan) {
    DEVMGR_RETURN_IF_ERROR(AddHold(planned, record.get()));
  }
  for (DeviceHold& hold : record->holds) {
    if (IsReserved(hold)) hold.hardware = Of(hardware, hold);
  }
  record->local = pod.local;
  if (pod.alignment != nullptr) record->alignment = pod.alignment;
  if (!IsLive(*record)) record->phase = PodPhase::kAllocating;
  return Replace(DecisionKind::kReserve, "plugins are to be asked",
                 std::move(record));
}

absl::StatusOr<Decision> CommitDevices(
    const State& state, const PodUid& uid, const AllocateAnswers& answers,
    const std::optional<WithoutClaims>& without_claims,
    const HardwareByNeed& hardware) {
  const PodRecord* old = state.FindPod(uid);
  if (old == nullptr || !HasReserved(*old)) {
    return AbortedError("pod with UID '{}' has no devices reserved", uid.value);
  }
  DEVMGR_RETURN_IF_ERROR(CheckNoClash(state, uid, hardware));
  auto record = std::make_shared<PodRecord>(*old);
  for (DeviceHold& hold : record->holds) {
    if (!IsReserved(hold)) continue;
    const auto answer = answers.find({hold.container, hold.resource});
    if (answer == answers.end()) {
      return InvalidArgumentError(
          "there is no answer for '{}' of container '{}' of pod '{}'",
          hold.resource, hold.container, old->name.ToString());
    }
    hold.phase = ReservationPhase::kCommitted;
    hold.edits = answer->second.edits;
    hold.pre_start = answer->second.pre_start;
    hold.hardware = Of(hardware, hold);
  }
  const bool is_new = record->phase == PodPhase::kAllocating;
  if (is_new) record->phase = PodPhase::kAdmitted;
  if (is_new && without_claims.has_value() && record->claims.empty()) {
    DEVMGR_RETURN_IF_ERROR(Freeze(state, *without_claims, record.get()));
  } else {
    DEVMGR_RETURN_IF_ERROR(Refreeze(state, record.get()));
  }
  return Replace(DecisionKind::kAllocated, "plugins answered",
                 std::move(record));
}

Decision FreeReserved(const State& state, const PodUid& uid,
                      const std::string& message) {
  Decision nothing;
  nothing.kind = DecisionKind::kUnreserve;
  const PodRecord* old = state.FindPod(uid);
  if (old == nullptr || !HasReserved(*old)) return nothing;
  return Replace(DecisionKind::kUnreserve, message, Freed(*old));
}

Decision FreeAllReserved(const State& state, const std::string& message) {
  Decision decision;
  decision.kind = DecisionKind::kUnreserve;
  decision.message = message;
  for (const auto& [uid, pod] : state.pods) {
    if (!HasReserved(*pod)) continue;
    decision.pods.push_back(pod->name);
    decision.changes.push_back(state::PutPod{Freed(*pod)});
  }
  return decision;
}

}  // namespace devmgr::claim
