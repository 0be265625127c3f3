// SPDX-License-Identifier: Apache-2.0
//
// Which party allocates devices, and how that is handed over: one record of the
// ledger, and the decisions that change it. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::control {

/// Where the authority is by now.
struct Standing {
  state::Party party = state::Party::kNode;
  /// It is being handed over to this party: neither takes new decisions.
  std::optional<state::Party> to = {};
  friend bool operator==(const Standing&, const Standing&) = default;
};

/// What counts by the ledger under this configuration, also before
/// DecideConfigured is committed.
Standing StandingOf(const state::State& state, state::Party configured);

/// What a ledger that was opened with this configuration has to record: that a
/// hand-over to the party that is configured now begins; of a ledger without
/// any record that this party is it. Nothing when it was configured before, or
/// the node has always been it.
state::Decision DecideConfigured(const state::State& state,
                                 state::Party configured, std::int64_t now_ms);

/// An operator hands over. Back to the party that has it yet, while a hand-over
/// is under way, ends that.
///   InvalidArgument     there is no reason
///   FailedPrecondition  that party is it, or is to be it, already; or the
///                       devices are split, or would be
absl::StatusOr<state::Decision> DecideHandOver(const state::State& state,
                                               state::Party configured,
                                               state::Party to,
                                               const std::string& reason,
                                               std::int64_t now_ms);

/// The hand-over that is under way ends. Nothing when there is none.
state::Decision DecideHandedOver(const state::State& state,
                                 std::int64_t now_ms);

/// Whether this node allocates claims by now: for the ledger's thread, which
/// decides last.
///   Aborted  another party does, or it is being handed over
absl::Status CheckAllocates(const state::State& state, state::Party configured);

/// What was decided for the pod before a hand-over: claims of this node's that
/// are reserved for it.
bool HasClaimsOf(const state::State& state, const PodUid& pod);

/// `authority changing: from node to scheduler`.
std::string ChangingText(const Standing& standing);

}  // namespace devmgr::control
