// SPDX-License-Identifier: Apache-2.0
#include "dra/instance_machine.h"

namespace devmgr::dra {

InstanceState Next(InstanceState state, InstanceEvent event) {
  using enum InstanceState;
  if (state == kClosed || event == InstanceEvent::kDeregistered) {
    return kClosed;
  }
  switch (state) {
    case kConnecting:
      if (event == InstanceEvent::kAnswered) return kConnected;
      if (event == InstanceEvent::kDialFailed ||
          event == InstanceEvent::kHungUp) {
        return kBackingOff;
      }
      return kConnecting;
    case kConnected:
      return event == InstanceEvent::kHungUp ? kBackingOff : kConnected;
    case kBackingOff:
      if (event == InstanceEvent::kRetryDue ||
          event == InstanceEvent::kCalled) {
        return kConnecting;
      }
      return kBackingOff;
    case kClosed:
      break;
  }
  return kClosed;
}

std::string_view InstanceStateName(InstanceState state) {
  switch (state) {
    case InstanceState::kConnecting:
      return "Connecting";
    case InstanceState::kConnected:
      return "Connected";
    case InstanceState::kBackingOff:
      return "Disconnected";
    case InstanceState::kClosed:
      return "Closed";
  }
  return "";
}

std::string_view InstanceEventName(InstanceEvent event) {
  switch (event) {
    case InstanceEvent::kDialFailed:
      return "DialFailed";
    case InstanceEvent::kAnswered:
      return "Answered";
    case InstanceEvent::kHungUp:
      return "HungUp";
    case InstanceEvent::kRetryDue:
      return "RetryDue";
    case InstanceEvent::kCalled:
      return "Called";
    case InstanceEvent::kDeregistered:
      return "Deregistered";
  }
  return "";
}

}  // namespace devmgr::dra
