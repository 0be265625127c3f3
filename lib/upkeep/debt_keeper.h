// SPDX-License-Identifier: Apache-2.0
//
// When drivers are asked for what they have not unprepared. Which debts are
// recorded and forgiven is decided in claim/release.h.
#pragma once

#include <devmgr/status_types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "claim/release.h"
#include "common/executor.h"
#include "events/event_log.h"
#include "ledger/changes.h"
#include "ledger/ledger.h"
#include "state/decision.h"
#include "state/state.h"

namespace devmgr::upkeep {

/// What drivers owe: claims that they were to unprepare and have not. Asks them
/// again as soon as they are back, and every minute else, but never while the
/// ledger does not know what is on disk: what a driver has done may be there.
/// Forgives what the rules say is not to be waited for any longer. How long
/// that is is measured by the clock that does not jump; by the calendar only
/// for the time before the start. Lives on the manager's thread.
class DebtKeeper {
 public:
  static constexpr std::chrono::milliseconds kSweep{60'000};

  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    events::EventLog& events;
    claim::DebtRules rules;
    std::function<std::int64_t()> now_ms;
    /// Has the drivers of these claims asked for what they owe.
    std::function<void(const std::vector<ClaimUid>&)> drive;
    /// The same, for a driver that came or connected.
    std::function<void(const std::string& driver, const std::vector<ClaimUid>&)>
        drive_anew;
    /// Unprepare calls for it that failed.
    std::function<std::uint32_t(const ClaimUid&, const std::string& driver)>
        attempts;
  };
  explicit DebtKeeper(Parts parts) : parts_(std::move(parts)) {}

  /// Takes up what the ledger holds.
  void Start();
  /// A driver came or connected.
  void OnDriver(const std::string& driver);
  /// Claims are owed, or are owed no more.
  void OnCommitted(const ledger::Changes& changes);

  /// By namespace and name of the claim, then by driver.
  std::vector<DebtInfo> Debts() const;

 private:
  /// The ledger has `now` in place of `before`, by that decision; either may be
  /// null.
  void OnClaim(const state::ClaimRecord* before, const state::ClaimRecord* now,
               state::DecisionKind decision);
  void Sweep();
  void ArmSweep(std::chrono::milliseconds delay);
  /// Runs `ask` when the ledger knows what is on disk; sweeps soon if it does
  /// not.
  void OnceKnown(std::function<void()> ask);
  void ArmForgive(std::chrono::milliseconds delay);
  /// Has what is due forgiven, and wakes up for what comes next.
  void Forgive();
  /// By a clock that does not jump.
  std::chrono::milliseconds Now() const;

  const Parts parts_;
  TimerId sweep_ = 0;    ///< 0: none is armed.
  TimerId forgive_ = 0;  ///< The same.
  /// Since when each is owed, as Now tells it.
  std::map<claim::ForgivableDebt, std::chrono::milliseconds> owed_since_;
};

}  // namespace devmgr::upkeep
