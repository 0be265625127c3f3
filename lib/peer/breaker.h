// SPDX-License-Identifier: Apache-2.0
//
// Whether a peer is asked at all. One that lets calls run into their deadline
// is left alone for a while; then one call tries it. The table is drawn in
// README.md beside this file.
#pragma once

#include <chrono>
#include <string_view>

#include "common/back_off.h"

namespace devmgr {
enum class PluginBreaker;
}  // namespace devmgr

namespace devmgr::peer {

enum class BreakerState {
  kClosed,    ///< Calls go out.
  kOpen,      ///< None does.
  kHalfOpen,  ///< One does, as a trial.
};

enum class BreakerEvent {
  kAnswered,   ///< Well or not: it is not silent.
  kSilent,     ///< A call ran into its deadline.
  kTooSilent,  ///< The same, and it is one too many in a row.
  kCooledDown,
};

BreakerState Next(BreakerState state, BreakerEvent event);

/// As devmgr/status_types.h has it.
PluginBreaker PublicOf(BreakerState state);
std::string_view BreakerStateName(BreakerState state);
std::string_view BreakerEventName(BreakerEvent event);

struct BreakerOptions {
  int max_silent = 3;  ///< Calls in a row that end at their deadline.
  std::chrono::milliseconds first_pause{10'000};  ///< Doubles.
  std::chrono::milliseconds last_pause{300'000};
};

/// Knows no clock: its owner calls OnCooledDown when `pause` is over.
class Breaker {
 public:
  explicit Breaker(BreakerOptions options)
      : options_(options), pauses_(options.first_pause, options.last_pause) {}

  /// Whether a call may go out now.
  bool MayCall() const;
  /// The same, for a call that then does: in kHalfOpen it has the trial.
  bool TryCall();
  /// The end of a call that went out.
  void OnAnswered();
  void OnSilent();
  /// The same for a call that has no effect: that shows that the peer is there,
  /// not that it does its work. Calls go out again, but the next one that is
  /// silent opens it at once, for longer than before.
  void OnProbed();
  /// A call ended by neither, such as with its connection.
  void OnNoVerdict();
  void OnCooledDown();

  BreakerState state() const { return state_; }
  /// How long kOpen lasts this time.
  std::chrono::milliseconds pause() const { return pause_; }

 private:
  void Move(BreakerEvent event);

  const BreakerOptions options_;
  BreakerState state_ = BreakerState::kClosed;
  int silent_ = 0;  ///< In a row.
  bool trial_ = false;
  BackOff pauses_;
  std::chrono::milliseconds pause_{0};
};

}  // namespace devmgr::peer
