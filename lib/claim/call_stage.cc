// SPDX-License-Identifier: Apache-2.0
#include "claim/call_stage.h"

#include "common/enum_names.h"

namespace devmgr::claim {

CallStage Next(CallStage stage, CallEvent event) {
  using enum CallStage;
  switch (event) {
    case CallEvent::kBegun:
      return stage == kDue ? kAsked : stage;
    case CallEvent::kDriverCame:
      return stage == kAsked ? kAskAgain : stage;
    case CallEvent::kClaimGone:
      return stage == kDue || stage == kOver ? kOver : kForgotten;
    case CallEvent::kWriteFailed:
      break;
  }
  return stage == kAskAgain ? kAsked : stage;
}

AfterCall WhenSettled(CallStage stage, StillOwed owed, bool failed) {
  if (owed == StillOwed::kNothing) return AfterCall::kDone;
  if (owed == StillOwed::kTheOtherThing || stage == CallStage::kForgotten) {
    return AfterCall::kAskNow;
  }
  return failed && stage == CallStage::kAskAgain ? AfterCall::kAskNow
                                                 : AfterCall::kWait;
}

std::string_view CallStageName(CallStage stage) {
  using enum CallStage;
  static constexpr auto kNames = EnumTable<CallStage>({
      {kDue, "Due"},
      {kAsked, "Asked"},
      {kAskAgain, "AskAgain"},
      {kForgotten, "Forgotten"},
      {kOver, "Over"},
  });
  return kNames.Of(stage);
}

std::string_view CallEventName(CallEvent event) {
  using enum CallEvent;
  static constexpr auto kNames = EnumTable<CallEvent>({
      {kBegun, "Begun"},
      {kDriverCame, "DriverCame"},
      {kClaimGone, "ClaimGone"},
      {kWriteFailed, "WriteFailed"},
  });
  return kNames.Of(event);
}

std::string_view StillOwedName(StillOwed owed) {
  using enum StillOwed;
  static constexpr auto kNames = EnumTable<StillOwed>({
      {kNothing, "Nothing"},
      {kTheSame, "TheSame"},
      {kTheOtherThing, "TheOtherThing"},
  });
  return kNames.Of(owed);
}

std::string_view AfterCallName(AfterCall after) {
  using enum AfterCall;
  static constexpr auto kNames = EnumTable<AfterCall>({
      {kDone, "Done"},
      {kWait, "Wait"},
      {kAskNow, "AskNow"},
  });
  return kNames.Of(after);
}

}  // namespace devmgr::claim
