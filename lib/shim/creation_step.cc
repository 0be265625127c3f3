// SPDX-License-Identifier: Apache-2.0
#include "shim/creation_step.h"

#include "common/enum_names.h"

namespace devmgr::shim {
namespace {

bool TookBack(CreationState state) {
  return state == CreationState::kTookBack ||
         state == CreationState::kTookBackAwaitingSpecs;
}

bool AwaitsSpecs(CreationState state) {
  return state == CreationState::kAwaitsSpecs ||
         state == CreationState::kTookBackAwaitingSpecs;
}

CreationStep StepForUnknownPod(bool patient, UnknownSandbox unknown) {
  if (unknown == UnknownSandbox::kRefuse) return CreationStep::kFail;
  const bool waits = unknown == UnknownSandbox::kWait && patient;
  return waits ? CreationStep::kWait : CreationStep::kPass;
}

}  // namespace

CreationStep NextStep(CreationState state, CreationAnswer answer, bool patient,
                      UnknownSandbox unknown) {
  switch (answer) {
    case CreationAnswer::kUnknownPod:
      return StepForUnknownPod(patient, unknown);
    case CreationAnswer::kNotReady:
      return AwaitsSpecs(state) && patient ? CreationStep::kWait
                                           : CreationStep::kFail;
    case CreationAnswer::kGivenBack:
      return TookBack(state) ? CreationStep::kFail : CreationStep::kTakeBack;
    case CreationAnswer::kLacksSpecs:
      return CreationStep::kAskForSpecs;
    case CreationAnswer::kHasAll:
      return CreationStep::kInject;
    case CreationAnswer::kRefused:
      break;
  }
  return CreationStep::kFail;
}

CreationState After(CreationState state, CreationStep step) {
  const bool took_back = TookBack(state) || step == CreationStep::kTakeBack;
  const bool awaits = AwaitsSpecs(state) || step == CreationStep::kAskForSpecs;
  if (took_back && awaits) return CreationState::kTookBackAwaitingSpecs;
  if (took_back) return CreationState::kTookBack;
  return awaits ? CreationState::kAwaitsSpecs : CreationState::kAsking;
}

std::string_view CreationStateName(CreationState state) {
  using enum CreationState;
  static constexpr auto kNames = EnumTable<CreationState>({
      {kAsking, "Asking"},
      {kTookBack, "TookBack"},
      {kAwaitsSpecs, "AwaitsSpecs"},
      {kTookBackAwaitingSpecs, "TookBackAwaitingSpecs"},
  });
  return kNames.Of(state);
}

std::string_view CreationAnswerName(CreationAnswer answer) {
  using enum CreationAnswer;
  static constexpr auto kNames = EnumTable<CreationAnswer>({
      {kUnknownPod, "UnknownPod"},
      {kNotReady, "NotReady"},
      {kRefused, "Refused"},
      {kGivenBack, "GivenBack"},
      {kLacksSpecs, "LacksSpecs"},
      {kHasAll, "HasAll"},
  });
  return kNames.Of(answer);
}

std::string_view CreationStepName(CreationStep step) {
  using enum CreationStep;
  static constexpr auto kNames = EnumTable<CreationStep>({
      {kWait, "Wait"},
      {kPass, "Pass"},
      {kFail, "Fail"},
      {kTakeBack, "TakeBack"},
      {kAskForSpecs, "AskForSpecs"},
      {kInject, "Inject"},
  });
  return kNames.Of(step);
}

}  // namespace devmgr::shim
