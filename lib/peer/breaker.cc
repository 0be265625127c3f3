// SPDX-License-Identifier: Apache-2.0
#include "peer/breaker.h"

#include <devmgr/status_types.h>

#include "common/enum_names.h"

namespace devmgr::peer {

BreakerState Next(BreakerState state, BreakerEvent event) {
  using enum BreakerState;
  switch (event) {
    case BreakerEvent::kAnswered:
      return kClosed;
    case BreakerEvent::kSilent:
      return state == kHalfOpen ? kOpen : state;
    case BreakerEvent::kTooSilent:
      return kOpen;
    case BreakerEvent::kCooledDown:
      return state == kOpen ? kHalfOpen : state;
  }
  return state;
}

PluginBreaker PublicOf(BreakerState state) {
  switch (state) {
    case BreakerState::kClosed:
      return PluginBreaker::kClosed;
    case BreakerState::kOpen:
      return PluginBreaker::kOpen;
    case BreakerState::kHalfOpen:
      return PluginBreaker::kHalfOpen;
  }
  return PluginBreaker::kClosed;
}

std::string_view BreakerStateName(BreakerState state) {
  using enum BreakerState;
  static constexpr auto kNames = EnumTable<BreakerState>({
      {kClosed, "Closed"},
      {kOpen, "Open"},
      {kHalfOpen, "HalfOpen"},
  });
  return kNames.Of(state);
}

std::string_view BreakerEventName(BreakerEvent event) {
  using enum BreakerEvent;
  static constexpr auto kNames = EnumTable<BreakerEvent>({
      {kAnswered, "Answered"},
      {kSilent, "Silent"},
      {kTooSilent, "TooSilent"},
      {kCooledDown, "CooledDown"},
  });
  return kNames.Of(event);
}

bool Breaker::MayCall() const {
  return state_ == BreakerState::kClosed ||
         (state_ == BreakerState::kHalfOpen && !trial_);
}

bool Breaker::TryCall() {
  const bool may = MayCall();
  if (may) trial_ = state_ == BreakerState::kHalfOpen;
  return may;
}

void Breaker::OnAnswered() {
  silent_ = 0;
  trial_ = false;
  Move(BreakerEvent::kAnswered);
  pauses_.Reset();
}

void Breaker::OnProbed() {
  if (state_ == BreakerState::kClosed) return;
  silent_ = options_.max_silent - 1;
  trial_ = false;
  Move(BreakerEvent::kAnswered);
}

void Breaker::OnSilent() {
  ++silent_;
  trial_ = false;
  Move(silent_ >= options_.max_silent ? BreakerEvent::kTooSilent
                                      : BreakerEvent::kSilent);
}

void Breaker::OnNoVerdict() { trial_ = false; }

void Breaker::OnCooledDown() { Move(BreakerEvent::kCooledDown); }

void Breaker::Move(BreakerEvent event) {
  const BreakerState before = state_;
  state_ = Next(state_, event);
  if (state_ == before || state_ != BreakerState::kOpen) return;
  pause_ = pauses_.Next();
}

}  // namespace devmgr::peer
