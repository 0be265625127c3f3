// SPDX-License-Identifier: Apache-2.0
//
// The client, with our server and with scripted ones.
#include <devmgr/pod_resources_client.h>
#include <devmgr/pod_resources_server.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "rpc/server.h"
#include "server/podresources/encoding.h"
#include "server/podresources/resources.h"
#include "server/podresources/service.h"
#include "support/fake_device_manager.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::podresources {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class PodResourcesClientTest : public ::testing::Test {
 protected:
  /// A server that answers one method.
  void Script(const char* path, absl::StatusOr<std::string> answer) {
    rpc::ServerOptions options;
    options.socket = socket_;
    options.methods[path] = [answer](const std::string&,
                                     const rpc::Respond& respond) {
      respond(answer);
    };
    auto server = rpc::Server::Start(std::move(options));
    ASSERT_THAT(server.status(), IsOk());
    scripted_ = *std::move(server);
  }
  std::unique_ptr<PodResourcesClient> Connect() {
    auto client = PodResourcesClient::Connect(socket_, kPatience);
    EXPECT_THAT(client.status(), IsOk());
    return client.ok() ? *std::move(client) : nullptr;
  }

  TempFolder folder_;
  const std::filesystem::path socket_ = folder_.path() / "kubelet.sock";
  std::unique_ptr<rpc::Server> scripted_;
};

TEST_F(PodResourcesClientTest, ReadsWhatOurServerTells) {
  FakeDeviceManager manager;
  const auto pod = PodWith("p", {{"0", {0, 1}}});
  manager.Set([&](FakeDeviceManager::World& world) {
    world.pod_resources = ListOf({pod});
    world.allocatable = {{kGpu, {{"0", {0}}}}};
  });
  PodResourcesOptions options;
  options.socket = socket_;
  const auto server = PodResourcesServer::Start(manager, options);
  ASSERT_THAT(server.status(), IsOk());
  const auto client = Connect();
  const auto pods = client->List();
  ASSERT_THAT(pods.status(), IsOk());
  ASSERT_THAT(*pods, SizeIs(1));
  EXPECT_EQ((*pods)[0].containers[0].resources, pod->containers[0]);
  EXPECT_EQ(client->Get(pod->name)->name, pod->name);
  EXPECT_THAT(client->Get({"default", "q"}).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       "pod q in namespace default not found"));
  EXPECT_THAT(client->Allocatable()->devices,
              ElementsAre(ResourceDevices{kGpu, {{"0", {0}}}}));
}

TEST_F(PodResourcesClientTest, AsksAnOldServerByItsVersion) {
  Script(kOldListPath, EncodedOldPod(*PodWith("p", {{"0", {}}})));
  const auto pods = Connect()->List();
  ASSERT_THAT(pods.status(), IsOk());
  ASSERT_THAT(*pods, SizeIs(1));
  EXPECT_EQ((*pods)[0].name.name, "p");
  EXPECT_THAT(Connect()->Allocatable().status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr(socket_.string()),
                             HasSubstr("unknown service"))));
}

TEST_F(PodResourcesClientTest, WhatAServerSaysComesThrough) {
  Script(kGetPath, absl::UnknownError("pod q in namespace default not found"));
  EXPECT_THAT(Connect()->Get({"default", "q"}).status(),
              StatusIs(absl::StatusCode::kUnknown,
                       "pod q in namespace default not found"));
  scripted_.reset();
  Script(kAllocatablePath, std::string("\xff"));
  EXPECT_THAT(
      Connect()->Allocatable().status(),
      StatusIs(absl::StatusCode::kInternal, HasSubstr(socket_.string())));
}

TEST_F(PodResourcesClientTest, WithoutAServerItDoesNotConnect) {
  EXPECT_THAT(
      PodResourcesClient::Connect(socket_, kPatience).status(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(socket_.string())));
  EXPECT_THAT(PodResourcesClient::Connect(socket_, std::chrono::milliseconds(0))
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace devmgr::podresources
