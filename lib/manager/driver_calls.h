// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/release.h"
#include "common/executor.h"
#include "dra/drivers.h"
#include "manager/ledger.h"
#include "state/state.h"

namespace devmgr::manager {

/// The calls that recorded intents ask for: never two at once for one claim at
/// one driver, one RPC per driver with all claims that are due, drivers in
/// parallel. What a driver answers is on disk before it is told.
/// Lives on the manager's thread.
class DriverCalls {
 public:
  using ClaimAtDriver = std::pair<ClaimUid, std::string>;

  /// Everything is borrowed and must outlive this.
  struct Parts {
    dra::Drivers& drivers;
    Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    std::string boot_id;
    claim::DebtRules debt_rules;
    std::function<std::int64_t()> now_ms;
    std::function<void(Task)> post;  ///< Runs a task on this thread.
    /// Calls for these claims ended, one way or another.
    std::function<void(const std::set<ClaimUid>&)> on_settled;
  };
  explicit DriverCalls(Parts parts) : parts_(std::move(parts)) {}

  /// Makes the calls that these claims need: NodePrepareResources for every
  /// driver that is kPreparing, NodeUnprepareResources for kUnpreparing. A call
  /// that is under way is joined.
  void Drive(const std::vector<ClaimUid>& claims);

  /// The claim is gone: nothing is to be told of its calls any more.
  void Forget(const ClaimUid& claim);

  /// No call begins from now on.
  void Stop() { stopped_ = true; }

  bool IsUnderWay(const ClaimUid& claim) const;

  /// How the last calls for these claims failed, one error per claim and
  /// driver; those that succeeded since have none.
  std::vector<std::pair<std::string, absl::Status>> Errors(
      const std::vector<ClaimUid>& claims) const;

  /// How many unprepare calls for what is owed have failed.
  std::uint32_t Attempts(const ClaimUid& claim,
                         const std::string& driver) const;

 private:
  void Prepare(const std::string& driver,
               const std::vector<dra::ClaimReference>& claims);
  void Unprepare(const std::string& driver,
                 const std::vector<dra::ClaimReference>& claims);
  void OnPrepared(const std::string& driver, dra::PrepareAnswer answer);
  void OnUnprepared(const std::string& driver, dra::UnprepareAnswer answer);
  /// The driver has not unprepared these: what it owes is recorded, then they
  /// are settled.
  void RecordDebts(const std::string& driver,
                   const std::map<ClaimUid, absl::Status>& failed);
  /// Writes `decide`, then settles `claims`, each with its error from `errors`
  /// or none; a failed write is the error of all of them.
  void Record(const std::string& driver, std::set<ClaimUid> claims,
              std::map<ClaimUid, absl::Status> errors, Ledger::Decide decide);
  void Settle(const std::string& driver, const std::set<ClaimUid>& claims);

  const Parts parts_;
  bool stopped_ = false;
  std::map<ClaimAtDriver, bool> under_way_;  ///< True: a prepare call.
  std::map<ClaimAtDriver, absl::Status> errors_;
  /// Unprepare calls that failed, of what is owed; the ledger's number may be
  /// behind.
  std::map<ClaimAtDriver, std::uint32_t> attempts_;
};

}  // namespace devmgr::manager
