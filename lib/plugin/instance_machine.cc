// SPDX-License-Identifier: Apache-2.0
#include "plugin/instance_machine.h"

namespace devmgr::plugin {

InstanceState Next(InstanceState state, InstanceEvent event) {
  using enum InstanceState;
  if (state == kClosed || event == InstanceEvent::kClosed) return kClosed;
  const bool connected =
      state == kAsking || state == kListening || state == kLive;
  if (connected && event == InstanceEvent::kLost) return kBackingOff;
  switch (state) {
    case kConnecting:
      if (event == InstanceEvent::kDialed) return kAsking;
      if (event == InstanceEvent::kDialFailed) return kBackingOff;
      return state;
    case kAsking:
      return event == InstanceEvent::kAnswered ? kListening : state;
    case kListening:
      return event == InstanceEvent::kListed ? kLive : state;
    case kBackingOff:
      return event == InstanceEvent::kRetryDue ? kConnecting : state;
    case kLive:
    case kClosed:
      break;
  }
  return state;
}

std::string_view InstanceStateName(InstanceState state) {
  switch (state) {
    case InstanceState::kConnecting:
      return "Connecting";
    case InstanceState::kAsking:
      return "Asking";
    case InstanceState::kListening:
      return "Connected";
    case InstanceState::kLive:
      return "Live";
    case InstanceState::kBackingOff:
      return "Disconnected";
    case InstanceState::kClosed:
      return "Closed";
  }
  return "";
}

std::string_view InstanceEventName(InstanceEvent event) {
  switch (event) {
    case InstanceEvent::kDialed:
      return "Dialed";
    case InstanceEvent::kDialFailed:
      return "DialFailed";
    case InstanceEvent::kAnswered:
      return "Answered";
    case InstanceEvent::kListed:
      return "Listed";
    case InstanceEvent::kLost:
      return "Lost";
    case InstanceEvent::kRetryDue:
      return "RetryDue";
    case InstanceEvent::kClosed:
      return "Closed";
  }
  return "";
}

}  // namespace devmgr::plugin
