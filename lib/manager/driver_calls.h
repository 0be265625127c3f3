// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

  /// All are borrowed and must outlive this. `state` is the durable projection
  /// as the manager's thread sees it. `post` runs a task on that thread.
  /// `on_settled` tells that calls for these claims ended, one way or another.
  DriverCalls(dra::Drivers& drivers, Ledger& ledger, const state::State& state,
              std::string boot_id, std::function<void(Task)> post,
              std::function<void(const std::set<ClaimUid>&)> on_settled);

  /// Makes the calls that these claims need: NodePrepareResources for every
  /// driver that is kPreparing, NodeUnprepareResources for kUnpreparing. A call
  /// that is under way is joined.
  void Drive(const std::vector<ClaimUid>& claims);

  /// No call begins from now on.
  void Stop() { stopped_ = true; }

  bool IsUnderWay(const ClaimUid& claim) const;

  /// How the last calls for these claims failed, one error per claim and
  /// driver; those that succeeded since have none.
  std::vector<std::pair<std::string, absl::Status>> Errors(
      const std::vector<ClaimUid>& claims) const;

 private:
  void Prepare(const std::string& driver,
               const std::vector<dra::ClaimReference>& claims);
  void Unprepare(const std::string& driver,
                 const std::vector<dra::ClaimReference>& claims);
  void OnPrepared(const std::string& driver, dra::PrepareAnswer answer);
  void OnUnprepared(const std::string& driver, dra::UnprepareAnswer answer);
  /// Writes `decide`, then settles `claims`; a failed write is the error of
  /// all of them.
  void Record(const std::string& driver, std::set<ClaimUid> claims,
              Ledger::Decide decide);
  void Settle(const std::string& driver, const std::set<ClaimUid>& claims);

  dra::Drivers& drivers_;
  Ledger& ledger_;
  const state::State& state_;
  const std::string boot_id_;
  const std::function<void(Task)> post_;
  const std::function<void(const std::set<ClaimUid>&)> on_settled_;

  bool stopped_ = false;
  std::map<ClaimAtDriver, bool> under_way_;  ///< True: a prepare call.
  std::map<ClaimAtDriver, absl::Status> errors_;
};

}  // namespace devmgr::manager
