// SPDX-License-Identifier: Apache-2.0
//
// Long streams come whole, in both directions, also from slow ends and beside
// others; and clients may ping while they read them.
#include <atomic>

#include "cri/fixture.h"
#include "cri/pings.h"
#include "rpc/server.h"
#include "support/stream_client.h"
#include "support/test_scale.h"

namespace devmgr::cri {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMiB = 1 << 20;

/// Bytes that differ from place to place, and from one `seed` to the next.
std::string Pattern(std::uint32_t seed, std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t value = seed * 2654435761U + 1;
  for (char& byte : bytes) {
    value = value * 1664525U + 1013904223U;
    byte = static_cast<char>(value >> 24);
  }
  return bytes;
}

using StreamsTest = ProxyTest;

// Each connection sends and gets at the same time, as fast as it can.
TEST_F(StreamsTest, BothDirectionsOfManyCallersAtOnce) {
  StartBoth();
  const int rounds = 2 * TestScale();
  const auto calls = [&](std::uint32_t seed) {
    const auto client = Client();
    for (int round = 0; round < rounds; ++round) {
      std::map<std::int32_t, std::string> sent;
      for (std::uint32_t i = 0; i < 3; ++i) {
        RawSend send;
        send.headers = CallHeaders(kList);
        send.body = Message(Pattern(seed * 100 + i, 3 * kMiB + seed));
        send.piece = 1 + 5000 * i;
        if (i == 0) send.piece = 16384;
        std::string body = send.body;
        const std::int32_t stream = client->Request(std::move(send));
        sent[stream] = std::move(body);
      }
      for (const auto& [stream, body] : sent) {
        ASSERT_TRUE(client->WaitClosed(stream));
        const RawMessage answer = client->Take(stream);
        ASSERT_EQ(StatusOf(answer), "0") << answer.body_bytes;
        ASSERT_TRUE(answer.body == body)
            << answer.body.size() << " of " << body.size();
      }
    }
  };
  std::vector<std::thread> callers;
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    callers.emplace_back(calls, seed);
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(NothingLeft());
}

// gRPC C++ on both ends; 60 MiB are what the benchmark measures.
TEST_F(StreamsTest, AreWholeWithGrpcOnBothEnds) {
  const std::string message = Pattern(1, kMiB);
  rpc::ServerOptions options;
  options.socket = backend_path();
  options.streams[kEvents] = [&](const std::string&,
                                 const std::shared_ptr<rpc::ServerStream>& to) {
    for (int i = 0; i < 60; ++i) to->Write(message);
    to->Finish(absl::OkStatus());
  };
  const auto server = rpc::Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  StartProxy();
  for (int round = 0; round < 3 * TestScale(); ++round) {
    StreamClient client(listen_path(), kEvents, "", {}, 2min);
    int count = 0;
    while (const std::optional<std::string> came = client.Next()) {
      ASSERT_TRUE(*came == message) << count;
      ++count;
    }
    EXPECT_EQ(count, 60) << client.End().error_message();
    EXPECT_TRUE(client.End().ok()) << client.End().error_message();
  }
}

// BO-090: padding buys no room for what is not read.
TEST_F(StreamsTest, HoldsBackPaddedStreams) {
  const std::string body = Message(Pattern(3, 8 * kMiB));
  RawConnection::Options padded;
  padded.padding = 256;
  padded.on_event = [&](RawConnection& connection, std::int32_t stream,
                        const RawMessage& request) {
    if (!request.ended) return;
    RawSend send;
    send.headers = {{":status", "200"}};
    send.body = stream == 1 ? body : request.body;
    send.piece = 250;
    send.trailers = {{"grpc-status", "0"}};
    connection.Answer(stream, std::move(send));
  };
  StartBackend(padded);
  StartProxy();
  RawConnection::Options slow;
  slow.gives_window = false;
  slow.stream_window = 1000;
  const auto client = Client(slow);
  RawSend send;
  send.headers = CallHeaders(kList);
  send.body = Message("x");
  const std::int32_t stream = client->Request(send);
  ASSERT_TRUE(client->WaitFor(
      stream, [](const RawMessage& m) { return m.body_bytes == 1000; }));
  // Others pass meanwhile, until the runtime has sent no more for a while.
  std::size_t sent = 0;
  for (int quiet = 0; quiet < 50 && sent < body.size(); ++quiet) {
    EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
    std::size_t now = 0;
    backend_->ForEach([&](RawConnection& one) { now += one.sent(1); });
    if (now != sent) quiet = 0;
    sent = now;
  }
  EXPECT_LT(sent, 2 * kMiB);
  client->GiveWindow();
  ASSERT_TRUE(client->WaitClosed(stream));
  EXPECT_TRUE(client->Take(stream).body == body);
}

// Servers of gRPC hang up on the third ping without anything that they sent.
TEST_F(StreamsTest, TheRuntimeHearsNoMorePingsThanItStands) {
  StartBoth();
  const auto client = Client();
  RawSend send;
  send.headers = CallHeaders(kList, {{"x-do", "never"}});
  send.body = Message("x");
  client->Request(std::move(send));
  ASSERT_TRUE(Eventually([&] { return backend_->open_streams() == 1; }));
  const auto heard = [&] {
    int pings = 0;
    backend_->ForEach([&](RawConnection& one) { pings += one.pings(); });
    return pings;
  };
  for (int i = 1; i <= 10; ++i) {
    client->Ping();
    ASSERT_TRUE(Eventually([&] { return client->pongs() == i; }));
  }
  EXPECT_EQ(heard(), 1);
  // It has something to say: the next one goes there again.
  EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
  for (int i = 11; i <= 20; ++i) client->Ping();
  ASSERT_TRUE(Eventually([&] { return client->pongs() == 20; }));
  EXPECT_EQ(heard(), 2);
}

TEST(PingsTest, WhatBecomesOfPings) {
  using Way = Pings::Way;
  const Pings::Clock::time_point now{1h};
  Pings pings;
  // Without calls nobody but us is asked.
  EXPECT_EQ(pings.Come({1}, false, now), Way::kAnswer);
  EXPECT_EQ(pings.Come({2}, true, now), Way::kForward);
  EXPECT_EQ(pings.Come({3}, true, now), Way::kWait);
  EXPECT_EQ(pings.Come({4}, false, now), Way::kWait);
  // Said before the answer: perhaps before the runtime saw the ping.
  pings.RuntimeSpoke();
  EXPECT_EQ(pings.Answered(), (std::vector<http2::Ping>{{2}, {3}, {4}}));
  EXPECT_EQ(pings.Come({5}, true, now), Way::kAnswer);
  pings.RuntimeSpoke();
  EXPECT_EQ(pings.Come({6}, true, now), Way::kForward);
  EXPECT_EQ(pings.under_way(), 1U);
  EXPECT_EQ(pings.Answered(), (std::vector<http2::Ping>{{6}}));
  // A runtime that is silent is asked now and then.
  EXPECT_EQ(pings.Come({7}, true, now + 5min), Way::kAnswer);
  EXPECT_EQ(pings.Come({8}, true, now + 6min), Way::kForward);
}

}  // namespace
}  // namespace devmgr::cri
