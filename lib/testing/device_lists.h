// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/testing.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "rpc/server.h"
#include "testing/plugin_answers.h"
#include "testing/plugin_journal.h"

namespace devmgr::testing {

/// The devices of a fake plugin and the streams that they are sent on. Each
/// change goes out on every stream, as the whole list. Thread-bound.
class DeviceLists {
 public:
  using ListId = std::uint64_t;

  DeviceLists(PluginJournal* journal, PluginDevices devices)
      : journal_(*journal), devices_(std::move(devices)) {}

  const PluginDevices& devices() const { return devices_; }
  void Set(PluginDevices devices);
  /// False: there is no such device.
  bool SetHealth(std::string_view id, std::string_view health);

  /// A stream of that instance, spoiled as the step says; silent until Begin.
  ListId Add(int instance, std::shared_ptr<rpc::ServerStream> stream,
             ScenarioStep step);
  /// Sends the first list, if the stream is still there.
  void Begin(ListId id);
  void OnClientGone(ListId id);
  void EndAll(const absl::Status& status);
  /// The server of that instance is gone, and with it its streams.
  void Forget(int instance);
  std::size_t open() const { return lists_.size(); }

 private:
  struct List {
    int instance = 0;
    std::shared_ptr<rpc::ServerStream> stream;
    ScenarioStep step;
    bool live = false;  ///< The first list is sent.
  };
  void Send(const List& list);
  void SendAll();

  PluginJournal& journal_;
  PluginDevices devices_;
  std::map<ListId, List> lists_;
  ListId last_list_ = 0;
};

}  // namespace devmgr::testing
