// SPDX-License-Identifier: Apache-2.0
//
// Calls that are answered by a stream of messages.
#include <grpcpp/support/byte_buffer.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/peer_status.h"
#include "common/status.h"
#include "rpc/runtime.h"
#include "rpc/server.h"
#include "rpc_fixture.h"
#include "support/stream_client.h"

namespace devmgr::rpc {
namespace {

using Stream = std::shared_ptr<ServerStream>;

class ServerStreamTest : public RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    ServeAnew();
  }

  void ServeAnew() {
    ServeStreams([this](std::string request, Stream stream) {
      requests_.Put(std::move(request));
      stream->WhenClientGone([this] { gone_.Put(true); });
      streams_.Put(std::move(stream));
    });
  }

  void ServeStreams(StreamHandler handler) {
    server_.reset();
    ServerOptions options;
    options.socket = Path();
    options.methods["/t.Watch/Say"] = [](std::string request, Respond respond) {
      respond(std::move(request));
    };
    options.streams[kStreamMethod] = std::move(handler);
    auto server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }

  Stream NextStream() { return streams_.Take().value_or(nullptr); }

  Mailbox<std::string> requests_;
  Mailbox<Stream> streams_;
  Mailbox<bool> gone_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerStreamTest, CarriesMessagesInOrderAndTheEnd) {
  StreamClient client(Path(), kStreamMethod, "begin");
  EXPECT_EQ(requests_.Take(), "begin");
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Write("first");
  EXPECT_EQ(client.Next(), "first");
  for (int i = 0; i < 100; ++i) stream->Write(std::to_string(i));
  stream->Write("");
  stream->Finish(absl::OkStatus());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.Next(), std::to_string(i));
  EXPECT_EQ(client.Next(), "");
  EXPECT_EQ(client.Next(), std::nullopt);
  EXPECT_TRUE(client.End().ok());
}

// A long answer that many clients ask for is in memory once.
TEST_F(ServerStreamTest, KeepsAMessageForAsLongAsItIsSent) {
  const auto message = std::make_shared<const std::string>(1'000'000, 'x');
  StreamClient client(Path(), kStreamMethod, "");
  {
    const Stream stream = NextStream();
    ASSERT_NE(stream, nullptr);
    Mailbox<int> taken;
    stream->Write(message);
    EXPECT_EQ(client.Next(), *message);
    stream->WhenTaken([&] { taken.Put(1); });
    EXPECT_EQ(taken.Take(), 1);
    stream->Finish(absl::OkStatus());
  }
  EXPECT_TRUE(client.End().ok());
  server_.reset();
  EXPECT_EQ(message.use_count(), 1);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(ToByteBuffer(message).Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(reinterpret_cast<const char*>(slices[0].begin()), message->data());
}

TEST_F(ServerStreamTest, EndsWithoutAMessage) {
  StreamClient client(Path(), kStreamMethod, "");
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Finish(absl::OkStatus());
  EXPECT_EQ(client.Next(), std::nullopt);
  EXPECT_TRUE(client.End().ok());
}

TEST_F(ServerStreamTest, EndsWithAnErrorAfterItsMessages) {
  StreamClient client(Path(), kStreamMethod, "");
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Write("last words");
  stream->Finish(DataLossError("burnt"));
  EXPECT_EQ(client.Next(), "last words");
  EXPECT_EQ(client.Next(), std::nullopt);
  EXPECT_EQ(client.End().error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(client.End().error_message(), "burnt");
}

TEST_F(ServerStreamTest, TakesNothingAfterItsEnd) {
  StreamClient client(Path(), kStreamMethod, "");
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Finish(absl::OkStatus());
  stream->Finish(InternalError("twice"));
  stream->Write("late");
  EXPECT_EQ(client.Next(), std::nullopt);
  EXPECT_TRUE(client.End().ok());
}

TEST_F(ServerStreamTest, SpeaksUpForAHandlerThatLetsGo) {
  ServeStreams([](const std::string&, const Stream& stream) {
    stream->Write("something");
  });
  StreamClient client(Path(), kStreamMethod, "");
  EXPECT_EQ(client.Next(), "something");
  EXPECT_EQ(client.Next(), std::nullopt);
  EXPECT_EQ(client.End().error_code(), grpc::StatusCode::INTERNAL);
}

TEST_F(ServerStreamTest, TellsWhenTheClientIsGone) {
  Stream stream;
  {
    StreamClient client(Path(), kStreamMethod, "");
    stream = NextStream();
    ASSERT_NE(stream, nullptr);
    stream->Write("hello");
    EXPECT_EQ(client.Next(), "hello");
    EXPECT_EQ(gone_.size(), 0u);
  }
  EXPECT_TRUE(gone_.Take());
  // Harmless, and told to who asks late.
  stream->Write("anybody?");
  stream->WhenClientGone([this] { gone_.Put(false); });
  EXPECT_EQ(gone_.Take(), false);
  stream->Finish(absl::OkStatus());
}

TEST_F(ServerStreamTest, DoesNotTellOfItsOwnEnd) {
  {
    StreamClient client(Path(), kStreamMethod, "");
    const Stream stream = NextStream();
    ASSERT_NE(stream, nullptr);
    stream->Finish(absl::OkStatus());
    EXPECT_TRUE(client.End().ok());
  }
  server_.reset();
  EXPECT_EQ(gone_.size(), 0u);
}

TEST_F(ServerStreamTest, HandsOnWhatTheClientSentAlong) {
  const StreamClient client(Path(), kStreamMethod, "",
                            {{"devmgr-pod-uid", "u1"}});
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  const auto found = stream->metadata().find("devmgr-pod-uid");
  ASSERT_NE(found, stream->metadata().end());
  EXPECT_EQ(found->second, "u1");
}

TEST_F(ServerStreamTest, GivesUpAClientThatDoesNotRead) {
  const StreamClient client(Path(), kStreamMethod, "");
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  const std::string big(8 * 1024 * 1024, 'b');
  for (int i = 0; i < 16 && gone_.size() == 0; ++i) stream->Write(big);
  EXPECT_TRUE(gone_.Take());
}

TEST_F(ServerStreamTest, TellsWhenAllThatWasWrittenIsTaken) {
  StreamClient client(Path(), kStreamMethod, "");
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  Mailbox<int> taken;
  stream->WhenTaken([&] { taken.Put(1); });
  EXPECT_EQ(taken.size(), 1u);  // Nothing was written.
  const std::string big(4 * 1024 * 1024, 'b');
  for (int i = 0; i < 4; ++i) stream->Write(big);
  stream->WhenTaken([&] { taken.Put(2); });
  EXPECT_EQ(taken.size(), 1u);  // It waits for the client.
  for (int i = 0; i < 4; ++i) EXPECT_EQ(client.Next(), big);
  EXPECT_EQ(taken.Take(), 1);
  EXPECT_EQ(taken.Take(), 2);
  stream->Finish(absl::OkStatus());
  stream->WhenTaken([&] { taken.Put(3); });
  EXPECT_TRUE(client.End().ok());
  EXPECT_EQ(taken.size(), 0u);
}

TEST_F(ServerStreamTest, KnowsWhoHasConnected) {
  const StreamClient client(Path(), kStreamMethod, "");
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  ASSERT_TRUE(stream->caller().has_value());
  EXPECT_EQ(stream->caller()->pid, getpid());
  EXPECT_EQ(stream->caller()->uid, geteuid());
}

TEST_F(ServerStreamTest, GoesQuicklyWithOpenStreams) {
  std::vector<std::unique_ptr<StreamClient>> clients;
  std::vector<Stream> streams;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(
        std::make_unique<StreamClient>(Path(), kStreamMethod, ""));
    streams.push_back(NextStream());
    ASSERT_NE(streams.back(), nullptr);
    // Some are read from, some are stuck in the middle of a message.
    streams.back()->Write(std::string(i % 2 == 0 ? 1 : 4 * 1024 * 1024, 'm'));
  }
  const auto begin = std::chrono::steady_clock::now();
  server_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(2000));
  for (const auto& client : clients) {
    EXPECT_FALSE(client->End().ok());
  }
  // Too late, and harmless.
  for (const Stream& stream : streams) stream->Write("late");
}

