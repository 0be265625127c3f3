// SPDX-License-Identifier: Apache-2.0
//
// The calling side of calls that are answered by a stream of messages.
#include <thread>
#include <utility>
#include <vector>

#include "common/peer_status.h"
#include "common/status.h"
#include "rpc/server.h"
#include "rpc_fixture.h"
#include "support/status_matchers.h"

namespace devmgr::rpc {
namespace {

using std::chrono::milliseconds;
using ServerSide = std::shared_ptr<ServerStream>;
constexpr char kRest[] = "/t.Watch/Rest";

class ConnectionStreamTest : public RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    ServerOptions options;
    options.socket = Path();
    options.methods[kRest] = [](std::string request, Respond respond) {
      respond(std::move(request));
    };
    options.streams[kStreamMethod] = [this](std::string request,
                                            ServerSide stream) {
      requests_.Put(std::move(request));
      stream->WhenClientGone([this] { gone_.Put(true); });
      streams_.Put(std::move(stream));
    };
    auto server = Server::Start(*runtime_, std::move(options));
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    connection_ = Connect();
  }

  Connection::CallId Begin(Connection::CallOptions options = {}) {
    return connection_->Stream(
        kStreamMethod, "begin", std::move(options),
        {[this](std::string message) { messages_.Put(std::move(message)); },
         [this](absl::Status status) { ends_.Put(std::move(status)); }});
  }

  ServerSide NextStream() { return streams_.Take().value_or(nullptr); }
  absl::Status End() {
    return ends_.Take().value_or(InternalError("the stream did not end"));
  }

  Mailbox<std::string> requests_;
  Mailbox<ServerSide> streams_;
  Mailbox<bool> gone_;
  Mailbox<std::string> messages_;
  Mailbox<absl::Status> ends_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionStreamTest, ReadsMessagesInOrderAndTheEnd) {
  const auto id = Begin();
  EXPECT_EQ(requests_.Take(), "begin");
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  constexpr int kMessages = 100;
  for (int i = 0; i < kMessages; ++i) stream->Write(std::to_string(i));
  stream->Write("");
  stream->Finish(absl::OkStatus());
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(messages_.Take(), std::to_string(i));
    connection_->ReadNext(id);
  }
  EXPECT_EQ(messages_.Take(), "");
  connection_->ReadNext(id);
  EXPECT_THAT(End(), IsOk());
  connection_->ReadNext(id);
  connection_->Cancel(id);
  EXPECT_EQ(ends_.size(), 0u);
}

// DP-058: a list is done with before the next one is read.
TEST_F(ConnectionStreamTest, ReadsOnWhenAskedOnly) {
  const auto id = Begin();
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Write("1");
  stream->Write("2");
  EXPECT_EQ(messages_.Take(), "1");
  // What comes later on the same connection has overtaken it.
  EXPECT_THAT(CallAndWait(*connection_, kRest, "").status(), IsOk());
  EXPECT_EQ(messages_.size(), 0u);
  connection_->ReadNext(id);
  connection_->ReadNext(id);  // One is being read.
  EXPECT_EQ(messages_.Take(), "2");
}

TEST_F(ConnectionStreamTest, EndsWithThePeersCodeAndText) {
  Begin();
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Finish(DataLossError("disk 'x' is gone"));
  EXPECT_EQ(End(), FromPeer(DataLossError("disk 'x' is gone")));
}

