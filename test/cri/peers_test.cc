// SPDX-License-Identifier: Apache-2.0
//
// gRPC C++ on both ends.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <future>

#include "cri/fixture.h"
#include "http2/grpc_message.h"
#include "rpc/server.h"
#include "support/status_matchers.h"
#include "support/stream_client.h"

namespace devmgr::cri {
namespace {

using namespace std::chrono_literals;

constexpr char kHang[] = "/runtime.v1.RuntimeService/ExecSync";

class PeersTest : public ProxyTest {
 protected:
  void SetUp() override {
    StartRuntime();
    StartProxy();
  }

  /// A runtime on gRPC C++.
  void StartRuntime() {
    rpc::ServerOptions options;
    options.socket = backend_path();
    options.methods[kList] = [](std::string request,
                                const rpc::Respond& respond) {
      respond(std::move(request));
    };
    options.methods[kHang] = [this](const std::string&,
                                    const rpc::Respond& respond) {
      const std::lock_guard lock(mutex_);
      hanging_.push_back(respond);
    };
    options.streams[kEvents] =
        [this](const std::string& request,
               const std::shared_ptr<rpc::ServerStream>& stream) {
          for (int i = 0; i < 10'000; ++i) stream->Write(std::to_string(i));
          if (request != "stay") return stream->Finish(absl::OkStatus());
          stream->WhenClientGone([this] { ++gone_; });
          const std::lock_guard lock(mutex_);
          staying_.push_back(stream);
        };
    absl::StatusOr<std::unique_ptr<rpc::Server>> server =
        rpc::Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::unique_ptr<rpc::Connection> Dial() {
    return *rpc::Dial(*calls_, listen_path(), [] {},
                      {.max_receive_bytes = 256 << 20});
  }

  static absl::StatusOr<std::string> CallAndWait(
      rpc::Connection& connection, const std::string& method,
      const std::string& request, std::chrono::milliseconds timeout = 30s) {
    std::promise<absl::StatusOr<std::string>> done;
    connection.Call(method, request, {timeout, {}},
                    [&](absl::StatusOr<std::string> answer) {
                      done.set_value(std::move(answer));
                    });
    return done.get_future().get();
  }

  std::size_t hanging() {
    const std::lock_guard lock(mutex_);
    return hanging_.size();
  }

  std::mutex mutex_;
  std::vector<rpc::Respond> hanging_;
  std::vector<std::shared_ptr<rpc::ServerStream>> staying_;
  std::atomic<int> gone_ = 0;
  const std::unique_ptr<rpc::Runtime> calls_ = *rpc::Runtime::Start();
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(PeersTest, UnaryCallsOfAnySize) {
  const auto client = Dial();
  for (const std::size_t size : {0UL, 1UL, 200UL, 70'000UL, 5UL << 20}) {
    const std::string request(size, 'r');
    const absl::StatusOr<std::string> answer =
        CallAndWait(*client, kList, request);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_TRUE(*answer == request) << size;
  }
}

TEST_F(PeersTest, StreamsInOrder) {
  StreamClient client(listen_path(), kEvents, "");
  for (int i = 0; i < 10'000; ++i) {
    const std::optional<std::string> message = client.Next();
    ASSERT_TRUE(message);
    ASSERT_EQ(*message, std::to_string(i));
  }
  EXPECT_FALSE(client.Next());
  EXPECT_TRUE(client.End().ok());
}

// BO-092, BO-105's kin: what the runtime lacks is its to say.
TEST_F(PeersTest, UnknownMethods) {
  const auto client = Dial();
  const absl::Status status =
      CallAndWait(*client, "/runtime.v1.RuntimeService/New", "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

// BO-093, as a whole: the runtime never answers, hears of the deadline, and
// that nobody waits any more.
TEST_F(PeersTest, DeadlinesOfCallersReachTheRuntime) {
  server_.reset();
  StartBackend();
  StreamClient client(listen_path(), kHang, "", {{"x-do", "never"}}, 700ms);
  EXPECT_EQ(client.End().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(NothingLeft());
  backend_->ForEach([](RawConnection& connection) {
    const RawMessage call = connection.Received(1);
    const auto timeout =
        http2::ParseTimeout(HeaderOf(call.headers.front(), "grpc-timeout"));
    ASSERT_TRUE(timeout);
    EXPECT_GT(*timeout, 0ms);
    // gRPC itself rounds up what it sends.
    EXPECT_LT(*timeout, 800ms);
    EXPECT_EQ(call.reset, std::uint32_t{NGHTTP2_CANCEL});
  });
}

// BO-094: long before the command would end.
TEST_F(PeersTest, ACancelledExecSyncIsCancelledAtTheRuntime) {
  server_.reset();
  StartBackend();
  StreamClient client(listen_path(), kHang, "sleep", {{"x-do", "never"}});
  ASSERT_TRUE(Eventually([&] { return backend_->open_streams() == 1; }));
  client.Cancel();
  EXPECT_EQ(client.End().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return backend_->open_streams() == 0; }));
  backend_->ForEach([](RawConnection& connection) {
    EXPECT_EQ(connection.Received(1).reset, std::uint32_t{NGHTTP2_CANCEL});
  });
  EXPECT_TRUE(NothingLeft());
}

// BO-093
TEST_F(PeersTest, DeadlinesEndTheCallAtBothEnds) {
  const auto client = Dial();
  const absl::Status status = CallAndWait(*client, kHang, "", 300ms).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_TRUE(Eventually([&] { return proxy_->Stats().calls == 0; }));
}

// BO-094
TEST_F(PeersTest, CancelsReachTheRuntime) {
  StreamClient client(listen_path(), kEvents, "stay");
  ASSERT_TRUE(client.Next());
  client.Cancel();
  EXPECT_EQ(client.End().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Eventually([&] { return gone_ == 1; }));
  EXPECT_TRUE(Eventually([&] { return proxy_->Stats().calls == 0; }));
}

// BO-101
TEST_F(PeersTest, RuntimeThatRestarts) {
  const auto client = Dial();
  StreamClient events(listen_path(), kEvents, "stay");
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(events.Next());
  std::promise<absl::Status> ended;
  client->Call(kHang, "", {30s, {}},
               [&](const absl::StatusOr<std::string>& answer) {
                 ended.set_value(answer.status());
               });
  ASSERT_TRUE(Eventually([&] { return hanging() == 1; }));
  server_.reset();
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(events.End().error_code(), grpc::StatusCode::UNAVAILABLE);
  StartRuntime();
  // A goodbye ended the old connection; new ones work at once.
  EXPECT_TRUE(
      Eventually([&] { return CallAndWait(*Dial(), kList, "again").ok(); }));
}

TEST_F(PeersTest, RuntimeThatIsAway) {
  server_.reset();
  const auto client = Dial();
  const absl::Status status = CallAndWait(*client, kList, "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(std::string(status.message()).find(backend_path().string()),
            std::string::npos)
      << status;
  // The same connection is good when the runtime is there.
  StartRuntime();
  EXPECT_TRUE(CallAndWait(*client, kList, "again").ok());
}

// A runtime killed in the middle of a message that the caller has begun to get.
TEST_F(PeersTest, MessagesThatAreCut) {
  server_.reset();
  RawConnection::Options cutting;
  cutting.on_event = [](RawConnection& connection, std::int32_t stream,
                        const RawMessage& request) {
    if (!request.ended) return;
    RawSend send;
    send.headers = {{":status", "200"}, {"content-type", "application/grpc"}};
    send.body = Message("whole") + Message("cut").substr(0, 6);
    send.open_end = true;
    connection.Answer(stream, send);
  };
  StartBackend(cutting);
  StreamClient client(listen_path(), kEvents, "");
  EXPECT_EQ(client.Next().value_or(""), "whole");
  backend_->Kill();
  EXPECT_FALSE(client.Next());
  EXPECT_EQ(client.End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace devmgr::cri
