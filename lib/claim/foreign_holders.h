// SPDX-License-Identifier: Apache-2.0
//
// Decisions about containers that hold devices which their pods were not given:
// pure functions, for the thread that decides.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// What the containers of one runtime hold, as its shim reports them.
struct ReportedHolders {
  std::string endpoint;
  std::vector<state::ForeignHolderRecord> holders;
  /// There are no others: a holder of this runtime that is missing is gone.
  bool all = false;
};

/// What of it the holder keeps against the pods of `state`: its own pod has not
/// been given it, and no other pod has it.
state::ForeignHolderRecord HeldBeyondPods(const state::State& state,
                                          state::ForeignHolderRecord holder);

/// Puts holders that are new or hold other things than before, and erases those
/// that are gone or hold nothing that pods do not have. One that an operator
/// freed stays as it is until it is gone; one of another runtime is not
/// touched. Without changes there is nothing to decide.
state::Decision JudgeHolders(const state::State& state,
                             const ReportedHolders& reported,
                             std::int64_t now_ms);

/// Ends the holders that were found in another boot.
state::Decision EndEarlierBoots(const state::State& state,
                                const std::string& boot_id);

/// Ends the holders that are containers of this pod and have what it was given,
/// or what of them has become the pod's.
state::Decision SettleHolders(const state::State& state, const PodUid& pod);

/// The holder of that container, or of the only one whose ID begins so.
///   NotFound         there is none
///   InvalidArgument  `id` is empty, or several begin so
absl::StatusOr<const state::ForeignHolderRecord*> FindHolder(
    const state::State& state, const std::string& id);

/// By an operator: pods may have its devices though it may still use them.
///   as FindHolder
///   InvalidArgument     there is no reason
///   FailedPrecondition  they are free already
absl::StatusOr<state::Decision> FreeHolder(const state::State& state,
                                           const std::string& id,
                                           const std::string& reason);

/// `device '0' of 'example.com/gpu', CDI device 'v.com/c=1'`; of many the first
/// few.
std::string HeldText(const state::ForeignHolderRecord& holder);

}  // namespace devmgr::claim
