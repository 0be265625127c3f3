// SPDX-License-Identifier: Apache-2.0
#include "state/history.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "common/status.h"

namespace devmgr::state {
namespace {

/// How many batches are held in memory at once.
constexpr std::uint64_t kPart = 256;

std::int64_t UnixMillis(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch())
      .count();
}

std::string Describe(const LedgerPoint& at) {
  if (const auto* seq = std::get_if<std::uint64_t>(&at)) {
    return fmt::format("after decision {}", *seq);
  }
  return "at that time";
}

/// Goes back from the state now, batch by batch, until `at` is reached.
class Rewind {
 public:
  Rewind(State now, const LedgerPoint& at, const ReadHistory& read)
      : then_{std::move(now), 0},
        last_(then_.state.seq),
        at_(at),
        read_(read) {}

  /// Ends where the history does, if that is before `at`.
  Rewind& AsFarAsItGoes() {
    as_far_as_it_goes_ = true;
    return *this;
  }

  absl::StatusOr<StateThen> Run() {
    while (then_.state.seq > 0) {
      DEVMGR_ASSIGN_OR_RETURN(const Batch* const batch, LastBatch());
      if (batch != nullptr) then_.time_ms = batch->time_ms;
      if (IsReached(batch)) return std::move(then_);
      if (batch == nullptr || !CanRevert(*batch)) {
        if (as_far_as_it_goes_) return std::move(then_);
        return TooFarBack();
      }
      DEVMGR_RETURN_IF_ERROR(Revert(then_.state, *batch));
      then_.time_ms = 0;
    }
    return std::move(then_);
  }

 private:
  /// Of the state as it is by now; null when the history does not have it.
  absl::StatusOr<const Batch*> LastBatch() {
    const std::uint64_t seq = then_.state.seq;
    if (part_.empty() || seq < part_.front().seq) {
      const std::uint64_t after = seq - std::min(seq, kPart);
      DEVMGR_ASSIGN_OR_RETURN(part_, read_(after, kPart));
    }
    const auto found =
        std::lower_bound(part_.begin(), part_.end(), seq,
                         [](const Batch& batch, std::uint64_t wanted) {
                           return batch.seq < wanted;
                         });
    const bool has = found != part_.end() && found->seq == seq;
    return has ? &*found : nullptr;
  }

  /// `batch`: the last one of the state, or null.
  bool IsReached(const Batch* batch) const {
    if (std::holds_alternative<std::monostate>(at_)) return true;
    if (const auto* seq = std::get_if<std::uint64_t>(&at_)) {
      return then_.state.seq <= *seq;
    }
    return batch != nullptr &&
           batch->time_ms <= UnixMillis(std::get<WallTime>(at_));
  }

  absl::Status TooFarBack() const {
    return OutOfRangeError(
        "what the ledger held {} is not known: its history has the states "
        "after decisions {} to {}",
        Describe(at_), then_.state.seq, last_);
  }

  StateThen then_;
  const std::uint64_t last_;
  const LedgerPoint& at_;
  const ReadHistory& read_;
  bool as_far_as_it_goes_ = false;
  /// The part of the history that is being gone through.
  std::vector<Batch> part_;
};

}  // namespace

absl::StatusOr<StateThen> StateAt(State now, const LedgerPoint& at,
                                  const ReadHistory& read) {
  const auto* seq = std::get_if<std::uint64_t>(&at);
  if (seq != nullptr && *seq > now.seq) {
    return OutOfRangeError("decision {} is yet to come: the last one is {}",
                           *seq, now.seq);
  }
  return Rewind(std::move(now), at, read).Run();
}

absl::StatusOr<State> EarliestState(State now, const ReadHistory& read) {
  const LedgerPoint begin = std::uint64_t{0};
  DEVMGR_ASSIGN_OR_RETURN(
      StateThen then,
      Rewind(std::move(now), begin, read).AsFarAsItGoes().Run());
  return std::move(then.state);
}

}  // namespace devmgr::state
