// SPDX-License-Identifier: Apache-2.0
#include "claim/claim_machine.h"

#include "common/enum_names.h"

namespace devmgr::claim {

std::optional<ClaimState> Next(ClaimState state, ClaimEvent event) {
  using enum ClaimState;
  switch (state) {
    case kAbsent:
      return event == ClaimEvent::kReference ? kPreparing : kAbsent;
    case kPreparing:
      if (event == ClaimEvent::kPrepareDone) return kPrepared;
      if (event == ClaimEvent::kLastReferenceGone) return kUnpreparing;
      if (event == ClaimEvent::kRenew) return kRenewing;
      return kPreparing;
    case kPrepared:
      if (event == ClaimEvent::kLastReferenceGone) return kUnpreparing;
      if (event == ClaimEvent::kReboot || event == ClaimEvent::kRepair) {
        return kPreparing;
      }
      if (event == ClaimEvent::kRenew) return kRenewing;
      return kPrepared;
    case kUnpreparing:
      // A late answer to a prepare call changes nothing: the driver is asked
      // to unprepare after it.
      if (event == ClaimEvent::kReference) return std::nullopt;
      if (event == ClaimEvent::kUnprepareDone) return kAbsent;
      return kUnpreparing;
    case kRenewing:
      // So does a late answer here.
      if (event == ClaimEvent::kUnprepareDone) return kPreparing;
      if (event == ClaimEvent::kLastReferenceGone) return kUnpreparing;
      return kRenewing;
  }
  return std::nullopt;
}

std::string_view ClaimStateName(ClaimState state) {
  using enum ClaimState;
  static constexpr auto kNames = EnumTable<ClaimState>({
      {kAbsent, "Absent"},
      {kPreparing, "Preparing"},
      {kPrepared, "Prepared"},
      {kUnpreparing, "Unpreparing"},
      {kRenewing, "Renewing"},
  });
  return kNames.Of(state);
}

std::string_view ClaimEventName(ClaimEvent event) {
  using enum ClaimEvent;
  static constexpr auto kNames = EnumTable<ClaimEvent>({
      {kReference, "Reference"},
      {kPrepareDone, "PrepareDone"},
      {kPrepareFailed, "PrepareFailed"},
      {kLastReferenceGone, "LastReferenceGone"},
      {kUnprepareDone, "UnprepareDone"},
      {kUnprepareFailed, "UnprepareFailed"},
      {kReboot, "Reboot"},
      {kRepair, "Repair"},
      {kRenew, "Renew"},
  });
  return kNames.Of(event);
}

ClaimState StateOf(const state::DriverRecord* record) {
  if (record == nullptr) return ClaimState::kAbsent;
  switch (record->phase) {
    case state::DriverPhase::kPreparing:
      return record->spec_recovery == state::SpecRecovery::kUnprepareFirst
                 ? ClaimState::kRenewing
                 : ClaimState::kPreparing;
    case state::DriverPhase::kPrepared:
      return ClaimState::kPrepared;
    case state::DriverPhase::kUnpreparing:
      return ClaimState::kUnpreparing;
  }
  return ClaimState::kAbsent;
}

}  // namespace devmgr::claim
