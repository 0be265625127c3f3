// SPDX-License-Identifier: Apache-2.0
#include "registration/grpc_plugin_socket.h"

#include <chrono>
#include <utility>

#include "devmgr/wire/pluginregistration/v1/registration.pb.h"
#include "registration/plugin_info.h"
#include "rpc/message.h"

namespace devmgr::registration {
namespace {

namespace wire = devmgr::wire::pluginregistration::v1;

constexpr char kGetInfo[] = "/pluginregistration.Registration/GetInfo";
constexpr char kNotify[] =
    "/pluginregistration.Registration/NotifyRegistrationStatus";
constexpr std::chrono::milliseconds kGetInfoTimeout{1'000};
constexpr std::chrono::milliseconds kNotifyTimeout{5'000};

class GrpcPluginSocket final : public PluginSocket {
 public:
  explicit GrpcPluginSocket(std::unique_ptr<rpc::Connection> connection)
      : connection_(std::move(connection)) {}

  std::optional<uid_t> owner() const override {
    return connection_->peer().uid;
  }

  void GetInfo(std::function<void(absl::StatusOr<Plugin>)> done) override {
    connection_->Call(
        kGetInfo, rpc::Encode(wire::InfoRequest()), {kGetInfoTimeout},
        [done](absl::StatusOr<std::string> answer) {
          done(answer.ok() ? DecodePluginInfo(*answer)
                           : absl::StatusOr<Plugin>(answer.status()));
        });
  }

  void NotifyStatus(const std::string& error,
                    std::function<void(absl::Status)> done) override {
    wire::RegistrationStatus status;
    status.set_plugin_registered(error.empty());
    status.set_error(error);
    connection_->Call(
        kNotify, rpc::Encode(status), {kNotifyTimeout},
        [done](absl::StatusOr<std::string> answer) { done(answer.status()); });
  }

 private:
  const std::unique_ptr<rpc::Connection> connection_;
};

}  // namespace

PluginDialer GrpcPluginDialer(rpc::Runtime& runtime) {
  return [&runtime](const std::filesystem::path& path)
             -> absl::StatusOr<std::unique_ptr<PluginSocket>> {
    auto connection = rpc::Dial(runtime, path, [] {});
    if (!connection.ok()) return connection.status();
    return std::make_unique<GrpcPluginSocket>(*std::move(connection));
  };
}

}  // namespace devmgr::registration
