// SPDX-License-Identifier: Apache-2.0
//
// Pods, claims and debts as people see them: what the ledger holds of them, and
// on top what only a running manager knows. Pure.
#pragma once

#include <devmgr/status_types.h>

#include <string>
#include <vector>

#include "state/state.h"
#include "view/moment.h"

namespace devmgr::view {

PodState StateOf(const Moment& moment, const state::PodRecord& pod);
PodInfo InfoOf(const Moment& moment, const state::PodRecord& pod);
ClaimInfo InfoOf(const Moment& moment, const state::ClaimRecord& claim);
/// What is noted of a pod that is not wanted any more: its release waits for
/// the runtime, which has containers of it that run.
bool IsHeldByRuntime(const Verdict& note);
/// By namespace and name of the claim, then by driver.
std::vector<DebtInfo> DebtsOf(const Moment& moment);

/// How the last call failed; empty when it did not.
std::string LastError(const Calls& calls, const ClaimUid& claim,
                      const std::string& driver);
/// How many unprepare calls for what is owed have failed.
std::uint32_t Attempts(const Calls& calls, const state::State& state,
                       const ClaimUid& claim, const std::string& driver);

}  // namespace devmgr::view
