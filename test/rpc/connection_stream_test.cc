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
    auto server = Server::Start(std::move(options));
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

  /// Returns when what the stream was sent before has come, but for what has to
  /// wait at the peer.
  void AwaitArrival() {
    EXPECT_THAT(CallAndWait(*connection_, kRest, "").status(), IsOk());
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
  AwaitArrival();
  EXPECT_EQ(messages_.size(), 0u);
  connection_->ReadNext(id);
  connection_->ReadNext(id);  // One is being read.
  EXPECT_EQ(messages_.Take(), "2");
}

// Each list of a plugin says all there is to say.
TEST_F(ConnectionStreamTest, KeepsTheNewestOfWhatIsNotAskedFor) {
  const auto id = Begin({.unread = Unread::kKeepNewest});
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  constexpr int kLast = 1'000;
  for (int i = 0; i <= kLast; ++i) stream->Write(std::to_string(i));
  int before = -1;
  while (before < kLast) {
    const auto message = messages_.Take();
    ASSERT_TRUE(message.has_value()) << before;
    EXPECT_GT(std::stoi(*message), before);
    before = std::stoi(*message);
    // Takes a while.
    AwaitArrival();
    connection_->ReadNext(id);
  }
  const std::uint64_t arrived = connection_->Arrived(id);
  EXPECT_LE(arrived, std::uint64_t{kLast} + 1);
  stream->Write("");
  EXPECT_EQ(messages_.Take(), "");
  EXPECT_EQ(connection_->Arrived(id), arrived + 1);
  EXPECT_EQ(messages_.size(), 0u);
}

TEST_F(ConnectionStreamTest, JoinsWhatIsNotAskedFor) {
  const auto id = Begin({.unread = Unread::kJoin});
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  std::string all;
  for (int i = 0; i < 1'000; ++i) {
    stream->Write(std::to_string(i));
    all += std::to_string(i);
  }
  std::string heard;
  while (heard.size() < all.size()) {
    const auto message = messages_.Take();
    ASSERT_TRUE(message.has_value()) << heard;
    heard += *message;
    AwaitArrival();
    connection_->ReadNext(id);
  }
  EXPECT_EQ(heard, all);
}

// What is joined is bounded; the rest stays at the peer, and nothing is lost.
TEST_F(ConnectionStreamTest, JoinsSoMuchAndNoMore) {
  const auto id = Begin({.unread = Unread::kJoin});
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  constexpr int kMessages = 100;
  const std::string message(20'000, 'x');
  for (int i = 0; i < kMessages; ++i) stream->Write(message);
  std::size_t bytes = 0;
  while (bytes < kMessages * message.size()) {
    const auto joined = messages_.Take();
    ASSERT_TRUE(joined.has_value()) << bytes;
    EXPECT_LE(joined->size(), 256u * 1024);
    bytes += joined->size();
    AwaitArrival();
    connection_->ReadNext(id);
  }
  EXPECT_EQ(bytes, kMessages * message.size());
}

TEST_F(ConnectionStreamTest, EndsWhileItKeepsMessages) {
  for (const Unread unread : {Unread::kKeepNewest, Unread::kJoin}) {
    const auto id = Begin({.unread = unread});
    const ServerSide stream = NextStream();
    ASSERT_NE(stream, nullptr);
    stream->Write("1");
    EXPECT_EQ(messages_.Take(), "1");
    stream->Write("2");
    stream->Finish(DataLossError("the disk is gone"));
    EXPECT_EQ(End(), FromPeer(DataLossError("the disk is gone")));
    connection_->ReadNext(id);
    EXPECT_EQ(messages_.size(), 0u);
  }
}

TEST_F(ConnectionStreamTest, IsCancelledWhileItKeepsMessages) {
  const auto id = Begin({.unread = Unread::kKeepNewest});
  const ServerSide stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Write("1");
  EXPECT_EQ(messages_.Take(), "1");
  // So many that there is a pause in the reading, too.
  for (int i = 0; i < 10'000; ++i) stream->Write("2");
  connection_->ReadNext(id);
  connection_->Cancel(id);
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
  Begin({.unread = Unread::kKeepNewest});
  connection_.reset();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
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
