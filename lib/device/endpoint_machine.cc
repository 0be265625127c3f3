// SPDX-License-Identifier: Apache-2.0
#include "device/endpoint_machine.h"

#include <devmgr/status_types.h>

#include "common/enum_names.h"

namespace devmgr::device {

EndpointState Next(EndpointState state, EndpointEvent event) {
  using enum EndpointState;
  switch (event) {
    case EndpointEvent::kRestore:
      return state == kUnknown ? kRestored : state;
    case EndpointEvent::kConnect:
      return state == kLive ? kLive : kConnected;
    case EndpointEvent::kReport:
      return state == kConnected ? kLive : state;
    case EndpointEvent::kLastReporterGone:
      return state == kLive ? kConnected : state;
    case EndpointEvent::kLastInstanceGone:
      return state == kLive || state == kConnected ? kStopped : state;
    case EndpointEvent::kGraceOver:
      return state == kStopped || state == kRestored ? kForgotten : state;
  }
  return state;
}

ResourceState PublicOf(EndpointState state) {
  switch (state) {
    case EndpointState::kUnknown:
      return ResourceState::kUnknown;
    case EndpointState::kRestored:
      return ResourceState::kRestored;
    case EndpointState::kConnected:
      return ResourceState::kConnected;
    case EndpointState::kLive:
      return ResourceState::kLive;
    case EndpointState::kStopped:
      return ResourceState::kStopped;
    case EndpointState::kForgotten:
      return ResourceState::kForgotten;
  }
  return ResourceState::kUnknown;
}

std::string_view EndpointStateName(EndpointState state) {
  using enum EndpointState;
  static constexpr auto kNames = EnumTable<EndpointState>({
      {kUnknown, "Unknown"},
      {kRestored, "Restored"},
      {kConnected, "Connected"},
      {kLive, "Live"},
      {kStopped, "Stopped"},
      {kForgotten, "Forgotten"},
  });
  return kNames.Of(state);
}

std::string_view EndpointEventName(EndpointEvent event) {
  using enum EndpointEvent;
  static constexpr auto kNames = EnumTable<EndpointEvent>({
      {kRestore, "Restore"},
      {kConnect, "Connect"},
      {kReport, "Report"},
      {kLastReporterGone, "LastReporterGone"},
      {kLastInstanceGone, "LastInstanceGone"},
      {kGraceOver, "GraceOver"},
  });
  return kNames.Of(event);
}

}  // namespace devmgr::device
