// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/message.h"
#include "rpc/server.h"
#include "support/mailbox.h"

namespace devmgr::plugin {

/// A device plugin on a real socket, as small as can be: it answers its
/// options, tells a list to whoever listens, and hands calls to the test.
class SmallPlugin {
 public:
  using Stream = std::shared_ptr<rpc::ServerStream>;
  struct Call {
    std::string request;
    rpc::Respond respond;
  };

  SmallPlugin(const std::filesystem::path& socket,
              const std::vector<std::string>& ids,
              absl::Status options = absl::OkStatus()) {
    rpc::ServerOptions server;
    server.socket = socket;
    const std::string service = "/v1beta1.DevicePlugin/";
    server.methods[service + "GetDevicePluginOptions"] =
        [this, options](const std::string&, const rpc::Respond& respond) {
          asked_.Put(true);
          if (!options.ok()) return respond(options);
          respond(std::string());
        };
    server.methods[service + "Allocate"] = [this](std::string request,
                                                  rpc::Respond respond) {
      allocations_.Put({std::move(request), std::move(respond)});
    };
    server.streams[service + "ListAndWatch"] =
        [this, ids](const std::string&, const Stream& stream) {
          stream->Write(ListOf(ids));
          listeners_.Put(stream);
        };
    auto started = rpc::Server::Start(std::move(server));
    EXPECT_TRUE(started.ok()) << started.status().ToString();
    if (started.ok()) server_ = *std::move(started);
  }

  static std::string ListOf(const std::vector<std::string>& ids) {
    wire::deviceplugin::v1beta1::ListAndWatchResponse list;
    for (const std::string& id : ids) {
      auto* device = list.add_devices();
      device->set_id(id);
      device->set_health("Healthy");
    }
    return rpc::Encode(list);
  }

  Mailbox<bool> asked_;
  Mailbox<Stream> listeners_;
  Mailbox<Call> allocations_;

 private:
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace devmgr::plugin
