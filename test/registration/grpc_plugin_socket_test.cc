// SPDX-License-Identifier: Apache-2.0
//
// The handshake over a real socket.
#include "registration/grpc_plugin_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/status.h"
#include "devmgr/wire/pluginregistration/v1/registration.pb.h"
#include "rpc/connection.h"
#include "rpc/server.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::registration {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace wire = devmgr::wire::pluginregistration::v1;

class GrpcPluginSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
  }

  std::filesystem::path Path() const { return folder_.path() / "p-reg.sock"; }

  /// A plugin that answers both methods with what the test has set.
  void Serve() {
    rpc::ServerOptions options;
    options.socket = Path();
    options.methods["/pluginregistration.Registration/GetInfo"] =
        [this](std::string request, const rpc::Respond& respond) {
          requests_.Put(std::move(request));
          respond(info_);
        };
    options
        .methods["/pluginregistration.Registration/NotifyRegistrationStatus"] =
        [this](std::string request, const rpc::Respond& respond) {
          requests_.Put(std::move(request));
          respond(notify_);
        };
    auto server = rpc::Server::Start(std::move(options));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    auto socket = GrpcPluginDialer(*runtime_)(Path());
    ASSERT_THAT(socket, IsOk());
    socket_ = *std::move(socket);
  }

  absl::StatusOr<Plugin> GetInfo() {
    Mailbox<absl::StatusOr<Plugin>> answers;
    socket_->GetInfo([&](auto answer) { answers.Put(std::move(answer)); });
    const auto answer = answers.Take();
    return answer.has_value() ? *answer : InternalError("no answer");
  }

  absl::Status Notify(const std::string& error) {
    Mailbox<absl::Status> answers;
    socket_->NotifyStatus(error, [&](auto answer) { answers.Put(answer); });
    const auto answer = answers.Take();
    return answer.has_value() ? *answer : InternalError("no answer");
  }

  const TempFolder folder_;
  absl::StatusOr<std::string> info_ = std::string();
  absl::StatusOr<std::string> notify_ = std::string();
  Mailbox<std::string> requests_;
  std::unique_ptr<rpc::Runtime> runtime_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<PluginSocket> socket_;
};

TEST_F(GrpcPluginSocketTest, KnowsWhoListens) {
  Serve();
  EXPECT_EQ(socket_->owner(), ::getuid());
}

TEST_F(GrpcPluginSocketTest, ReadsWhatThePluginSaysOfItself) {
  wire::PluginInfo info;
  info.set_type("DRAPlugin");
  info.set_name("d.example.com");
  info.set_endpoint("/d.sock");
  info.add_supported_versions("v1.DRAPlugin");
  info.add_supported_versions("v1beta1.DRAPlugin");
  info_ = info.SerializeAsString();
  Serve();
  const auto plugin = GetInfo();
  ASSERT_THAT(plugin, IsOk());
  EXPECT_EQ(plugin->type, "DRAPlugin");
  EXPECT_EQ(plugin->name, "d.example.com");
  EXPECT_EQ(plugin->endpoint, "/d.sock");
  EXPECT_THAT(plugin->supported_versions,
              ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin"));
  EXPECT_EQ(requests_.Take(), "");
}

TEST_F(GrpcPluginSocketTest, TellsBothOutcomes) {
  Serve();
  EXPECT_THAT(Notify(""), IsOk());
  EXPECT_EQ(requests_.Take(), "\x08\x01");  // plugin_registered: true
  EXPECT_THAT(Notify("no"), IsOk());
  EXPECT_EQ(requests_.Take(), "\x12\x02no");  // error: "no"
}

TEST_F(GrpcPluginSocketTest, ErrorsOfThePluginComeThrough) {
  info_ = UnavailableError("not yet");
  notify_ = FailedPreconditionError("never heard of it");
  Serve();
  EXPECT_THAT(GetInfo(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not yet")));
  EXPECT_THAT(Notify(""), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("never heard of it")));
}

TEST_F(GrpcPluginSocketTest, BytesThatAreNoPluginInfoAreAnError) {
  info_ = std::string("\x0a\x7f");
  Serve();
  EXPECT_THAT(GetInfo(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("PluginInfo")));
}

TEST_F(GrpcPluginSocketTest, OversizedInfoIsRefused) {
  Serve();
  wire::PluginInfo many;
  for (int i = 0; i < 257; ++i) many.add_supported_versions("v");
  wire::PluginInfo name;
  name.set_name(std::string(5'000, 'n'));
  wire::PluginInfo version;
  version.add_supported_versions(std::string(300, 'v'));
  for (const auto& [info, text] :
       {std::pair(many, "257 versions"), std::pair(name, "5000 bytes"),
        std::pair(version, "a version of 300 bytes")}) {
    info_ = info.SerializeAsString();
    EXPECT_THAT(GetInfo(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  }
}

TEST_F(GrpcPluginSocketTest, AMissingSocketCannotBeDialled) {
  const PluginDialer dialer = GrpcPluginDialer(*runtime_);
  EXPECT_THAT(dialer(Path()), StatusIs(absl::StatusCode::kNotFound));
}

// DP-036
TEST_F(GrpcPluginSocketTest, AHungGetInfoEndsByItself) {
  rpc::ServerOptions options;
  options.socket = Path();
  Mailbox<rpc::Respond> held;
  options.methods["/pluginregistration.Registration/GetInfo"] =
      [&](std::string, rpc::Respond respond) { held.Put(std::move(respond)); };
  auto server = rpc::Server::Start(std::move(options));
  ASSERT_THAT(server, IsOk());
  auto socket = GrpcPluginDialer(*runtime_)(Path());
  ASSERT_THAT(socket, IsOk());
  socket_ = *std::move(socket);
  EXPECT_THAT(GetInfo(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  socket_.reset();
}

TEST_F(GrpcPluginSocketTest, ACallUnderWayEndsWithTheSocket) {
  rpc::ServerOptions options;
  options.socket = Path();
  Mailbox<rpc::Respond> held;
  options.methods["/pluginregistration.Registration/GetInfo"] =
      [&](std::string, rpc::Respond respond) { held.Put(std::move(respond)); };
  auto server = rpc::Server::Start(std::move(options));
  ASSERT_THAT(server, IsOk());
  auto socket = GrpcPluginDialer(*runtime_)(Path());
  ASSERT_THAT(socket, IsOk());
  Mailbox<absl::StatusOr<Plugin>> answers;
  (*socket)->GetInfo([&](auto answer) { answers.Put(std::move(answer)); });
  ASSERT_TRUE(held.Take().has_value() || answers.size() == 1);
  socket->reset();
  // The answer has come by now; none comes later.
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers.Take()->ok());
}

}  // namespace
}  // namespace devmgr::registration
