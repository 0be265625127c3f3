// SPDX-License-Identifier: Apache-2.0
//
// DRA-026: a driver whose server closes connections that nobody uses, as gRPC's
// may be told to. The server is gRPC's own, not ours.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/status.h"
#include "dra/driver_registry.h"
#include "rpc/connection.h"
#include "support/builders.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::dra {
namespace {

constexpr int kIdleLimitMs = 500;

/// Answers every call with an empty message.
class EmptyAnswers final : public grpc::CallbackGenericService {
  class Answer final : public grpc::ServerGenericBidiReactor {
   public:
    Answer() { StartRead(&request_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::CANCELLED);
      StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer request_;
    const grpc::Slice nothing_;
    const grpc::ByteBuffer answer_{&nothing_, 1};
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Answer;
  }
};

class IdleConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + Endpoint(),
                             grpc::InsecureServerCredentials());
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleLimitMs);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
    executor_->Post([this] { Register(); });
  }

  void TearDown() override {
    executor_->Post([this] { registry_.reset(); });
    executor_->Stop();
    server_->Shutdown();
  }

  std::string Endpoint() const { return folder_.path() / "dra.sock"; }

  void Register() {
    DriverRegistryOptions options;
    options.now = [] { return WallTime(); };
    options.on_change = [this](const std::string& driver) {
      connected_.Put(registry_->IsConnected(driver));
    };
    registry_ = std::make_unique<DriverRegistry>(
        *executor_,
        [this](const auto& socket, auto on_hang_up) {
          return rpc::Dial(*runtime_, socket, std::move(on_hang_up));
        },
        options);
    EXPECT_THAT(
        registry_->Register(registration::Plugin{DriverRegistry::kPluginType,
                                                 kDriver,
                                                 Endpoint(),
                                                 {"v1.DRAPlugin"},
                                                 {}}),
        IsOk());
  }

  bool WaitUntilConnected(bool wanted) {
    for (;;) {
      const auto connected = connected_.Take();
      if (!connected.has_value()) return false;
      if (*connected == wanted) return true;
    }
  }

  /// The error of the call: one that came through has an answer that lacks the
  /// claim.
  std::string Call() {
    executor_->Post([this] {
      registry_->Unprepare(kDriver, {{ClaimUid{"u-C"}, NameOf("C")}},
                           [this](const UnprepareAnswer& answer) {
                             answers_.Put(answer.at(ClaimUid{"u-C"}));
                           });
    });
    return MessageOf(answers_.Take().value_or(absl::UnknownError("no answer")));
  }

  const TempFolder folder_;
  EmptyAnswers service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("drivers");
  std::unique_ptr<DriverRegistry> registry_;
  Mailbox<bool> connected_;
  Mailbox<absl::Status> answers_;
};

TEST_F(IdleConnectionTest, ACallAfterTheLimitConnectsAgain) {
  ASSERT_TRUE(WaitUntilConnected(true));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(WaitUntilConnected(false)) << i;
    EXPECT_THAT(Call(), testing::HasSubstr("skipped 1 ResourceClaims")) << i;
    ASSERT_TRUE(WaitUntilConnected(true)) << i;
  }
}

}  // namespace
}  // namespace devmgr::dra