// The client is ours: it reads while the server goes.
TEST_F(ServerStreamTest, GoesAfterAnEndThatIsOnItsWay) {
  for (int i = 0; i < 20; ++i) {
    const auto connection = Connect();
    Mailbox<Result> answers;
    connection->Call(kStreamMethod, "", {kPatience},
                     [&](Result result) { answers.Put(std::move(result)); });
    const Stream stream = NextStream();
    ASSERT_NE(stream, nullptr);
    stream->Write("last words");
    stream->Finish(absl::OkStatus());
    server_.reset();
    const Result answer = answers.Take().value();
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_EQ(*answer, "last words");
    ServeAnew();
  }
}

TEST_F(ServerStreamTest, GoesWhileMessagesAreWrittenAndClientsLeave) {
  for (int i = 0; i < 20; ++i) {
    auto client = std::make_unique<StreamClient>(Path(), kStreamMethod, "");
    const Stream stream = NextStream();
    ASSERT_NE(stream, nullptr);
    std::thread writer([stream] {
      for (int message = 0; message < 100; ++message) stream->Write("m");
      stream->Finish(absl::OkStatus());
    });
    std::thread leaver([&client] { client.reset(); });
    if (i % 2 == 0) server_.reset();
    writer.join();
    leaver.join();
    if (i % 2 == 0) ServeAnew();
  }
}

TEST_F(ServerStreamTest, AnswersUnaryCallsBeside) {
  const StreamClient client(Path(), kStreamMethod, "");
  const auto connection = Connect();
  EXPECT_EQ(CallAndWait(*connection, "/t.Watch/Say", "x").value(), "x");
  EXPECT_EQ(
      CallAndWait(*connection, "/t.Watch/Sing", "x").status(),
      FromPeer(UnimplementedError("unknown method Sing for service t.Watch")));
}

// A client that expects one answer takes a stream of one.
TEST_F(ServerStreamTest, MayAnswerAUnaryCall) {
  const auto connection = Connect();
  Mailbox<Result> answers;
  connection->Call(kStreamMethod, "", {kPatience},
                   [&](Result result) { answers.Put(std::move(result)); });
  const Stream stream = NextStream();
  ASSERT_NE(stream, nullptr);
  stream->Write("one");
  stream->Finish(absl::OkStatus());
  EXPECT_EQ(answers.Take().value().value(), "one");
}

}  // namespace
}  // namespace devmgr::rpc
