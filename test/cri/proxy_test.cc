// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "cri/fixture.h"
#include "rpc/unix_socket.h"
#include "support/raw_frames.h"

namespace devmgr::cri {
namespace {

using namespace std::chrono_literals;

// BO-088, BO-089: no method and no service has to be known.
TEST_F(ProxyTest, PassesMethodsNobodyKnows) {
  StartBoth();
  const auto client = Client();
  const std::string body = Message(std::string(1 << 20, 'b'));
  for (const char* method : {"/runtime.v1.RuntimeService/NotYetInvented",
                             "/acme.v9.Unheard/Of", "no path at all"}) {
    const RawMessage answer = Call(*client, method, {}, body);
    EXPECT_EQ(StatusOf(answer), "0");
    EXPECT_EQ(answer.body, body);
  }
}

// BO-090: a slow caller holds its own call back, not the proxy's memory.
TEST_F(ProxyTest, HoldsBackAStreamThatIsNotRead) {
  StartBoth();
  RawConnection::Options slow;
  slow.gives_window = false;
  slow.stream_window = 65535;
  const auto client = Client(slow);
  RawSend send;
  send.headers = CallHeaders(
      kList, {{"x-do", "stream"}, {"x-count", "10000"}, {"x-size", "1000"}});
  const std::int32_t stream = client->Request(send);
  ASSERT_TRUE(client->WaitFor(
      stream, [](const RawMessage& m) { return m.body_bytes == 65535; }));
  // Others are not held up meanwhile.
  EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
  client->GiveWindow();
  ASSERT_TRUE(client->WaitClosed(stream));
  const RawMessage answer = client->Received(stream);
  EXPECT_EQ(answer.body_bytes, 10000U * 1005);
  EXPECT_EQ(StatusOf(answer), "0");
}

// BO-091: code, text, details and trailers are the runtime's.
TEST_F(ProxyTest, PassesErrorsAsTheyAre) {
  options_.intercept = {kCreate};
  StartBoth();
  const auto client = Client();
  for (const char* method : {kList, kCreate}) {
    const RawMessage answer = Call(*client, method,
                                   {{"x-do", "error"},
                                    {"x-code", "5"},
                                    {"x-text", "no %E2%82%AC here"},
                                    {"x-echo", "a trailer"}});
    const RawHeaders expected = {{":status", "200"},
                                 {"content-type", "application/grpc"},
                                 {"x-echo", "a trailer"},
                                 {"grpc-status", "5"},
                                 {"grpc-message", "no %E2%82%AC here"},
                                 {"grpc-status-details-bin", "CAUSAQ"}};
    ASSERT_EQ(answer.headers.size(), 1U) << method;
    EXPECT_EQ(answer.headers.front(), expected);
  }
  ASSERT_EQ(interceptor_.ends().size(), 1U);
  const CriOutcome outcome = interceptor_.ends().front().second;
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(outcome.status.message()), "no \u20ac here");
  EXPECT_TRUE(outcome.answered);
}

// BO-092
TEST_F(ProxyTest, PassesUnimplementedOfAStream) {
  StartBoth();
  const RawMessage answer =
      Call(*Client(), "/runtime.v1.RuntimeService/StreamContainers",
           {{"x-do", "error"}, {"x-code", "12"}, {"x-text", "unknown method"}});
  EXPECT_EQ(StatusOf(answer), "12");
  EXPECT_EQ(TextOf(answer), "unknown method");
}

// BO-093: the runtime hears the deadline that the caller has.
TEST_F(ProxyTest, PassesTheDeadline) {
  StartBoth();
  const auto client = Client();
  const RawMessage answer =
      Call(*client, kList, {{"grpc-timeout", "700m"}, {"x-do", "echo"}});
  EXPECT_EQ(StatusOf(answer), "0");
  std::string seen;
  backend_->ForEach([&](RawConnection& connection) {
    seen = HeaderOf(connection.Received(1).headers.front(), "grpc-timeout");
  });
  EXPECT_EQ(seen, "700m");
}

// BO-094: who gives up is heard of.
TEST_F(ProxyTest, PassesResetsUp) {
  StartBoth();
  const auto client = Client();
  RawSend send;
  send.headers = CallHeaders(kList, {{"x-do", "never"}});
  send.body = Message("question");
  const std::int32_t stream = client->Request(send);
  ASSERT_TRUE(Eventually([&] { return backend_->open_streams() == 1; }));
  client->Reset(stream, NGHTTP2_CANCEL);
  EXPECT_TRUE(NothingLeft());
  backend_->ForEach([&](RawConnection& connection) {
    EXPECT_EQ(connection.Received(1).reset, std::uint32_t{NGHTTP2_CANCEL});
  });
}

TEST_F(ProxyTest, PassesResetsDownAfterWhatWasSaidBefore) {
  StartBoth();
  const auto client = Client();
  for (const char* code : {"1", "7", "8", "11"}) {
    RawMessage answer =
        Call(*client, kList, {{"x-do", "half"}, {"x-code", code}});
    EXPECT_EQ(answer.body, Message("half"));
    EXPECT_EQ(StatusOf(answer), std::string("reset ") + code);
    answer = Call(*client, kList, {{"x-do", "reset"}, {"x-code", code}});
    EXPECT_EQ(StatusOf(answer), std::string("reset ") + code);
  }
  EXPECT_TRUE(NothingLeft());
}

// BO-095
TEST_F(ProxyTest, PassesLargeAnswers) {
  StartBoth();
  const RawMessage answer =
      Call(*Client(), kList,
           {{"x-do", "stream"}, {"x-count", "1"}, {"x-size", "67108864"}});
  EXPECT_EQ(StatusOf(answer), "0");
  EXPECT_EQ(answer.body_bytes, 67108864U + 5);
}

// BO-105: what an Exec returns, the URL of a stream, is the runtime's.
TEST_F(ProxyTest, PassesTheUrlOfAnExec) {
  StartBoth();
  // ExecResponse {url}; the runtime of these tests answers what it is asked.
  const std::string url = "http://[::1]:41873/exec/\xe2\x82\xac?t=a%2Fb&c=1#x";
  std::string response = "\x0a";
  response.push_back(static_cast<char>(url.size()));
  response += url;
  const RawMessage answer =
      Call(*Client(), "/runtime.v1.RuntimeService/Exec", {}, Message(response));
  EXPECT_EQ(StatusOf(answer), "0");
  EXPECT_EQ(answer.body, Message(response));
}

// BO-102
TEST_F(ProxyTest, ReplacesAStaleSocketAndNoOther) {
  StartBackend();
  { RawServer stale(listen_path(), Runtime()); }
  StartProxy();
  EXPECT_EQ(StatusOf(Call(*Client(), kList)), "0");
  CriProxyOptions second = options_;
  const absl::Status refused = CriProxy::Start(second).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(StatusOf(Call(*Client(), kList)), "0");
}

TEST_F(ProxyTest, HasTheRightsOfTheRuntimesSocket) {
  StartBackend();
  ASSERT_EQ(chmod(backend_path().c_str(), 0606), 0);
  StartProxy();
  struct stat status {};
  ASSERT_EQ(stat(listen_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0606U);
  proxy_.reset();
  EXPECT_NE(stat(listen_path().c_str(), &status), 0) << "the file stays";
  options_.mode = 0600;
  StartProxy();
  ASSERT_EQ(stat(listen_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

// The runtime makes its socket first and sets its rights then.
TEST_F(ProxyTest, HasTheRightsOfARuntimeThatComesLater) {
  StartProxy();
  const auto has_mode = [&](mode_t mode) {
    struct stat status {};
    return stat(listen_path().c_str(), &status) == 0 &&
           (status.st_mode & 0777U) == mode;
  };
  EXPECT_TRUE(has_mode(0660));
  StartBackend();
  ASSERT_EQ(chmod(backend_path().c_str(), 0606), 0);
  EXPECT_TRUE(Eventually([&] { return has_mode(0606); }));
  ASSERT_EQ(chmod(backend_path().c_str(), 0604), 0);
  EXPECT_TRUE(Eventually([&] { return has_mode(0604); }));
  // One that comes back, and had served somebody.
  const auto client = Client();
  EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
  backend_.reset();
  StartBackend();
  ASSERT_EQ(chmod(backend_path().c_str(), 0602), 0);
  EXPECT_TRUE(Eventually([&] { return has_mode(0602); }));
}

TEST_F(ProxyTest, KeepsTheModeThatItWasGiven) {
  options_.mode = 0600;
  StartProxy();
  StartBackend();
  ASSERT_EQ(chmod(backend_path().c_str(), 0606), 0);
  EXPECT_EQ(StatusOf(Call(*Client(), kList)), "0");
  struct stat status {};
  ASSERT_EQ(stat(listen_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(ProxyTest, TellsThatItCannotHaveTheRuntimesRights) {
  options_.intercept = {kCreate};
  StartProxy();
  // Somebody else's file stands there by now.
  ASSERT_TRUE(std::filesystem::remove(listen_path()));
  StartBackend();
  ASSERT_TRUE(Eventually([&] { return !interceptor_.story().empty(); }));
  EXPECT_THAT(interceptor_.story().front(),
              testing::AllOf(testing::HasSubstr("rights not taken"),
                             testing::HasSubstr(listen_path().string()),
                             testing::HasSubstr(backend_path().string())));
}

// The caller gets our answer, and not its own deadline.
TEST_F(ProxyTest, VersionIsAnsweredBeforeItsCallersDeadline) {
  options_.version_patience = 600s;
  StartProxy();
  const RawMessage answer =
      Call(*Client(), "/runtime.v1.RuntimeService/Version",
           {{"grpc-timeout", "600m"}});
  EXPECT_EQ(StatusOf(answer), "14");
  EXPECT_NE(TextOf(answer).find(backend_path().string()), std::string::npos);
}

TEST_F(ProxyTest, SaysThatTheRuntimeIsAway) {
  options_.version_patience = 50ms;
  StartProxy();
  const auto client = Client();
  RawMessage answer = Call(*client, kList);
  EXPECT_EQ(StatusOf(answer), "14");
  EXPECT_NE(TextOf(answer).find(backend_path().string()), std::string::npos);
  answer = Call(*client, "/runtime.v1.RuntimeService/Version");
  EXPECT_EQ(StatusOf(answer), "14");
  // The same caller is served as soon as it is there.
  StartBackend();
  EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
}

TEST_F(ProxyTest, VersionWaitsForTheRuntime) {
  options_.version_patience = 30s;
  StartProxy();
  const auto client = Client();
  RawSend send;
  send.headers = CallHeaders("/runtime.v1.RuntimeService/Version");
  send.body = Message("v");
  const std::int32_t stream = client->Request(send);
  EXPECT_EQ(StatusOf(Call(*client, kList)), "14");
  StartBackend();
  ASSERT_TRUE(client->WaitClosed(stream));
  EXPECT_EQ(StatusOf(client->Received(stream)), "0");
}

// BO-101, and a runtime that dies in the middle of each kind of call.
TEST_F(ProxyTest, EndsCallsWhenTheRuntimeDies) {
  options_.intercept = {kCreate};
  StartBoth();
  const auto client = Client();
  const auto begin = [&](const char* method, const RawHeaders& headers,
                         bool open_end) {
    RawSend send;
    send.headers = CallHeaders(method, headers);
    send.body = Message("x");
    send.open_end = open_end;
    return client->Request(send);
  };
  const std::vector<std::int32_t> streams = {
      begin(kList, {{"x-do", "never"}}, false),
      begin(kList, {{"x-do", "never"}}, true),
      begin(kCreate, {{"x-do", "never"}}, false)};
  ASSERT_TRUE(Eventually([&] { return backend_->open_streams() == 3; }));
  backend_->Kill();
  for (const std::int32_t stream : streams) {
    ASSERT_TRUE(client->WaitClosed(stream));
    const RawMessage answer = client->Received(stream);
    ASSERT_FALSE(answer.headers.empty());
    EXPECT_EQ(HeaderOf(answer.headers.back(), "grpc-status"), "14");
  }
  EXPECT_EQ(StatusOf(Call(*client, kList)), "14");
  StartBackend();
  EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
  EXPECT_EQ(proxy_->Stats().backend_losses, 1U);
  const std::vector<std::string> story = interceptor_.story();
  ASSERT_EQ(story.size(), 3U);
  EXPECT_EQ(story[0], "connected");
  EXPECT_EQ(story[2], "connected");
  const auto ends = interceptor_.ends();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].second.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(ends[0].second.forwarded);
  EXPECT_FALSE(ends[0].second.answered);
}

TEST_F(ProxyTest, EndsStreamsWhenTheRuntimeDies) {
  RawConnection::Options events;
  events.on_event = [](RawConnection& connection, std::int32_t stream,
                       const RawMessage& request) {
    if (!request.ended) return;
    RawSend send;
    send.headers = {{":status", "200"}};
    send.body = Message("event") + Message("event");
    if (HeaderOf(request.headers[0], "x-do") == "half") {
      send.body.append(2, '\0');  // The beginning of another message.
    }
    send.open_end = true;
    connection.Answer(stream, send);
  };
  StartBackend(events);
  StartProxy();
  for (const bool in_the_middle : {false, true}) {
    const auto client = Client();
    RawSend send;
    send.headers = CallHeaders("/runtime.v1.RuntimeService/GetContainerEvents",
                               {{"x-do", in_the_middle ? "half" : "whole"}});
    const std::int32_t stream = client->Request(send);
    const std::size_t expected = in_the_middle ? 22 : 20;
    ASSERT_TRUE(client->WaitFor(
        stream, [&](const RawMessage& m) { return m.body_bytes >= expected; }));
    backend_->Kill();
    ASSERT_TRUE(client->WaitClosed(stream));
    const RawMessage answer = client->Received(stream);
    EXPECT_EQ(answer.body.substr(0, 20), Message("event") + Message("event"));
    if (!answer.lost) {
      EXPECT_EQ(StatusOf(answer), "14");
    }
    StartBackend(events);
  }
}

TEST_F(ProxyTest, StopsAtOnceUnderLoad) {
  options_.intercept = {kCreate};
  std::vector<CriInterceptor::Decide> kept;
  interceptor_.on_call = [&](const CriCall&,
                             const CriInterceptor::Decide& decide) {
    kept.push_back(decide);
  };
  StartBackend();
  const int before = OpenDescriptors();
  StartProxy();
  std::vector<std::unique_ptr<RawConnection>> clients;
  std::vector<std::int32_t> streams;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(Client());
    RawSend send;
    send.headers =
        CallHeaders(i % 2 == 0 ? kList : kCreate, {{"x-do", "never"}});
    send.body = Message("x");
    streams.push_back(clients.back()->Request(send));
  }
  ASSERT_TRUE(Eventually([&] {
    return backend_->open_streams() == 10 && interceptor_.calls().size() == 10;
  }));
  const auto begin = std::chrono::steady_clock::now();
  proxy_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(clients[i]->WaitClosed(streams[i]));
    EXPECT_EQ(StatusOf(clients[i]->Received(streams[i])), "14");
  }
  EXPECT_EQ(interceptor_.ends().size(), 10U);
  clients.clear();
  EXPECT_TRUE(Eventually([&] { return backend_->connections() == 0; }));
  // Connections that are over keep the eventfd of their thread in this test.
  backend_->Kill();
  EXPECT_LE(OpenDescriptors(), before);
}

TEST_F(ProxyTest, PassesPings) {
  StartBoth();
  const auto client = Client();
  EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
  client->Ping();
  client->Ping();
  EXPECT_TRUE(Eventually([&] { return client->pongs() == 2; }));
  backend_->ForEach([](RawConnection& connection) { connection.Ping(); });
  EXPECT_TRUE(Eventually([&] {
    int pongs = 0;
    backend_->ForEach(
        [&](RawConnection& connection) { pongs += connection.pongs(); });
    return pongs == 1;
  }));
}

TEST_F(ProxyTest, PassesGoodbyes) {
  StartBoth();
  const auto client = Client();
  RawSend send;
  send.headers = CallHeaders(kList, {{"x-do", "never"}});
  send.body = Message("x");
  send.open_end = true;
  const std::int32_t open = client->Request(send);
  ASSERT_TRUE(Eventually([&] { return backend_->open_streams() == 1; }));
  backend_->ForEach([](RawConnection& connection) {
    connection.Goaway(NGHTTP2_ENHANCE_YOUR_CALM, false);
  });
  EXPECT_TRUE(Eventually([&] { return client->goaway().has_value(); }));
  EXPECT_EQ(client->goaway(), std::uint32_t{NGHTTP2_ENHANCE_YOUR_CALM});
  // Calls under way go on; the connection ends with the last one.
  EXPECT_FALSE(client->Received(open).closed);
  client->Reset(open, NGHTTP2_CANCEL);
  EXPECT_TRUE(Eventually([&] { return client->over(); }));
  EXPECT_TRUE(Eventually([&] { return proxy_->Stats().connections == 0; }));
  EXPECT_EQ(StatusOf(Call(*Client(), kList)), "0");
}

TEST_F(ProxyTest, TellsTheRuntimesLimitOfCalls) {
  RawConnection::Options few = Runtime();
  few.max_streams = 7;
  StartBackend(few);
  StartProxy();
  const auto client = Client();
  EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
  EXPECT_EQ(client->peer_max_streams(), 7U);
}

TEST_F(ProxyTest, HangsUpOnTooManyCallers) {
  options_.max_connections = 2;
  options_.interceptor = &interceptor_;
  StartBoth();
  const auto first = Client();
  const auto second = Client();
  ASSERT_EQ(StatusOf(Call(*first, kList)), "0");
  ASSERT_EQ(StatusOf(Call(*second, kList)), "0");
  const auto third = Client();
  EXPECT_TRUE(Eventually([&] { return third->over(); }));
  EXPECT_EQ(StatusOf(Call(*first, kList)), "0");
  EXPECT_EQ(proxy_->Stats().turned_away, 1U);
  EXPECT_THAT(interceptor_.story(),
              testing::Contains("turned away: 2 callers are connected, which "
                                "is the limit; one was hung up on")
                  .Times(1));
}

// They kept all others out, before.
TEST_F(ProxyTest, CallersThatAskNothingMakeWay) {
  options_.max_connections = 3;
  StartBoth();
  const auto first = Client();
  ASSERT_EQ(StatusOf(Call(*first, kList)), "0");
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(Client());
  const auto second = Client();
  EXPECT_EQ(StatusOf(Call(*second, kList)), "0");
  EXPECT_TRUE(Eventually([&] { return silent.front()->over(); }));
  EXPECT_EQ(StatusOf(Call(*first, kList)), "0");
  EXPECT_LE(proxy_->Stats().connections, 3U);
  EXPECT_GE(proxy_->Stats().turned_away, 18U);
}

TEST_F(ProxyTest, HangsUpOnWhoeverDoesNotSpeakHttp2) {
  StartBoth();
  for (const char* said : {"GET / HTTP/1.1\r\n\r\n", "",
                           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff"
                           "\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    absl::StatusOr<UniqueFd> fd = rpc::ConnectUnix(listen_path());
    ASSERT_TRUE(fd.ok());
    const std::string bytes = said;
    ASSERT_EQ(send(fd->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  EXPECT_TRUE(Eventually([&] { return proxy_->Stats().connections == 0; }));
  EXPECT_EQ(StatusOf(Call(*Client(), kList)), "0");
  EXPECT_TRUE(Eventually([&] { return backend_->connections() == 0; }));
}

// Each was a connection to the runtime as well.
TEST_F(ProxyTest, WhoeverHasSaidHalfAGreetingCostsTheRuntimeNothing) {
  StartBoth();
  const std::string greeting = Greeting();
  const auto say = [](const UniqueFd& fd, std::string_view bytes) {
    return send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  };
  std::vector<UniqueFd> callers;
  for (const std::size_t size : {0, 1, 24, 29}) {
    callers.push_back(rpc::ConnectUnix(listen_path()).value());
    ASSERT_TRUE(say(callers.back(), greeting.substr(0, size)));
  }
  // It came later, and so those were heard.
  const auto other = Client();
  EXPECT_EQ(StatusOf(Call(*other, kList)), "0");
  EXPECT_EQ(proxy_->Stats().backend_connects, 1U);
  // One of them goes on, a byte at a time.
  for (const char c : greeting.substr(24)) {
    ASSERT_TRUE(say(callers[2], {&c, 1}));
  }
  ASSERT_TRUE(say(callers[2], CallFrames(1, kList, "x")));
  EXPECT_TRUE(Eventually([&] { return proxy_->Stats().total_calls == 2; }));
  EXPECT_EQ(proxy_->Stats().backend_connects, 2U);
}

TEST_F(ProxyTest, ChecksItsOptions) {
  CriProxyOptions options;
  options.intercept = {kCreate};
  options.max_held_bytes = 0;
  const absl::Status status = CriProxy::Start(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"listen", "backend", "interceptor", "held"}) {
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos)
        << part;
  }
}

/// Next to nothing on the wire, but 3 kB each where it is read.
RawHeaders Bomb(std::size_t count) {
  return RawHeaders(count, {"x-echo", std::string(3000, 'b')});
}
constexpr std::uint32_t kCalm = NGHTTP2_ENHANCE_YOUR_CALM;

TEST_F(ProxyTest, ResetsCallsWithTooManyHeaders) {
  StartBoth();
  const auto client = Client();
  RawSend other;
  other.headers = CallHeaders(kList, {{"x-do", "never"}});
  other.body = Message("x");
  const std::int32_t waiting = client->Request(other);
  EXPECT_EQ(Call(*client, kList, Bomb(3000)).reset, kCalm);
  // Below the limit, and the same table of compression, on the same connection.
  EXPECT_EQ(StatusOf(Call(*client, kList, Bomb(300))), "0");
  EXPECT_FALSE(client->Received(waiting).closed);
  client->Reset(waiting, NGHTTP2_CANCEL);
  EXPECT_TRUE(NothingLeft());
}

TEST_F(ProxyTest, ResetsAnswersWithTooManyHeaders) {
  RawConnection::Options runtime;
  runtime.on_event = [](RawConnection& connection, std::int32_t stream,
                        const RawMessage& request) {
    if (!request.ended) return;
    const bool is_bad = HeaderOf(request.headers.front(), "x-do") == "trailers";
    RawSend send;
    send.headers = {{":status", "200"}, {"content-type", "application/grpc"}};
    send.body = Message("answer");
    send.trailers = Bomb(is_bad ? 3000 : 3);
    send.trailers.emplace_back("grpc-status", "0");
    if (HeaderOf(request.headers.front(), "x-do") == "headers") {
      const RawHeaders bomb = Bomb(3000);
      send.headers.insert(send.headers.end(), bomb.begin(), bomb.end());
    }
    connection.Answer(stream, std::move(send));
  };
  StartBackend(runtime);
  StartProxy();
  const auto client = Client();
  for (const char* where : {"headers", "trailers"}) {
    EXPECT_EQ(Call(*client, kList, {{"x-do", where}}).reset, kCalm) << where;
    EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
  }
  EXPECT_TRUE(NothingLeft());
}

}  // namespace
}  // namespace devmgr::cri
