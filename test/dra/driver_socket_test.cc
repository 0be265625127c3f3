// SPDX-License-Identifier: Apache-2.0
//
// Drivers on real sockets: how often they are connected to, when, and for how
// long they are waited for.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/executor.h"
#include "common/peer_status.h"
#include "common/status.h"
#include "devmgr/wire/dra/v1/dra.pb.h"
#include "dra/driver_registry.h"
#include "rpc/connection.h"
#include "rpc/runtime.h"
#include "support/builders.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"
#include "support/temp_folder.h"

namespace devmgr::dra {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
namespace v1 = wire::dra::v1;

/// Prepares each claim that it is asked for, with one device; or answers
/// nothing before the caller gives up.
class OneDevice final : public grpc::CallbackGenericService {
 public:
  std::atomic<bool> blocks{false};
  std::atomic<bool> saw_deadline{false};
  std::atomic<grpc::StatusCode> refuses_with{grpc::StatusCode::OK};

 private:
  class Answer final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Answer(const OneDevice& service) : service_(service) {
      StartRead(&request_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return GiveUp();
      if (service_.blocks) return;
      if (service_.refuses_with != grpc::StatusCode::OK) {
        return Finish({service_.refuses_with, "not now"});
      }
      v1::NodePrepareResourcesRequest request;
      EXPECT_TRUE(request.ParseFromString(Bytes(request_)));
      v1::NodePrepareResourcesResponse response;
      for (const auto& claim : request.claims()) {
        auto* device = (*response.mutable_claims())[claim.uid()].add_devices();
        device->set_pool_name("pool-1");
        device->set_device_name("dev-1");
      }
      const grpc::Slice slice(response.SerializeAsString());
      answer_ = grpc::ByteBuffer(&slice, 1);
      StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
    }
    void OnCancel() override {
      if (service_.blocks) GiveUp();
    }
    void OnDone() override { delete this; }

   private:
    /// A call that is cancelled while it is read is told both.
    void GiveUp() {
      if (!finished_.exchange(true)) Finish(grpc::Status::CANCELLED);
    }
    static std::string Bytes(const grpc::ByteBuffer& buffer) {
      std::vector<grpc::Slice> slices;
      EXPECT_TRUE(buffer.Dump(&slices).ok());
      std::string bytes;
      for (const grpc::Slice& slice : slices) {
        bytes.append(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
      }
      return bytes;
    }

    const OneDevice& service_;
    std::atomic<bool> finished_{false};
    grpc::ByteBuffer request_;
    grpc::ByteBuffer answer_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    saw_deadline = context->deadline() <
                   std::chrono::system_clock::now() + std::chrono::hours(1);
    return new Answer(*this);
  }
};

class DriverSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    auto runtime = rpc::Runtime::Start();
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
  }
  void TearDown() override {
    executor_->Post([this] { registry_.reset(); });
    executor_->Stop();
    if (server_ != nullptr) server_->Shutdown();
  }

  std::string Endpoint() const { return folder_.path() / "dra.sock"; }

