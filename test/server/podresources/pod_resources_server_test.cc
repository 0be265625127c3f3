// SPDX-License-Identifier: Apache-2.0
//
// Through a real socket.
#include <devmgr/pod_resources_server.h>
#include <devmgr/wire/podresources/v1/podresources.pb.h>
#include <devmgr/wire/podresources/v1alpha1/podresources.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "rpc/connection.h"
#include "rpc/unix_socket.h"
#include "server/podresources/resources.h"
#include "server/podresources/service.h"
#include "support/control_calls.h"
#include "support/fake_device_manager.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/stream_client.h"
#include "support/temp_folder.h"

namespace devmgr::podresources {
namespace {

namespace pb = wire::podresources::v1;
namespace old = wire::podresources::v1alpha1;
using ::testing::HasSubstr;

mode_t ModeOf(const std::filesystem::path& path) {
  struct stat file {};
  EXPECT_EQ(stat(path.c_str(), &file), 0) << path;
  return file.st_mode & 07777;
}

class PodResourcesServerTest : public ::testing::Test {
 protected:
  PodResourcesServerTest() {
    auto runtime = rpc::Runtime::Start();
    EXPECT_THAT(runtime.status(), IsOk());
    runtime_ = *std::move(runtime);
    options_.socket = folder_.path() / "pod-resources/kubelet.sock";
  }

  void Start() {
    auto server = PodResourcesServer::Start(manager_, options_);
    ASSERT_THAT(server.status(), IsOk());
    server_ = *std::move(server);
  }
  void SetPods(
      std::initializer_list<std::shared_ptr<const PodResources>> pods) {
    manager_.Set([list = ListOf(pods)](FakeDeviceManager::World& world) {
      world.pod_resources = list;
    });
  }
  std::unique_ptr<rpc::Connection> Dial() {
    auto connection = rpc::Dial(*runtime_, options_.socket, [] {});
    EXPECT_THAT(connection.status(), IsOk());
    return connection.ok() ? *std::move(connection) : nullptr;
  }
  template <typename Response>
  absl::StatusOr<Response> Call(const std::string& method,
                                const google::protobuf::MessageLite& request) {
    const auto connection = Dial();
    return BeginCall<Response>(*connection, method, request).get();
  }

  TempFolder folder_;
  FakeDeviceManager manager_;
  PodResourcesOptions options_;
  std::unique_ptr<rpc::Runtime> runtime_;
  std::unique_ptr<PodResourcesServer> server_;
};

TEST_F(PodResourcesServerTest, MakesItsDirectoryAndLeavesItsOwnSocketOnly) {
  Start();
  EXPECT_EQ(ModeOf(options_.socket), 0660U);
  EXPECT_EQ(ModeOf(options_.socket.parent_path()), 0750U);
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(options_.socket));
  // A directory that is there stays as it is.
  std::filesystem::permissions(options_.socket.parent_path(),
                               std::filesystem::perms::owner_all);
  Start();
  EXPECT_EQ(ModeOf(options_.socket.parent_path()), 0700U);
}

TEST_F(PodResourcesServerTest, AStaleSocketIsReplacedAndAServedOneIsNot) {
  std::filesystem::create_directories(options_.socket.parent_path());
  {
    // As a kubelet leaves it that was killed.
    const auto stale = rpc::SocketFile::Listen(options_.socket, 0600);
    ASSERT_THAT(stale.status(), IsOk());
    std::filesystem::create_hard_link(options_.socket, folder_.path() / "kept");
  }
  std::filesystem::rename(folder_.path() / "kept", options_.socket);
  ASSERT_TRUE(std::filesystem::exists(options_.socket));
  Start();
  EXPECT_THAT(PodResourcesServer::Start(manager_, options_).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Call<pb::ListPodResourcesResponse>(kListPath,
                                                 pb::ListPodResourcesRequest())
                  .status(),
              IsOk());
}

TEST_F(PodResourcesServerTest, WithoutAPlaceForItsSocketItDoesNotStart) {
  options_.socket.clear();
  EXPECT_THAT(PodResourcesServer::Start(manager_, options_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  options_.socket = "/proc/devmgr/kubelet.sock";
  EXPECT_THAT(PodResourcesServer::Start(manager_, options_).status(),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("cannot make directory '/proc/devmgr'")));
}

// BO-116, BO-123, BO-124, BO-126
TEST_F(PodResourcesServerTest, AnswersBothVersionsOnOneSocket) {
  SetPods({PodWith("p", {{"0", {0, 1}}}), PodWith("q")});
  manager_.Set([](FakeDeviceManager::World& world) {
    world.allocatable = {{kGpu, {{"0", {0}}, {"1", {}}}}};
  });
  Start();
  const auto list = Call<pb::ListPodResourcesResponse>(
      kListPath, pb::ListPodResourcesRequest());
  ASSERT_THAT(list.status(), IsOk());
  ASSERT_EQ(list->pod_resources_size(), 2);
  EXPECT_EQ(list->pod_resources(0).containers(0).devices_size(), 2);
  EXPECT_EQ(list->pod_resources(1).name(), "q");
  EXPECT_EQ(list->pod_resources(1).containers_size(), 1);
  pb::GetPodResourcesRequest request;
  request.set_pod_namespace("default");
  request.set_pod_name("p");
  const auto got = Call<pb::GetPodResourcesResponse>(kGetPath, request);
  ASSERT_THAT(got.status(), IsOk());
  EXPECT_EQ(got->pod_resources().SerializeAsString(),
            list->pod_resources(0).SerializeAsString());
  request.set_pod_name("none");
  EXPECT_THAT(Call<pb::GetPodResourcesResponse>(kGetPath, request).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       "pod none in namespace default not found"));
  const auto allocatable = Call<pb::AllocatableResourcesResponse>(
      kAllocatablePath, pb::AllocatableResourcesRequest());
  ASSERT_THAT(allocatable.status(), IsOk());
  EXPECT_EQ(allocatable->devices_size(), 2);
  const auto older = Call<old::ListPodResourcesResponse>(
      kOldListPath, old::ListPodResourcesRequest());
  ASSERT_THAT(older.status(), IsOk());
  EXPECT_EQ(older->pod_resources_size(), 2);
  EXPECT_EQ(server_->Counters().v1.requests, 4U);
  EXPECT_EQ(server_->Counters().v1alpha1.requests, 1U);
}

TEST_F(PodResourcesServerTest, OtherMethodsAreRefusedAsByServersInGo) {
  Start();
  EXPECT_THAT(Call<pb::ListPodResourcesResponse>("/v1.PodResourcesLister/Watch",
                                                 pb::ListPodResourcesRequest())
                  .status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "unknown method Watch for service "
                       "v1.PodResourcesLister"));
  EXPECT_THAT(
      Call<pb::ListPodResourcesResponse>("/v1beta1.PodResourcesLister/List",
                                         pb::ListPodResourcesRequest())
          .status(),
      StatusIs(absl::StatusCode::kUnimplemented,
               "unknown service v1beta1.PodResourcesLister"));
}

