// SPDX-License-Identifier: Apache-2.0
//
// The life of one registered endpoint of a driver. The table is drawn in
// README.md beside this file, and a test holds the two against each other.
#pragma once

#include <string_view>

namespace devmgr {
enum class PluginState;
}  // namespace devmgr

namespace devmgr::dra {

enum class InstanceState {
  kConnecting,  ///< A dial is due now, or was taken and not answered yet.
  kConnected,   ///< The driver has answered over this connection.
  kBackingOff,  ///< The last dial failed, or the peer hung up; a timer runs.
  kClosed,      ///< Deregistered. Final.
};

enum class InstanceEvent {
  kDialFailed,
  kAnswered,  ///< Any call, in any way.
  kHungUp,
  kRetryDue,  ///< The back-off is over.
  kCalled,    ///< Somebody wants to call: do not wait for the back-off.
  kDeregistered,
};

InstanceState Next(InstanceState state, InstanceEvent event);

/// As devmgr/status_types.h has it.
PluginState PublicOf(InstanceState state);
std::string_view InstanceStateName(InstanceState state);
std::string_view InstanceEventName(InstanceEvent event);

}  // namespace devmgr::dra