  /// The service; where it does not listen itself, connections are given to it.
  void Serve(bool listen) {
    grpc::ServerBuilder builder;
    if (listen) {
      builder.AddListeningPort("unix:" + Endpoint(),
                               grpc::InsecureServerCredentials());
    }
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  void Register(const std::string& registration_socket,
                milliseconds limit = milliseconds(30'000)) {
    executor_->Post([this, registration_socket, limit] {
      DriverRegistryOptions options;
      options.instance.call_timeout = limit;
      options.now = [] { return WallTime(); };
      options.on_change = [this](const std::string& driver) {
        if (registry_->IsConnected(driver)) connected_.Put(true);
      };
      registry_ = std::make_unique<DriverRegistry>(
          *executor_,
          [this](const auto& socket, auto on_hang_up) {
            auto connection =
                rpc::Dial(*runtime_, socket, std::move(on_hang_up));
            dialed_.Put(connection.ok());
            return connection;
          },
          options);
      EXPECT_THAT(registry_->Register({DriverRegistry::kPluginType,
                                       kDriver,
                                       Endpoint(),
                                       {"v1.DRAPlugin"},
                                       registration_socket}),
                  IsOk());
    });
  }

  absl::Status Prepare(const std::string& claim) {
    const ClaimUid uid{"u-" + claim};
    executor_->Post([this, claim, uid] {
      registry_->Prepare(kDriver, {{uid, NameOf(claim)}},
                         [this, uid](const PrepareAnswer& answer) {
                           answers_.Put(answer.at(uid).status());
                         });
    });
    return answers_.Take().value_or(absl::UnknownError("no answer"));
  }

  const TempFolder folder_;
  OneDevice service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<rpc::Runtime> runtime_;
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("drivers");
  std::unique_ptr<DriverRegistry> registry_;
  Mailbox<bool> dialed_;
  Mailbox<bool> connected_;
  Mailbox<absl::Status> answers_;
};

/// A listener that counts, and gives what it accepts to a server.
class CountingListener {
 public:
  CountingListener(const std::string& path, grpc::Server& server)
      : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(
        bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
        0);
    EXPECT_EQ(listen(fd_, 8), 0);
    thread_ = std::thread([this, &server] {
      for (;;) {
        const int connection =
            accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (connection < 0) return;  // Shut down.
        ++accepted_;
        grpc::AddInsecureChannelFromFd(&server, connection);
      }
    });
  }
  ~CountingListener() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  int accepted() const { return accepted_; }

 private:
  const int fd_;
  std::atomic<int> accepted_{0};
  std::thread thread_;
};

// DRA-024
TEST_F(DriverSocketTest, OneConnectionServesPodAfterPod) {
  Serve(/*listen=*/false);
  const CountingListener listener(Endpoint(), *server_);
  Register("");
  for (const char* claim : {"C", "D"}) {
    EXPECT_THAT(Prepare(claim), IsOk()) << claim;
  }
  EXPECT_EQ(listener.accepted(), 1);
}

// DRA-025
TEST_F(DriverSocketTest, AServiceThatListensLaterIsCalledThen) {
  Register(folder_.path() / "reg.sock");
  ASSERT_EQ(dialed_.Take(), false);
  Serve(/*listen=*/true);
  ASSERT_TRUE(connected_.Take().has_value());
  EXPECT_THAT(Prepare("C"), IsOk());
}

TEST_F(DriverSocketTest, SoIsOneOnTheSocketOfTheRegistration) {
  Register(Endpoint());
  ASSERT_EQ(dialed_.Take(), false);
  Serve(/*listen=*/true);
  ASSERT_TRUE(connected_.Take().has_value());
  EXPECT_THAT(Prepare("C"), IsOk());
}

// DRA-027
TEST_F(DriverSocketTest, ACallHasADeadlineThatTheDriverSees) {
  service_.blocks = true;
  Serve(/*listen=*/true);
  Register("", milliseconds(20));
  const absl::Status status = Prepare("C");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               HasSubstr("NodePrepareResources: ")));
  EXPECT_FALSE(IsFromPeer(status));
}

// Each of these may also be what becomes of a call that got lost.
TEST_F(DriverSocketTest, WhatTheDriverItselfAnswersIsItsAnswer) {
  Serve(/*listen=*/true);
  Register("");
  ASSERT_THAT(Prepare("C"), IsOk());
  for (const auto code :
       {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::RESOURCE_EXHAUSTED,
        grpc::StatusCode::DEADLINE_EXCEEDED}) {
    service_.refuses_with = code;
    for (int i = 0; i < 4; ++i) {
      const absl::Status status = Prepare("C");
      EXPECT_EQ(status.raw_code(), code);
      EXPECT_TRUE(IsFromPeer(status)) << status;
      EXPECT_THAT(MessageOf(status), HasSubstr("the driver answered with"));
      EXPECT_THAT(MessageOf(status), HasSubstr("not now"));
    }
  }
  // It was neither left alone, nor dialled again.
  service_.refuses_with = grpc::StatusCode::OK;
  EXPECT_THAT(Prepare("C"), IsOk());
  EXPECT_EQ(dialed_.Take(), true);
  EXPECT_EQ(dialed_.size(), 0u);
}

// The same where the call surely reaches the driver before its time is up.
TEST_F(DriverSocketTest, TheDeadlineTravelsWithTheCall) {
  Serve(/*listen=*/true);
  Register("");
  EXPECT_THAT(Prepare("C"), IsOk());
  EXPECT_TRUE(service_.saw_deadline);
}

}  // namespace
}  // namespace devmgr::dra
