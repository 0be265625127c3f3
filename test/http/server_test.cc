// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "http/raw_client.h"

namespace devmgr::http {
namespace {

using std::chrono::milliseconds;

/// A server that hands each request to the test.
class Bench {
 public:
  struct Call {
    Request request;
    std::shared_ptr<Responder> responder;
  };

  explicit Bench(Options options = {}) {
    auto server = HttpServer::Start(
        std::move(options),
        [this](Request request, std::shared_ptr<Responder> responder) {
          calls.Put({std::move(request), std::move(responder)});
        });
    EXPECT_TRUE(server.ok()) << server.status();
    if (server.ok()) server_ = *std::move(server);
  }
  ~Bench() { Stop(); }
  void Stop() {
    if (server_ != nullptr) server_->Stop();
  }

  HttpServer& server() { return *server_; }
  std::uint16_t port() const { return server_->port(); }
  Call Next() {
    std::optional<Call> call = calls.Take();
    EXPECT_TRUE(call.has_value()) << "no request came";
    return call.has_value() ? *std::move(call) : Call();
  }
  /// Until the server has that many connections.
  void AwaitConnections(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (server_->connections() != count &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(server_->connections(), count);
  }

  Mailbox<Call> calls;

 private:
  std::unique_ptr<HttpServer> server_;
};

TEST(HttpServer, AnswersSeveralRequestsOnOneConnection) {
  Bench bench;
  RawClient client(bench.port());
  client.Send(
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nX-Word:  w \r\n"
      "Content-Length: 5\r\n\r\nhello");
  auto call = bench.Next();
  EXPECT_EQ(call.request.method, "POST");
  EXPECT_EQ(call.request.target, "/a?b=c");
  EXPECT_EQ(call.request.Find("x-word"), "w");
  EXPECT_EQ(call.request.Find("none"), "");
  EXPECT_EQ(call.request.body, "hello");
  EXPECT_EQ(call.request.peer.substr(0, 10), "127.0.0.1:");
  EXPECT_FALSE(call.request.certificate.has_value());
  call.responder->Respond({201, {{"Content-Type", "text/plain"}}, "one", {}});
  EXPECT_EQ(client.ReadUntil("one"),
            "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n"
            "Content-Length: 3\r\n\r\none");
  client.Get("/2");
  bench.Next().responder->Respond({200, {}, "two", {}});
  client.ReadUntil("two");
}

TEST(HttpServer, RequestsThatComeAtOnceAreAnsweredInTurn) {
  Bench bench;
  RawClient client(bench.port());
  client.Send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n");
  auto first = bench.Next();
  EXPECT_EQ(first.request.target, "/1");
  EXPECT_EQ(bench.calls.size(), 0u);
  first.responder->Respond({200, {}, "one", {}});
  EXPECT_EQ(bench.Next().request.target, "/2");
}

TEST(HttpServer, ConnectionCloseIsKept) {
  Bench bench;
  RawClient client(bench.port());
  client.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  bench.Next().responder->Respond({200, {}, "x", {}});
  EXPECT_EQ(client.ReadAll(),
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n"
            "x");
}

TEST(HttpServer, AHeadHasNoBody) {
  Bench bench;
  RawClient client(bench.port());
  client.Send("HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n");
  bench.Next().responder->Respond({200, {}, "body", {}});
  const std::string answer = client.ReadAll();
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n") << answer;
}

TEST(HttpServer, AForgottenRequestIsAnswered500) {
  Bench bench;
  RawClient client(bench.port());
  client.Get("/");
  bench.Next();
  EXPECT_EQ(client.ReadUntil("\r\n"), "HTTP/1.1 500 Internal Server Error\r\n");
}

TEST(HttpServer, RefusesWhatIsTooLargeOrNoHttp) {
  Options options;
  options.max_body_bytes = 100;
  options.max_header_bytes = 1000;
  options.refusal = [](int status, std::string_view) {
    return Response{status, {{"X-Refused", "yes"}}, "{}", {}};
  };
  Bench bench(options);
  const auto answer = [&](const std::string& bytes) {
    RawClient client(bench.port());
    client.Send(bytes);
    const std::string text = client.ReadAll();
    EXPECT_NE(text.find("X-Refused: yes"), std::string::npos) << text;
    return text.substr(0, 12);
  };
  EXPECT_EQ(answer("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(
      answer("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" +
             std::string(0x65, 'x') + "\r\n0\r\n\r\n"),
      "HTTP/1.1 413");
  EXPECT_EQ(answer("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x')),
            "HTTP/1.1 431");
  EXPECT_EQ(answer("nonsense\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(bench.calls.size(), 0u);
}

TEST(HttpServer, ABodyAtTheLimitIsTaken) {
  Options options;
  options.max_body_bytes = 100'000;
  Bench bench(options);
  RawClient client(bench.port());
  const std::string body(100'000, 'x');
  client.Send(
      "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: "
      "100000\r\n\r\n");
  client.ReadUntil("HTTP/1.1 100 Continue\r\n\r\n");
  client.Send(body);
  EXPECT_EQ(bench.Next().request.body, body);
}

TEST(HttpServer, HeadersHaveADeadline) {
  Options options;
  options.header_timeout = milliseconds(50);
  Bench bench(options);
  RawClient client(bench.port());
  client.Send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(client.ReadAll(), "");
}

TEST(HttpServer, ABodyAndTheTimeBetweenRequestsHaveDeadlines) {
  Options options;
  options.body_timeout = milliseconds(50);
  options.idle_timeout = milliseconds(50);
  Bench bench(options);
  RawClient half(bench.port());
  half.Send("PUT / HTTP/1.1\r\nContent-Length: 10\r\n\r\nx");
  EXPECT_EQ(half.ReadAll(), "");
  RawClient idle(bench.port());
  idle.Get("/");
  bench.Next().responder->Respond({200, {}, "done", {}});
  EXPECT_NE(idle.ReadAll().find("done"), std::string::npos);
}

TEST(HttpServer, ASlowHandlerHasNoDeadline) {
  Options options;
  options.header_timeout = options.body_timeout = options.idle_timeout =
      milliseconds(20);
  Bench bench(options);
  RawClient client(bench.port());
  client.Get("/");
  auto call = bench.Next();
  bench.server().PostAfter(milliseconds(100), [responder = call.responder] {
    responder->Respond({200, {}, "late", {}});
  });
  client.ReadUntil("late");
}

TEST(HttpServer, ConnectionsAreCounted) {
  Options options;
  options.max_connections = 2;
  Bench bench(options);
  RawClient first(bench.port());
  RawClient second(bench.port());
  bench.AwaitConnections(2);
  RawClient third(bench.port());
  EXPECT_EQ(third.ReadAll(), "");
  first.Close();
  bench.AwaitConnections(1);
  RawClient fourth(bench.port());
  fourth.Get("/");
  bench.Next().responder->Respond({200, {}, "in", {}});
  fourth.ReadUntil("in");
}

/// A stream whose events the test sees.
struct Stream {
  explicit Stream(Responder& responder,
                  std::vector<Header> headers = {{"X", "y"}}) {
    writer = responder.Stream(
        200, std::move(headers),
        {[this] { drained.Put(true); }, [this] { closed.Put(true); }});
  }
  Mailbox<bool> drained;
  Mailbox<bool> closed;
  std::shared_ptr<StreamWriter> writer;
};

TEST(HttpStream, HeadersLeaveAtOnceAndChunksFollow) {
  Bench bench;
  RawClient client(bench.port());
  client.Get("/");
  auto call = bench.Next();
  Stream stream(*call.responder);
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_TRUE(stream.drained.Take().has_value());
  EXPECT_TRUE(stream.writer->Write("hello\n"));
  EXPECT_EQ(client.ReadUntil("\n\r\n"), "6\r\nhello\n\r\n");
  EXPECT_TRUE(stream.drained.Take().has_value());
  EXPECT_EQ(stream.writer->pending(), 0u);
  stream.writer->End();
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
  EXPECT_TRUE(stream.closed.Take().has_value());
  EXPECT_FALSE(stream.writer->Write("more"));
  // The connection lives on.
  client.Get("/again");
  EXPECT_EQ(bench.Next().request.target, "/again");
  bench.Stop();
}

TEST(HttpStream, AnOldClientGetsNoChunks) {
  Bench bench;
  RawClient client(bench.port());
  client.Send("GET / HTTP/1.0\r\n\r\n");
  Stream stream(*bench.Next().responder, {});
  stream.writer->Write("hello");
  stream.writer->End();
  EXPECT_EQ(client.ReadAll(),
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
  bench.Stop();
}

// API-051, the server's side.
TEST(HttpStream, AClientThatLeavesAQuietStreamIsNoticed) {
  Bench bench;
  RawClient client(bench.port());
  client.Get("/");
  auto call = bench.Next();
  Stream stream(*call.responder);
  client.ReadUntil("\r\n\r\n");
  EXPECT_EQ(stream.closed.size(), 0u);
  client.Close();
  EXPECT_TRUE(stream.closed.Take().has_value());
  EXPECT_FALSE(stream.writer->Write("x"));
  bench.AwaitConnections(0);
  bench.Stop();
}

TEST(HttpStream, AClientThatDoesNotReadHoldsBackTheWriterOnly) {
  Bench bench;
  RawClient slow(bench.port(), /*receive_buffer=*/4096);
  slow.Send("GET /slow HTTP/1.1\r\nConnection: close\r\n\r\n");
  Stream stalled(*bench.Next().responder);
  EXPECT_TRUE(stalled.drained.Take().has_value());
  // More than the sockets take. At once: they may take the first of several
  // before the next one comes.
  stalled.writer->Write(std::string(16u << 20, 'x'));
  RawClient other(bench.port());
  other.Get("/other");
  bench.Next().responder->Respond({200, {}, "served", {}});
  other.ReadUntil("served");
  EXPECT_GT(stalled.writer->pending(), 0u);
  EXPECT_EQ(stalled.drained.size(), 0u);
  stalled.writer->End();
  EXPECT_GT(slow.ReadAll().size(), 16u << 20);
  bench.Stop();
}

TEST(HttpStream, WhatIsEndedAndNotTakenIsCutOff) {
  Options options;
  options.drain_timeout = milliseconds(50);
  Bench bench(options);
  RawClient slow(bench.port(), /*receive_buffer=*/4096);
  slow.Get("/");
  Stream stream(*bench.Next().responder);
  for (int i = 0; i < 16; ++i) stream.writer->Write(std::string(1u << 20, 'x'));
  stream.writer->End();
  EXPECT_TRUE(stream.closed.Take().has_value());
  bench.AwaitConnections(0);
  bench.Stop();
}

TEST(HttpStream, ACutEndsInTheMiddle) {
  Bench bench;
  RawClient client(bench.port());
  client.Get("/");
  Stream stream(*bench.Next().responder, {});
  stream.writer->Write("half");
  stream.writer->Cut();
  const std::string answer = client.ReadAll();
  EXPECT_EQ(answer.substr(answer.size() - 9), "4\r\nhalf\r\n");
  bench.Stop();
}

TEST(HttpServer, AnAnswerIsCutAfterSoManyBytes) {
  Bench bench;
  RawClient client(bench.port());
  client.Get("/");
  bench.Next().responder->Respond({200, {}, "body", 10});
  EXPECT_EQ(client.ReadAll(), "HTTP/1.1 2");
}

TEST(HttpServer, ASilentConnectionStaysUntilTheStop) {
  Bench bench;
  RawClient client(bench.port());
  client.Get("/");
  bench.Next().responder->FallSilent();
  RawClient other(bench.port());
  other.Get("/");
  bench.Next().responder->Respond({200, {}, "x", {}});
  other.ReadUntil("x");
  EXPECT_EQ(bench.server().connections(), 2u);
  bench.Stop();
  EXPECT_EQ(client.ReadAll(), "");
}

TEST(HttpServer, AStopClosesStreamsAndLeavesHandlesHarmless) {
  Bench bench;
  RawClient client(bench.port());
  client.Get("/");
  auto call = bench.Next();
  Stream stream(*call.responder);
  client.ReadUntil("\r\n\r\n");
  RawClient waiting(bench.port());
  waiting.Get("/");
  auto unanswered = bench.Next();
  bench.server().PostAfter(std::chrono::hours(1), [] {});
  bench.Stop();
  EXPECT_EQ(stream.closed.size(), 1u);
  EXPECT_EQ(client.ReadAll(), "");
  EXPECT_FALSE(stream.writer->Write("x"));
  EXPECT_FALSE(unanswered.responder->connected());
  unanswered.responder->Respond({200, {}, "late", {}});
  stream.writer->End();
}

TEST(HttpServer, WhatCannotBeListenedAtIsRefused) {
  Bench bench;
  const auto start = [](Options options) {
    return HttpServer::Start(std::move(options), nullptr).status();
  };
  Options options;
  options.port = bench.port();
  EXPECT_TRUE(absl::IsUnavailable(start(options)));
  options = {};
  options.address = "localhost";
  EXPECT_TRUE(absl::IsInvalidArgument(start(options)));
  options = {};
  options.tls = Tls{"/nonexistent", "/nonexistent", ""};
  EXPECT_TRUE(absl::IsInvalidArgument(start(options)));
}

TEST(HttpAddresses, HaveOnePortTogether) {
  Options options;
  options.further_addresses = {"127.0.0.2", "::1", "198.51.100.1"};
  const auto server = HttpServer::Start(
      options, [](const Request&, const std::shared_ptr<Responder>& responder) {
        responder->Respond({200, {}, "here", {}});
      });
  ASSERT_TRUE(server.ok()) << server.status();
  // An address that this host does not have is left out.
  const auto reaches = [&](std::uint32_t host) {
    const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons((*server)->port());
    address.sin_addr.s_addr = htonl(host);
    return ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                     sizeof(address)) == 0;
  };
  EXPECT_TRUE(reaches(INADDR_LOOPBACK));
  EXPECT_TRUE(reaches(INADDR_LOOPBACK + 1));
  EXPECT_FALSE(reaches(INADDR_LOOPBACK + 2));
  options.further_addresses = {"nonsense"};
  EXPECT_TRUE(
      absl::IsInvalidArgument(HttpServer::Start(options, nullptr).status()));
}

}  // namespace
}  // namespace devmgr::http
