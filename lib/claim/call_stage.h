// SPDX-License-Identifier: Apache-2.0
//
// How far the asking of one driver about one claim is, and what follows when
// the driver has answered. Both tables are drawn in README.md beside this file,
// and a test holds them against each other. Pure.
#pragma once

#include <string_view>

namespace devmgr::claim {

enum class CallStage {
  kDue,        ///< A call is to be made.
  kAsked,      ///< It is under way, or its answer is being recorded.
  kAskAgain,   ///< The same; if it fails, another one follows at once.
  kForgotten,  ///< It is under way, and its answer does not count.
  kOver,       ///< Final.
};

enum class CallEvent {
  kBegun,
  kDriverCame,   ///< The call may have missed it.
  kClaimGone,    ///< Whatever its drivers are doing.
  kWriteFailed,  ///< What is on disk is not known.
};

CallStage Next(CallStage stage, CallEvent event);

std::string_view CallStageName(CallStage stage);
std::string_view CallEventName(CallEvent event);

/// What the ledger says, when a call is over, of what the driver has to do.
enum class StillOwed {
  kNothing,
  kTheSame,       ///< What the call asked for.
  kTheOtherThing  ///< To unprepare what it prepared, or the other way round.
};

enum class AfterCall {
  kDone,    ///< The driver owes nothing.
  kWait,    ///< It has failed; its error is kept for the next try.
  kAskNow,  ///< The next call is due at once.
};

/// `failed`: the call ended with an error.
AfterCall WhenSettled(CallStage stage, StillOwed owed, bool failed);

std::string_view StillOwedName(StillOwed owed);
std::string_view AfterCallName(AfterCall after);

}  // namespace devmgr::claim
