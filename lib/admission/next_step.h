// SPDX-License-Identifier: Apache-2.0
//
// Which step the actuator takes for a pod, and what follows from how that step
// ended. Both tables are drawn in README.md beside this file, and a test holds
// them against each other. Pure.
#pragma once

#include <string_view>

namespace devmgr::admission {

/// What is known of a pod when a step may be taken for it.
enum class PodGoal {
  kGone,       ///< It is not wanted.
  kEvicting,   ///< It is wanted, and has to leave its devices for good.
  kReleasing,  ///< It is wanted, and gives up claims that were replaced.
  kMalformed,  ///< It is wanted, and its object breaks an API rule.
  kWanted,     ///< It is wanted, and its object is known.
  kHeld,       ///< It is wanted, and known from the ledger only.
};

enum class PodStep { kEnd, kReject, kAdmit, kPrepare, kEvict };

PodStep NextStep(PodGoal goal);

/// How a step ended.
enum class StepOutcome {
  kAdmitted,
  kNotAdmitted,  ///< It waits, or is rejected.
  kReplaced,     ///< It gives up claims that were replaced before it waits.
  kAdmitFailed,  ///< There is no verdict.
  kPrepared,
  kHeldUp,         ///< It was not prepared, and time alone changes nothing.
  kPrepareFailed,  ///< It may succeed when it is tried again.
  kEnded,
  kEndFailed,
  kEndHeld,  ///< Something of the pod runs, or may run.
  kEvicted,  ///< It holds nothing any more, and is rejected.
  kEvictFailed,
  kEvictHeld,  ///< As kEndHeld.
};

enum class AfterStep {
  kPrepare,  ///< The next step begins at once, within the same turn.
  kRest,     ///< Nothing is done before something changes.
  kRetry,    ///< The step is taken again after the back-off of
             ///< pods/actuator.cc.
  kRepeat,   ///< The next step begins at once.
  kForget,   ///< The pod is known no more.
};

/// `wanted`: the pod is wanted now, which may have changed during the step.
AfterStep Follow(StepOutcome outcome, bool wanted);

std::string_view PodGoalName(PodGoal goal);
std::string_view PodStepName(PodStep step);
std::string_view StepOutcomeName(StepOutcome outcome);
std::string_view AfterStepName(AfterStep after);

}  // namespace devmgr::admission
