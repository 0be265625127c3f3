// SPDX-License-Identifier: Apache-2.0
//
// Decisions about claims that pods give up, and about what drivers owe when
// they do not unprepare them: pure functions, as in prepare_intent.h.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/options.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::claim {

/// What becomes of claims that drivers owe, as configured.
struct DebtRules {
  DebtPolicy fallback;  ///< Not for devices that other nodes reach.
  std::map<std::string, DebtPolicy> by_driver;
  DebtPolicy For(const state::ClaimRecord& claim,
                 const std::string& driver) const;
  /// Whether any debt is ever forgiven.
  bool Forgive() const;
};

/// `block`, `defer`, `forgiveAfter: 1h`.
std::string DebtPolicyText(const DebtPolicy& policy);

/// How things stand when a pod gives up its claims.
struct ReleaseTerms {
  /// Drivers that cannot be asked now, and why.
  std::map<std::string, std::string> absent;
  DebtRules rules;
  std::int64_t now_ms = 0;
  /// The pod is forgotten as soon as it holds no claims, be it at once.
  bool ends = false;
};

/// The pod gives up its claims: shared ones at once; of the others every driver
/// becomes kUnpreparing, but for those that want no such call. Those that are
/// absent owe it from this decision on. Nothing when there is nothing to give
/// up.
state::Decision BeginRelease(const state::State& state, const PodUid& pod,
                             const ReleaseTerms& terms = {});

/// BeginRelease for a pod that holds claims which were replaced; nothing when
/// it has become Ready meanwhile, since its containers may run with them.
state::Decision GiveUpReplaced(const state::State& state, const PodUid& pod,
                               const ReleaseTerms& terms,
                               const std::string& boot_id);

/// What `driver` unprepared. A claim without drivers left is gone; one that is
/// renewed for its pods is to be prepared now. Pods of `ending` that hold
/// nothing after that are forgotten.
state::Decision RecordUnprepared(const state::State& state,
                                 const std::string& driver,
                                 const std::set<ClaimUid>& unprepared,
                                 const DebtRules& rules = {},
                                 const std::set<PodUid>& ending = {});

/// Forgets a pod that holds nothing.
///   FailedPrecondition  it still holds claims
absl::StatusOr<state::Decision> ForgetPod(const state::State& state,
                                          const PodUid& pod);

/// How often a driver has failed by now, and how the last time.
struct FailedTries {
  std::uint32_t attempts = 0;
  std::string error;
};

/// What `driver` was to unprepare and has not: it owes it. What is owed already
/// is written again when the error is another one, or so many attempts failed
/// that their number has doubled. Pods go where the rules let them.
state::Decision RecordDebts(const state::State& state,
                            const std::string& driver,
                            const std::map<ClaimUid, FailedTries>& failed,
                            const DebtRules& rules, std::int64_t now_ms);

/// A debt that is forgiven some time.
struct ForgivableDebt {
  ClaimUid claim;
  std::string driver;
  std::int64_t since_ms = 0;  ///< Unix time; tells it from one before.
  std::chrono::milliseconds forgive_after{0};
  friend auto operator<=>(const ForgivableDebt&,
                          const ForgivableDebt&) = default;
};

/// All debts that are forgiven some time.
std::vector<ForgivableDebt> ForgivableDebts(const state::State& state,
                                            const DebtRules& rules);

/// Drops these debts, if they are still what they were.
state::Decision ForgiveDebts(const state::State& state, const DebtRules& rules,
                             const std::vector<ForgivableDebt>& due);

/// Claims of this name that are being unprepared are gone.
///   InvalidArgument     no reason
///   NotFound            no claim of that name is known
///   FailedPrecondition  pods use it
absl::StatusOr<state::Decision> ForceRelease(const state::State& state,
                                             const ObjectName& claim,
                                             const std::string& reason);

/// Claims that are to be unprepared: by this driver, or by any when it is
/// empty.
std::vector<ClaimUid> OwedClaims(const state::State& state,
                                 const std::string& driver);

}  // namespace devmgr::claim
