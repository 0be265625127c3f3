// SPDX-License-Identifier: Apache-2.0
#include "device/endpoint_machine.h"

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

std::string_view EndpointStateName(EndpointState state) {
  switch (state) {
    case EndpointState::kUnknown:
      return "Unknown";
    case EndpointState::kRestored:
      return "Restored";
    case EndpointState::kConnected:
      return "Connected";
    case EndpointState::kLive:
      return "Live";
    case EndpointState::kStopped:
      return "Stopped";
    case EndpointState::kForgotten:
      return "Forgotten";
  }
  return "";
}

std::string_view EndpointEventName(EndpointEvent event) {
  switch (event) {
    case EndpointEvent::kRestore:
      return "Restore";
    case EndpointEvent::kConnect:
      return "Connect";
    case EndpointEvent::kReport:
      return "Report";
    case EndpointEvent::kLastReporterGone:
      return "LastReporterGone";
    case EndpointEvent::kLastInstanceGone:
      return "LastInstanceGone";
    case EndpointEvent::kGraceOver:
      return "GraceOver";
  }
  return "";
}

}  // namespace devmgr::device
