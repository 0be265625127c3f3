// SPDX-License-Identifier: Apache-2.0
//
// The life of one instance of a device plugin. The table is drawn in README.md
// beside this file, and a test holds the two against each other.
#pragma once

#include <string_view>

namespace devmgr {
enum class PluginState;
}  // namespace devmgr

namespace devmgr::plugin {

enum class InstanceState {
  kConnecting,  ///< A dial is due now.
  kAsking,      ///< Connected; it was asked for its options.
  kListening,   ///< It was asked for its devices and has listed none yet.
  kLive,
  kBackingOff,  ///< The connection is lost, or could not be made; a timer runs.
  kClosed,      ///< Final.
};

enum class InstanceEvent {
  kDialed,
  kDialFailed,
  kAnswered,  ///< With its options.
  kListed,
  kLost,      ///< The connection, its stream, or the call for the options.
  kRetryDue,  ///< The back-off is over.
  kClosed,    ///< Deregistered, replaced, or given up.
};

InstanceState Next(InstanceState state, InstanceEvent event);

/// As devmgr/status_types.h has it.
PluginState PublicOf(InstanceState state);
std::string_view InstanceStateName(InstanceState state);
std::string_view InstanceEventName(InstanceEvent event);

}  // namespace devmgr::plugin
