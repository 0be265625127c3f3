// SPDX-License-Identifier: Apache-2.0
//
// The life of one claim at one driver. The table is drawn in README.md beside
// this file, and a test holds the two against each other.
#pragma once

#include <optional>
#include <string_view>

#include "state/records.h"

namespace devmgr::claim {

enum class ClaimState {
  kAbsent,
  kPreparing,
  kPrepared,
  kUnpreparing,
  kRenewing,  ///< To be unprepared, and then prepared, for its pods.
};

enum class ClaimEvent {
  kReference,          ///< A pod wants the claim.
  kPrepareDone,        ///< The driver answered that it is prepared.
  kPrepareFailed,      ///< The driver answered with an error, or not at all.
  kLastReferenceGone,  ///< The last pod gave the claim up.
  kUnprepareDone,
  kUnprepareFailed,
  kReboot,  ///< The node runs in another boot than at the answer.
  kRepair,  ///< What the driver prepared was found missing.
  kRenew,   ///< And it has prepared it again in vain; no container runs.
};

/// The state after `event`. Empty: refused, what caused the event waits.
std::optional<ClaimState> Next(ClaimState state, ClaimEvent event);

std::string_view ClaimStateName(ClaimState state);
std::string_view ClaimEventName(ClaimEvent event);

/// As stored; kAbsent when there is no record.
ClaimState StateOf(const state::DriverRecord* record);

}  // namespace devmgr::claim
