// SPDX-License-Identifier: Apache-2.0
//
// Verdicts on pods: admit, wait (for what), reject (why). Pure; the order of
// trial and the table "What wakes which pod" stand in README.md beside this
// file.
#pragma once

#include <devmgr/host.h>
#include <devmgr/objects.h>
#include <devmgr/options.h>
#include <devmgr/status_types.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "claim/pod_plan.h"
#include "state/state.h"

namespace devmgr::admission {

/// What a verdict depends on besides the pod.
struct JudgeInput {
  const state::State& state;
  const ObjectSnapshot& objects;
  const std::string& boot_id;
  /// Is there a driver of this name that can be called?
  std::function<bool(const std::string&)> driver_registered;
  claim::PlanOptions plan_options;
};

struct Judgement {
  Verdict verdict;
  claim::PodPlan plan;
  /// True: admitted by what the ledger holds; there is no plan and none is
  /// needed.
  bool from_ledger = false;
  /// The pod holds a claim that was replaced since, and may give it up: it is
  /// to be released, and judged anew after that.
  bool book_anew = false;
};

/// Judges a pod that has a UID.
Judgement Judge(const Pod& pod, const JudgeInput& input);

/// Judges a pod by what the ledger holds of it, for when its object is not
/// there (any more): only whether its drivers can be called.
Verdict JudgeBooked(const state::PodRecord& pod, const JudgeInput& input);

/// What is said of a pod that waits after its claims were seen to: it waits for
/// `or_for`, too; and which party has to act where this node allocates nothing.
void CompleteWait(Authority authority, const std::vector<WaitingFor>& or_for,
                  Verdict* verdict);

/// A pod that holds claims cannot be rejected any more: it waits for a change
/// of what it would be rejected for. `record` may be null.
void SettleRejection(const state::PodRecord* record, Verdict* verdict);

/// How a pod is judged again when something changed that it waits for.
enum class Wake {
  kNot,
  /// After those before it, and not at all when these have left nothing: one
  /// device may be what a thousand pods wait for.
  kInTurn,
  kAtOnce,
};

/// What wakes a pod that waits for something of this kind. Those for devices of
/// plugins have their turn as WaitQueue says.
Wake WakeBy(WaitingFor::Kind kind);

/// Every change of it wakes those that wait for it, so that there is nothing to
/// look at later.
bool IsNeverMissed(WaitingFor::Kind kind);

/// What `changes` are to a pod that waits for `waiting_for`.
Wake WakeBy(const std::set<WaitingFor>& changes,
            const std::vector<WaitingFor>& waiting_for);

}  // namespace devmgr::admission
