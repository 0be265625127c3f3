// SPDX-License-Identifier: Apache-2.0
//
// Changes of devices from the bounded history of the ledger. Pure but for the
// reading.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_changes.h>

#include <cstddef>
#include <cstdint>

#include "state/history.h"
#include "state/state.h"

namespace devmgr::view {

/// The sequence of the state from which the changes after `token` are found.
std::uint64_t ReplayFrom(const ChangeToken& token);

/// The state after decision ReplayFrom(token), from the state now.
///   OutOfRange  too old, or not of this ledger
///   DataLoss    the history does not lead to `now`
absl::StatusOr<state::State> StateOf(const state::State& now,
                                     const ChangeToken& token,
                                     const state::ReadHistory& read);

struct Replay {
  DeviceChanges found;  ///< `more`: the end is not reached.
  state::State then;    ///< After decision ReplayFrom(found.next).
};

/// Changes after `token` and up to decision `last`, `most` at most, from the
/// state of StateOf.
///   OutOfRange  the history has lost some of them meanwhile
///   DataLoss    a batch of the history does not fit
absl::StatusOr<Replay> ReplayChanges(state::State then,
                                     const ChangeToken& token,
                                     std::uint64_t last, std::size_t most,
                                     const state::ReadHistory& read);

/// OutOfRange, for a reader that has to begin with a snapshot.
absl::Status TooOld(const ChangeToken& token);

}  // namespace devmgr::view
