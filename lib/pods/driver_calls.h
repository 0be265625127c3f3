// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/call_stage.h"
#include "claim/release.h"
#include "common/executor.h"
#include "dra/drivers.h"
#include "ledger/ledger.h"
#include "pods/call_queue.h"
#include "state/state.h"
#include "upkeep/spec_keeper.h"
#include "view/moment.h"

namespace devmgr::pods {

/// The calls that recorded intents ask for: never two at once for one claim at
/// one driver, drivers in parallel, claims that are due at the same time
/// together (CallQueue). What a driver answers is on disk before it is passed
/// on, and each claim by itself: none waits for others of its call. Lives on
/// the manager's thread.
class DriverCalls {
 public:
  using ClaimAtDriver = view::ClaimAtDriver;
  using PreparedClaims = upkeep::SpecKeeper::PreparedClaims;

  /// Everything is borrowed and must outlive this.
  struct Parts {
    dra::Drivers& drivers;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    std::string boot_id;
    claim::DebtRules debt_rules;
    std::function<std::int64_t()> now_ms;
    Executor& executor;  ///< This thread's.
    /// Calls for these claims ended, one way or another.
    std::function<void(const std::set<ClaimUid>&)> on_settled;
    /// Calls under way at one driver; at least one.
    std::size_t calls_at_once = CallQueue::kCallsAtOnce;
    /// Of devices that drivers answer: feature gate DRAConsumableCapacity.
    bool keep_share_ids = true;
    /// What a driver says that it prepared, before it is recorded; may be null.
    std::function<void(const std::string& driver, const PreparedClaims&)>
        on_prepared = nullptr;
    /// What that is worth, which is waited for; null: all of it counts.
    std::function<void(const std::string& driver, const PreparedClaims&,
                       std::function<void(const upkeep::SpecKeeper::Answer&)>)>
        look_at_answer = nullptr;
    /// Fills in which hardware a driver's answer is; null: that is not known.
    std::function<void(const std::string& driver, PreparedClaims,
                       std::function<void(PreparedClaims)>)>
        look_at_hardware = nullptr;
    /// Pods of these claims that are forgotten with their last one; null: none.
    std::function<std::set<PodUid>(const std::set<ClaimUid>&)> ending = nullptr;
  };
  explicit DriverCalls(Parts parts)
      : parts_(std::move(parts)), queue_(parts_.calls_at_once) {}

  /// Makes the calls that these claims need: NodePrepareResources for every
  /// driver that is kPreparing, NodeUnprepareResources for kUnpreparing, and
  /// one after the other for kPreparing that is to be unprepared first. A call
  /// that is due or under way is joined.
  void Drive(const std::vector<ClaimUid>& claims);

  /// The same, for a driver that came or connected: a call that is under way
  /// may have missed it, so that if it fails, another one follows at once.
  void DriveAnew(const std::string& driver,
                 const std::vector<ClaimUid>& claims);

  /// The claim is gone, whatever its drivers are doing. What they will say of
  /// it counts no more; but as long as one is at it, it is asked nothing else
  /// about the claim, should that come again.
  void Forget(const ClaimUid& claim);

  /// No call begins from now on.
  void Stop() { stopped_ = true; }

  /// Or due.
  bool IsUnderWay(const ClaimUid& claim) const;

  /// What can be seen of it.
  const view::Calls& known() const { return known_; }

  using Error = view::Calls::Error;
  /// How the last calls for these claims failed, one error per claim and
  /// driver; those that succeeded since have none.
  std::vector<Error> Errors(const std::vector<ClaimUid>& claims) const;

  /// How many unprepare calls for what is owed have failed.
  std::uint32_t Attempts(const ClaimUid& claim,
                         const std::string& driver) const;

 private:
  using CallId = std::uint64_t;

  struct Call {
    std::string driver;
    bool prepare = true;
    bool shared = false;         ///< By several claims.
    std::set<ClaimUid> waiting;  ///< Not answered yet.
  };

  /// The answer counts no more.
  bool IsForgotten(const std::string& driver, const ClaimUid& claim) const;
  /// Begins what may begin at this driver.
  void Dispatch(const std::string& driver);
  void Begin(const std::string& driver, const CallQueue::Call& due);
  void OnPrepared(CallId id, dra::PrepareAnswer answer);
  void OnIdentified(const Call& call, const PreparedClaims& prepared);
  /// `look` says what is to be done with the answer.
  void RecordAnswer(const Call& call, PreparedClaims prepared,
                    const upkeep::SpecKeeper::Answer& look);
  void OnUnprepared(CallId id, dra::UnprepareAnswer answer);
  /// The call has an answer for these claims; leaves those that count, and
  /// settles the others. Nothing when it had all its answers before. The call
  /// is over with the last one.
  template <typename Answer>
  std::optional<Call> Take(CallId id, Answer* answer);
  /// What a claim's answer means for its next call.
  void JudgeTimeout(const Call& call, const ClaimUid& claim,
                    const absl::Status& status);
  /// The driver has not unprepared these: what it owes is recorded, then they
  /// are settled.
  void RecordDebts(const Call& call,
                   const std::map<ClaimUid, absl::Status>& failed);
  /// Writes `decide`, then settles `claims`, each with its error from `errors`
  /// or none; a failed write is the error of all of them.
  void Record(const Call& call, std::set<ClaimUid> claims,
              std::map<ClaimUid, absl::Status> errors,
              ledger::Ledger::Decide decide);
  /// The call is over for these claims, each with its error or none.
  /// `is_of_ledger`: the errors are those of a failed write.
  void Settle(const Call& call,
              const std::map<ClaimUid, absl::Status>& outcomes,
              bool is_of_ledger = false);

  const Parts parts_;
  bool stopped_ = false;
  CallQueue queue_;
  CallId last_call_ = 0;
  std::map<CallId, Call> calls_;  ///< Under way.
  std::map<ClaimAtDriver, claim::CallStage> under_way_;
  view::Calls known_;
};

}  // namespace devmgr::pods
