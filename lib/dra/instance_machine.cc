// SPDX-License-Identifier: Apache-2.0
#include "dra/instance_machine.h"

#include <devmgr/status_types.h>

#include "common/enum_names.h"

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

PluginState PublicOf(InstanceState state) {
  switch (state) {
    case InstanceState::kConnecting:
      return PluginState::kConnecting;
    case InstanceState::kConnected:
      return PluginState::kConnected;
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
      {kConnected, "Connected"},
      {kBackingOff, "Disconnected"},
      {kClosed, "Closed"},
  });
  return kNames.Of(state);
}

std::string_view InstanceEventName(InstanceEvent event) {
  using enum InstanceEvent;
  static constexpr auto kNames = EnumTable<InstanceEvent>({
      {kDialFailed, "DialFailed"},
      {kAnswered, "Answered"},
      {kHungUp, "HungUp"},
      {kRetryDue, "RetryDue"},
      {kCalled, "Called"},
      {kDeregistered, "Deregistered"},
  });
  return kNames.Of(event);
}

}  // namespace devmgr::dra