// BO-125
TEST_F(PodResourcesServerTest, ABurstOfCallsIsLimited) {
  options_.strict_kubelet = true;
  Start();
  const auto connection = Dial();
  std::vector<Answered<pb::ListPodResourcesResponse>> answers;
  for (int i = 0; i < 200; ++i) {
    answers.push_back(BeginCall<pb::ListPodResourcesResponse>(
        *connection, kListPath, pb::ListPodResourcesRequest()));
  }
  int refused = 0;
  for (auto& answer : answers) {
    const absl::Status status = answer.get().status();
    if (status.ok()) continue;
    ++refused;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                 "rejected by rate limit"));
  }
  EXPECT_LE(refused, 190);
  // However slow the machine is, the counters agree with what came.
  const PodResourcesCounters counters = server_->Counters();
  EXPECT_EQ(counters.refused, static_cast<std::uint64_t>(refused));
  EXPECT_EQ(counters.v1.list, static_cast<std::uint64_t>(200 - refused));
}

// A client that never reads holds up neither others nor the end.
TEST_F(PodResourcesServerTest, AClientThatHangsUpOrNeverReadsCostsNothing) {
  constexpr int kDevices = 20'000;
  std::vector<ResourceDevice> many;
  for (int i = 0; i < kDevices; ++i) many.push_back({std::to_string(i), {0}});
  SetPods({PodWith("p", many)});
  Start();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 8; ++i) {
    auto fd = rpc::ConnectUnix(options_.socket);
    ASSERT_THAT(fd.status(), IsOk());
    silent.push_back(*std::move(fd));
  }
  // These ask, and read nothing of what is more than HTTP/2 gives at first.
  std::vector<std::unique_ptr<StreamClient>> stalled;
  for (int i = 0; i < 4; ++i) {
    stalled.push_back(
        std::make_unique<StreamClient>(options_.socket, kListPath, ""));
  }
  auto hasty = Dial();
  std::vector<Answered<pb::ListPodResourcesResponse>> cancelled;
  for (int i = 0; i < 5; ++i) {
    cancelled.push_back(BeginCall<pb::ListPodResourcesResponse>(
        *hasty, kListPath, pb::ListPodResourcesRequest()));
  }
  hasty.reset();
  for (auto& answer : cancelled) answer.wait();
  pb::GetPodResourcesRequest request;
  request.set_pod_namespace("default");
  request.set_pod_name("p");
  const auto got = Call<pb::GetPodResourcesResponse>(kGetPath, request);
  ASSERT_THAT(got.status(), IsOk());
  EXPECT_EQ(got->pod_resources().containers(0).devices_size(), kDevices);
  // One of them does read, in the end.
  const auto late = stalled.front()->Next();
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->size(), got->SerializeAsString().size());
  const auto began = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, kPatience);
}

}  // namespace
}  // namespace devmgr::podresources