TEST_F(ConnectionStreamTest, EndsWhenThereIsNoSuchMethod) {
  connection_->Stream(
      "/t.Watch/None", "", {},
      {[](std::string) {}, [this](absl::Status status) { ends_.Put(status); }});
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(ConnectionStreamTest, EndsAtItsDeadlineIfItHasOne) {
  Begin({milliseconds(50)});
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(ConnectionStreamTest, IsCancelledWhileItReads) {
  const auto id = Begin();
  const ServerSide stream = NextStream();
  connection_->Cancel(id);
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(gone_.Take());
}

TEST_F(ConnectionStreamTest, IsCancelledBetweenTwoMessages) {
  const auto id = Begin();
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Write("1");
  EXPECT_EQ(messages_.Take(), "1");
  connection_->Cancel(id);
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(gone_.Take());
}

TEST_F(ConnectionStreamTest, MayBeCancelledFromOnMessage) {
  connection_->Stream(kStreamMethod, "", {},
                      {[this](std::string message) {
                         messages_.Put(std::move(message));
                         connection_->Cancel(1);
                       },
                       [this](absl::Status status) { ends_.Put(status); }});
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Write("1");
  stream->Write("2");
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(messages_.size(), 1u);
}

TEST_F(ConnectionStreamTest, EndsWhenThePeerHangsUp) {
  Begin();
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  server_.reset();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ConnectionStreamTest, AnOverConnectionBeginsNone) {
  server_.reset();
  // Known without being told: the peer's end is closed by now.
  for (int i = 0; i < 1000 && !connection_->over(); ++i) {
    CallAndWait(*connection_, kRest, "", milliseconds(20)).IgnoreError();
  }
  ASSERT_TRUE(connection_->over());
  Begin();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ConnectionStreamTest, EndsBeforeTheConnectionIsGone) {
  // One that reads, one between two messages, one that has just begun.
  Begin();
  const ServerSide reading = NextStream();
  Begin();
  const ServerSide idle = NextStream();
  ASSERT_NE(idle, nullptr);
  idle->Write("1");
  EXPECT_EQ(messages_.Take(), "1");
  Begin();
  connection_.reset();
  EXPECT_EQ(ends_.size(), 3u);
}

TEST_F(ConnectionStreamTest, FreesWhatItCapturedBeforeTheConnectionIsGone) {
  const auto captured = std::make_shared<int>(0);
  connection_->Stream(
      kStreamMethod, "", {},
      {[captured](std::string) {}, [captured](absl::Status) {}});
  const ServerSide stream = NextStream();
  connection_.reset();
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_F(ConnectionStreamTest, SendsMetadataWithStreamsAndCalls) {
  Begin({milliseconds(0), {{"devmgr-pod-uid", "u-1"}, {"devmgr-b", ""}}});
  ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->metadata().at("devmgr-pod-uid"), "u-1");
  EXPECT_EQ(stream->metadata().at("devmgr-b"), "");

  Mailbox<Result> answers;
  connection_->Call(kStreamMethod, "", {kPatience, {{"devmgr-pod-uid", "u-2"}}},
                    [&](Result answer) { answers.Put(std::move(answer)); });
  stream = NextStream();
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->metadata().at("devmgr-pod-uid"), "u-2");
  stream->Write("answer");
  stream->Finish(absl::OkStatus());
  EXPECT_EQ(answers.Take().value().value(), "answer");
}

TEST_F(ConnectionStreamTest, RefusesMetadataThatCannotBeSent) {
  using Metadata = std::pair<std::string, std::string>;
  for (const Metadata& bad :
       {Metadata("", "v"), Metadata("Upper", "v"), Metadata("a b", "v"),
        Metadata("grpc-timeout", "1S"), Metadata("x-bin", "v"),
        Metadata("x", "\n"), Metadata("x", "\xc3\xa4"),
        Metadata("x", std::string(1, '\0'))}) {
    Mailbox<Result> answers;
    connection_->Call(kRest, "", {kPatience, {bad}},
                      [&](Result answer) { answers.Put(std::move(answer)); });
    EXPECT_THAT(answers.Take().value().status(),
                StatusIs(absl::StatusCode::kInvalidArgument));
    Begin({milliseconds(0), {bad}});
    EXPECT_THAT(End(), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(ConnectionStreamTest, TakesMessagesUpToTheLimitOfTheDial) {
  const std::string large(20 * 1024 * 1024, 'x');
  for (const int limit : {kMaxReceiveBytes, 2 * kMaxReceiveBytes}) {
    auto connection = Dial(*runtime_, Path(), {}, {limit});
    ASSERT_THAT(connection.status(), IsOk());
    connection_ = *std::move(connection);
    Begin();
    const ServerSide stream = NextStream();
    ASSERT_NE(stream, nullptr);
    stream->Write(large);
    if (limit == kMaxReceiveBytes) {
      EXPECT_THAT(End(), StatusIs(absl::StatusCode::kResourceExhausted));
    } else {
      EXPECT_EQ(messages_.Take(), large);
    }
  }
}

TEST_F(ConnectionStreamTest, ComesAndGoesWhileOthersCancel) {
  for (int i = 0; i < 50; ++i) {
    const auto id = Begin();
    std::thread canceller([&] { connection_->Cancel(id); });
    std::thread reader([&] { connection_->ReadNext(id); });
    canceller.join();
    reader.join();
    EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_EQ(messages_.size(), 0u);
}

}  // namespace
}  // namespace devmgr::rpc
