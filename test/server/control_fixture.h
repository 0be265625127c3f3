// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/control.h>
#include <devmgr/inspection.h>
#include <devmgr/inspection/v1/inspection.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rpc/connection.h"
#include "rpc/message.h"
#include "support/control_calls.h"
#include "support/fake_device_manager.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/stream_client.h"
#include "support/temp_folder.h"

namespace devmgr {

namespace cpb = control::v1;
namespace ipb = inspection::v1;

class ControlServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Open();
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
  }

  void Open() {
    auto wanted = WantedPods::Open(folder_.path() / "wanted", "", nullptr);
    ASSERT_THAT(wanted, IsOk());
    wanted_ = *std::move(wanted);
  }

  void Serve(std::vector<unsigned> users = {}) {
    ControlOptions control;
    control.wanted = wanted_.get();
    control.users = std::move(users);
    server_.reset();
    auto server = InspectionServer::Start(
        manager_, endpoint_,
        [this](LogLevel level, std::string_view text) {
          EXPECT_EQ(level, LogLevel::kWarning);
          log_.Put(std::string(text));
        },
        control);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  std::unique_ptr<rpc::Connection> Dial() {
    auto connection = rpc::Dial(*runtime_, endpoint_, [] {});
    EXPECT_THAT(connection, IsOk());
    return connection.ok() ? *std::move(connection) : nullptr;
  }

  template <typename Response>
  static absl::StatusOr<Response> Call(
      rpc::Connection& connection, const std::string& method,
      const google::protobuf::MessageLite& request) {
    return BeginCall<Response>(connection, method, request).get();
  }
  template <typename Response>
  absl::StatusOr<Response> Control(
      const std::string& method, const google::protobuf::MessageLite& request) {
    const auto connection = Dial();
    return Call<Response>(*connection, kController + method, request);
  }

  absl::StatusOr<cpb::WantPodResponse> Want(const std::string& manifest) {
    return Control<cpb::WantPodResponse>("WantPod", WantRequest(manifest));
  }
  absl::StatusOr<cpb::UnwantPodResponse> Unwant(const std::string& uid) {
    return Control<cpb::UnwantPodResponse>("UnwantPod", UnwantRequest(uid));
  }

  std::unique_ptr<StreamClient> Watch(const std::string& token = "") {
    cpb::WatchPodsRequest request;
    request.set_resume_token(token);
    return std::make_unique<StreamClient>(
        endpoint_, std::string(kController) + "WatchPods",
        rpc::Encode(request));
  }
  static cpb::WatchPodsResponse Next(StreamClient& client) {
    const auto bytes = client.Next();
    EXPECT_TRUE(bytes.has_value());
    cpb::WatchPodsResponse message;
    EXPECT_TRUE(message.ParseFromString(bytes.value_or("")));
    return message;
  }
  /// `LIST`, `POD p Ready`, `GONE p`, `LISTED`; and the token of it.
  std::string NextText(StreamClient& client) {
    using Watched = cpb::WatchPodsResponse;
    const Watched message = Next(client);
    token_ = message.resume_token();
    const std::string pod = message.pod().name().name();
    switch (message.kind()) {
      case Watched::KIND_LIST:
        return "LIST";
      case Watched::KIND_POD:
        return "POD " + pod +
               (message.pod().state() == ipb::POD_STATE_READY ? " Ready" : "");
      case Watched::KIND_GONE:
        return "GONE " + pod;
      case Watched::KIND_LISTED:
        return "LISTED";
      default:
        return "?";
    }
  }
  std::vector<std::string> NextTexts(StreamClient& client, int count) {
    std::vector<std::string> texts;
    for (int i = 0; i < count; ++i) texts.push_back(NextText(client));
    return texts;
  }

  std::vector<std::string> Decisions() {
    std::vector<std::string> decisions;
    manager_.Set(
        [&](FakeDeviceManager::World& world) { decisions = world.decisions; });
    return decisions;
  }

  const TempFolder folder_;
  const std::filesystem::path endpoint_ = folder_.path() / "devmgr.sock";
  FakeDeviceManager manager_;
  std::unique_ptr<WantedPods> wanted_;
  std::unique_ptr<rpc::Runtime> runtime_;
  Mailbox<std::string> log_;
  std::unique_ptr<InspectionServer> server_;
  std::string token_;
};

}  // namespace devmgr
