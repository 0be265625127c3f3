// SPDX-License-Identifier: Apache-2.0
//
// Where a resource stands with its plugin. The table is drawn in README.md
// beside this file, and a test holds the two against each other.
#pragma once

#include <cstdint>
#include <string_view>

namespace devmgr {
enum class ResourceState;
}  // namespace devmgr

namespace devmgr::device {

enum class EndpointState : std::uint8_t {
  kUnknown,    ///< Never heard of.
  kRestored,   ///< The ledger names the resource; no plugin is back yet.
  kConnected,  ///< A plugin is there; none that is has reported its devices.
  kLive,       ///< Served.
  kStopped,    ///< The last plugin has gone; the grace period runs.
  kForgotten,  ///< The grace period is over.
};

enum class EndpointEvent : std::uint8_t {
  kRestore,           ///< The ledger names the resource at start.
  kConnect,           ///< An instance of the plugin connected.
  kReport,            ///< A connected instance reported its devices.
  kLastReporterGone,  ///< Others are connected, but none has reported its
                      ///< devices.
  kLastInstanceGone,
  kGraceOver,
};

/// The state after `event`; the same state for an event that comes late.
EndpointState Next(EndpointState state, EndpointEvent event);

/// A plugin is there, whether or not it has reported its devices.
constexpr bool HasPlugin(EndpointState state) {
  return state == EndpointState::kConnected || state == EndpointState::kLive;
}

/// As devmgr/status_types.h has it.
ResourceState PublicOf(EndpointState state);
std::string_view EndpointStateName(EndpointState state);
std::string_view EndpointEventName(EndpointEvent event);

}  // namespace devmgr::device
