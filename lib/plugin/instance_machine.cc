// SPDX-License-Identifier: Apache-2.0
#include "plugin/instance_machine.h"

#include <devmgr/status_types.h>

#include "common/enum_names.h"

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

PluginState PublicOf(InstanceState state) {
  switch (state) {
    case InstanceState::kConnecting:
      return PluginState::kConnecting;
    case InstanceState::kAsking:
      return PluginState::kAsking;
    case InstanceState::kListening:
      return PluginState::kConnected;
    case InstanceState::kLive:
      return PluginState::kLive;
    case InstanceState::kBackingOff:
      return PluginState::kDisconnected;
    case InstanceState::kClosed:
      return PluginState::kClosed;
  }
  return PluginState::kConnecting;
}

std::string_view InstanceStateName(InstanceState state) {
  using enum InstanceState;
  static constexpr auto kNames = EnumTable<InstanceState>({
      {kConnecting, "Connecting"},
      {kAsking, "Asking"},
      {kListening, "Connected"},
      {kLive, "Live"},
      {kBackingOff, "Disconnected"},
      {kClosed, "Closed"},
  });
  return kNames.Of(state);
}

std::string_view InstanceEventName(InstanceEvent event) {
  using enum InstanceEvent;
  static constexpr auto kNames = EnumTable<InstanceEvent>({
      {kDialed, "Dialed"},
      {kDialFailed, "DialFailed"},
      {kAnswered, "Answered"},
      {kListed, "Listed"},
      {kLost, "Lost"},
      {kRetryDue, "RetryDue"},
      {kClosed, "Closed"},
  });
  return kNames.Of(event);
}

}  // namespace devmgr::plugin
