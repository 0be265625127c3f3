// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/testing.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "testing/journal.h"
#include "testing/plugin_wire.h"

namespace devmgr::testing {

/// What happened to a fake device plugin.
class PluginJournal : public Journal<FakeDevicePlugin::Call> {
 public:
  using Journal::Journal;

  void Serving(const std::string& resource, std::size_t devices,
               const std::string& socket, const std::string& registration);
  void Called(FakeDevicePlugin::Call call);
  /// What Allocate gave, or what is preferred, per container.
  void Answer(std::string_view method, const std::vector<DeviceIds>& answers);
  /// A list was sent.
  void List(std::size_t devices, std::size_t healthy);
  /// A note about a socket.
  void Socket(std::string_view event, const std::string& socket,
              const absl::Status& status = {});
};

}  // namespace devmgr::testing
