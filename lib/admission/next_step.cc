// SPDX-License-Identifier: Apache-2.0
#include "admission/next_step.h"

#include "common/enum_names.h"

namespace devmgr::admission {

PodStep NextStep(PodGoal goal) {
  switch (goal) {
    case PodGoal::kGone:
    case PodGoal::kReleasing:
      return PodStep::kEnd;
    case PodGoal::kEvicting:
      return PodStep::kEvict;
    case PodGoal::kMalformed:
      return PodStep::kReject;
    case PodGoal::kWanted:
      return PodStep::kAdmit;
    case PodGoal::kHeld:
      break;
  }
  return PodStep::kPrepare;
}

AfterStep Follow(StepOutcome outcome, bool wanted) {
  switch (outcome) {
    case StepOutcome::kAdmitted:
      return wanted ? AfterStep::kPrepare : AfterStep::kRepeat;
    case StepOutcome::kReplaced:
      return AfterStep::kRepeat;
    case StepOutcome::kEnded:
      return wanted ? AfterStep::kRepeat : AfterStep::kForget;
    case StepOutcome::kNotAdmitted:
    case StepOutcome::kPrepared:
    case StepOutcome::kHeldUp:
    case StepOutcome::kEvicted:
    case StepOutcome::kEvictHeld:
      return wanted ? AfterStep::kRest : AfterStep::kRepeat;
    case StepOutcome::kEndHeld:
      return wanted ? AfterStep::kRepeat : AfterStep::kRest;
    case StepOutcome::kAdmitFailed:
    case StepOutcome::kPrepareFailed:
    case StepOutcome::kEvictFailed:
      return wanted ? AfterStep::kRetry : AfterStep::kRepeat;
    case StepOutcome::kEndFailed:
      break;
  }
  return AfterStep::kRetry;
}

std::string_view PodGoalName(PodGoal goal) {
  using enum PodGoal;
  static constexpr auto kNames = EnumTable<PodGoal>({
      {kGone, "Gone"},
      {kEvicting, "Evicting"},
      {kReleasing, "Releasing"},
      {kMalformed, "Malformed"},
      {kWanted, "Wanted"},
      {kHeld, "Held"},
  });
  return kNames.Of(goal);
}

std::string_view PodStepName(PodStep step) {
  using enum PodStep;
  static constexpr auto kNames = EnumTable<PodStep>({
      {kEnd, "End"},
      {kReject, "Reject"},
      {kAdmit, "Admit"},
      {kPrepare, "Prepare"},
      {kEvict, "Evict"},
  });
  return kNames.Of(step);
}

std::string_view StepOutcomeName(StepOutcome outcome) {
  using enum StepOutcome;
  static constexpr auto kNames = EnumTable<StepOutcome>({
      {kAdmitted, "Admitted"},
      {kNotAdmitted, "NotAdmitted"},
      {kReplaced, "Replaced"},
      {kAdmitFailed, "AdmitFailed"},
      {kPrepared, "Prepared"},
      {kHeldUp, "HeldUp"},
      {kPrepareFailed, "PrepareFailed"},
      {kEnded, "Ended"},
      {kEndFailed, "EndFailed"},
      {kEndHeld, "EndHeld"},
      {kEvicted, "Evicted"},
      {kEvictFailed, "EvictFailed"},
      {kEvictHeld, "EvictHeld"},
  });
  return kNames.Of(outcome);
}

std::string_view AfterStepName(AfterStep after) {
  using enum AfterStep;
  static constexpr auto kNames = EnumTable<AfterStep>({
      {kPrepare, "Prepare"},
      {kRest, "Rest"},
      {kRetry, "Retry"},
      {kRepeat, "Repeat"},
      {kForget, "Forget"},
  });
  return kNames.Of(after);
}

}  // namespace devmgr::admission
