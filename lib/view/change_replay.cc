// SPDX-License-Identifier: Apache-2.0
#include "view/change_replay.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status.h"
#include "view/device_changes.h"

namespace devmgr::view {
namespace {

/// How many batches are held in memory at once.
constexpr std::size_t kPart = 256;

}  // namespace

std::uint64_t ReplayFrom(const ChangeToken& token) {
  const bool whole = token.index == ChangeToken::kWhole;
  return whole || token.sequence == 0 ? token.sequence : token.sequence - 1;
}

absl::Status TooOld(const ChangeToken& token) {
  return OutOfRangeError(
      "too old: the changes after {} are not known any more, as the ledger's "
      "history does not reach back to it; start from a snapshot",
      token.ToString());
}

absl::StatusOr<state::State> StateOf(const state::State& now,
                                     const ChangeToken& token,
                                     const state::ReadHistory& read) {
  if (token.sequence > now.seq) {
    return OutOfRangeError(
        "the token {} is of another ledger: the last decision of this one is "
        "{}; start from a snapshot",
        token.ToString(), now.seq);
  }
  const std::uint64_t from = ReplayFrom(token);
  if (from < now.seq) {
    // Before all that comes after it is gone back for nothing.
    DEVMGR_ASSIGN_OR_RETURN(const std::vector<state::Batch> next,
                            read(from, 1));
    if (next.empty() || next.front().seq != from + 1) return TooOld(token);
  }
  auto then = state::StateAt(now, from, read);
  if (absl::IsOutOfRange(then.status())) return TooOld(token);
  if (!then.ok()) return then.status();
  return std::move(then->state);
}

absl::StatusOr<Replay> ReplayChanges(state::State then,
                                     const ChangeToken& token,
                                     std::uint64_t last, std::size_t most,
                                     const state::ReadHistory& read) {
  Replay replay;
  replay.found.next = token;
  replay.then = std::move(then);
  std::vector<DeviceChange>& found = replay.found.changes;
  std::vector<state::Batch> part;
  auto batch = part.begin();
  while (replay.then.seq < last) {
    if (batch == part.end()) {
      DEVMGR_ASSIGN_OR_RETURN(part, read(replay.then.seq, kPart));
      batch = part.begin();
      if (part.empty()) return TooOld(replay.found.next);
    }
    if (batch->seq != replay.then.seq + 1) return TooOld(replay.found.next);
    const state::State before = replay.then;
    DEVMGR_RETURN_IF_ERROR(state::Apply(replay.then, *batch));
    for (DeviceChange& change : ChangesOf(before, replay.then, *batch)) {
      if (change.token <= token) continue;
      if (found.size() >= most) {
        replay.found.more = true;
        replay.then = before;
        return replay;
      }
      replay.found.next = change.token;
      found.push_back(std::move(change));
    }
    replay.found.next = std::max(replay.found.next, ChangeToken{batch->seq});
    ++batch;
  }
  return replay;
}

}  // namespace devmgr::view
