// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/testing.h>
#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <devmgr/wire/pluginregistration/v1/registration.pb.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "rpc/connection.h"
#include "rpc/server.h"
#include "support/mailbox.h"
#include "support/stream_client.h"
#include "support/temp_folder.h"

namespace devmgr::testing {

namespace deviceplugin = wire::deviceplugin::v1beta1;
namespace registration = wire::pluginregistration::v1;

inline constexpr char kResource[] = "example.com/gpu";

/// Answers of calls under way, to wait for.
using Answers = Mailbox<absl::StatusOr<std::string>>;

/// A kubelet as far as a plugin sees it, and a fake plugin in a fresh folder.
class FakePluginFixture : public ::testing::Test {
 protected:
  FakePluginFixture();
  ~FakePluginFixture() override;

  FakeDevicePluginOptions Options();
  /// Starts (or starts anew) the plugin; fails the test if it cannot.
  void StartPlugin(FakeDevicePluginOptions options);
  void StartPlugin() { StartPlugin(Options()); }
  static ScenarioStep Step(ScenarioStep::Action action,
                           const std::string& method = "any");

  /// Serves the registry socket; Register is answered with `verdict_`.
  void StartRegistry();
  void StopRegistry() { registry_.reset(); }
  /// The next request that has come in.
  std::optional<deviceplugin::RegisterRequest> NextRegistration();

  std::filesystem::path RegistrySocket() const;
  std::filesystem::path Socket() const;
  /// In the registration directory.
  std::filesystem::path RegistrationSocket() const;

  /// A call to the socket, by default to the plugin's own.
  std::shared_ptr<Answers> StartCall(const std::string& method,
                                     const std::string& request,
                                     std::filesystem::path socket = {});
  absl::StatusOr<std::string> Call(const std::string& method,
                                   const std::string& request,
                                   std::filesystem::path socket = {});
  template <typename Response>
  absl::StatusOr<Response> CallFor(const std::string& method,
                                   const google::protobuf::MessageLite& request,
                                   std::filesystem::path socket = {});

  /// Allocate for one container.
  std::shared_ptr<Answers> StartAllocate(const std::vector<std::string>& ids);
  absl::StatusOr<deviceplugin::ContainerAllocateResponse> Allocate(
      const std::vector<std::string>& ids, std::filesystem::path socket = {});
  absl::StatusOr<std::vector<std::string>> Prefer(
      const std::vector<std::string>& available,
      const std::vector<std::string>& must_include, int size);
  absl::Status PreStart(const std::vector<std::string>& ids);
  absl::StatusOr<deviceplugin::DevicePluginOptions> GetOptions();
  absl::StatusOr<registration::PluginInfo> GetInfo(
      const std::filesystem::path& socket);
  absl::Status Notify(const std::filesystem::path& socket, bool registered,
                      const std::string& error);

  /// A device stream.
  std::unique_ptr<StreamClient> Watch(std::filesystem::path socket = {});
  /// The next list as `id health` or `id health@node,node`.
  static std::vector<std::string> NextList(StreamClient* stream);

  std::vector<nlohmann::json> Events(const std::string& kind) const;
  bool WaitForEvent(const std::string& kind, std::size_t count = 1) const;

  const TempFolder folder_;
  const std::filesystem::path root_ = folder_.path();
  std::unique_ptr<rpc::Runtime> runtime_;
  std::unique_ptr<rpc::Server> registry_;
  absl::Status verdict_;
  Mailbox<std::string> registrations_;
  std::unique_ptr<FakeDevicePlugin> plugin_;

 private:
  /// Of calls under way, and those before.
  std::vector<std::unique_ptr<rpc::Connection>> connections_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<nlohmann::json> events_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::testing
