// SPDX-License-Identifier: Apache-2.0
//
// More clients, calls or descriptors than a server has room for.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "rpc/server.h"
#include "server_fixture.h"

namespace devmgr::rpc {
namespace {

using std::chrono::milliseconds;
using ServerLimitsTest = ServerTest;

// They took all descriptors of the process, before.
TEST_F(ServerLimitsTest, ClientsThatSayNothingKeepNobodyOut) {
  ServerOptions options;
  options.socket = Path();
  options.max_connections = 3;
  std::atomic<std::size_t> told = 0;
  options.on_turned_away = [&told](const std::string& why) {
    EXPECT_EQ(
        why, "3 clients are connected, which is the limit; one was hung up on");
    ++told;
  };
  options.methods["/t.Echo/Say"] = [](std::string request, Respond respond) {
    respond(std::move(request));
  };
  const auto server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  const auto first = Connect();
  ASSERT_TRUE(CallAndWait(*first, "/t.Echo/Say", "x").ok());
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 20; ++i) {
    UniqueFd fd = NewSocket();
    ASSERT_TRUE(ConnectRaw(fd, Path()));
    silent.push_back(std::move(fd));
  }
  const auto second = Connect();
  EXPECT_TRUE(CallAndWait(*second, "/t.Echo/Say", "x").ok());
  // The oldest of those had to go, and no one that calls.
  char byte = 0;
  while (read(silent.front().get(), &byte, 1) > 0) {
  }
  EXPECT_TRUE(CallAndWait(*first, "/t.Echo/Say", "x").ok());
  EXPECT_GE((*server)->turned_away(), 19u);
  EXPECT_EQ(told, (*server)->turned_away());
  const auto third = Connect();
  EXPECT_TRUE(CallAndWait(*third, "/t.Echo/Say", "x").ok());
  // Nor does one give way to others that came later.
  const auto fourth = Connect();
  EXPECT_FALSE(CallAndWait(*fourth, "/t.Echo/Say", "x").ok());
  EXPECT_TRUE(CallAndWait(*second, "/t.Echo/Say", "x").ok());
}

TEST_F(ServerLimitsTest, ClientsThatGoMakeRoom) {
  ServerOptions options;
  options.socket = Path();
  options.max_connections = 2;
  options.methods["/t.Echo/Say"] = [](std::string request, Respond respond) {
    respond(std::move(request));
  };
  const auto server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stays = Connect();
  ASSERT_TRUE(CallAndWait(*stays, "/t.Echo/Say", "x").ok());
  for (int i = 0; i < 20; ++i) {
    // One that is gone may be noticed a moment later.
    absl::Status status;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    do {
      status = CallError("/t.Echo/Say");
    } while (!status.ok() && std::chrono::steady_clock::now() < end);
    ASSERT_TRUE(status.ok()) << status;
  }
}

/// A server that handles two calls of a client at a time.
class TwoAtATimeTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    ServerOptions options;
    options.socket = Path();
    options.max_calls = 2;
    options.methods["/t.Slow/Wait"] = park_;
    auto server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    connection_ = Connect();
  }

  void Call(int times, milliseconds timeout = kPatience) {
    for (int i = 0; i < times; ++i) {
      connection_->Call("/t.Slow/Wait", "", {timeout}, [this](Result result) {
        answers_.Put(std::move(result));
      });
    }
  }

  Mailbox<Result> answers_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Connection> connection_;
};

// gRPC bounds only clients that have read its settings. While it was told this
// bound, calls right after a connection were refused; and when one was begun
// just before its client read the bound, the connection ended.
TEST_F(TwoAtATimeTest, CallsBeyondThatWaitForTheirTurn) {
  constexpr int kCalls = 400;
  Call(kCalls);
  for (int i = 0; i < kCalls; i += 2) {
    const auto one = parked_.Take();
    const auto other = parked_.Take();
    ASSERT_TRUE(one.has_value() && other.has_value()) << i;
    EXPECT_EQ(parked_.size(), 0u);
    (*one)("done");
    (*other)("done");
  }
  for (int i = 0; i < kCalls; ++i) {
    const auto answer = answers_.Take();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(*answer, Result("done"));
  }
}

TEST_F(TwoAtATimeTest, CallsThatWaitEndWithTheServer) {
  Call(20);
  const auto one = parked_.Take();
  const auto other = parked_.Take();
  server_.reset();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(answers_.Take().value_or(Result("none")).status().code(),
              absl::StatusCode::kUnavailable);
  }
}

TEST_F(TwoAtATimeTest, AClientThatGoesLeavesNothingBehind) {
  Call(20);
  const auto one = parked_.Take();
  const auto other = parked_.Take();
  connection_ = Connect();
  EXPECT_EQ(answers_.size(), 20u);
  // They end at once, those that are handled and those that wait.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (server_->open_calls() > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(server_->open_calls(), 0u);
  // Another client has turns of its own, whatever is left of the first.
  Call(1);
  const auto third = parked_.Take();
  ASSERT_TRUE(third.has_value());
  (*third)("done");
  (*one)("late");
  (*other)("late");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(answers_.Take()->ok());
  EXPECT_EQ(*answers_.Take(), Result("done"));
  server_.reset();
  EXPECT_EQ(parked_.size(), 0u);
}

TEST_F(TwoAtATimeTest, ACallThatWaitsTooLongEndsAndHoldsUpNoOther) {
  Call(2);
  const auto one = parked_.Take();
  const auto other = parked_.Take();
  Call(5, milliseconds(50));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(answers_.Take()->status().code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  Call(1);
  (*one)("done");
  (*other)("done");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(*answers_.Take(), Result("done"));
  // One of those that are over may come before it.
  for (;;) {
    const auto next = parked_.Take();
    ASSERT_TRUE(next.has_value());
    (*next)("last");
    if (const auto answer = answers_.Take(milliseconds(100))) {
      EXPECT_EQ(*answer, Result("last"));
      break;
    }
  }
}

TEST_F(ServerLimitsTest, TurnsClientsAwayWhenDescriptorsRunOut) {
  const auto server = ServeEcho();
  const auto before = Connect();
  ASSERT_TRUE(CallAndWait(*before, "/t.Echo/Say", "").ok());
  // Connected by hand, so that the limit hits the server alone.
  const UniqueFd client = NewSocket();
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit none = limit;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool connected = ConnectRaw(client, Path());
  char byte = 0;
  const ssize_t size = recv(client.get(), &byte, 1, MSG_DONTWAIT);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_TRUE(connected);
  EXPECT_LE(size, 0);
  // Turned away or accepted late: the server works either way.
  EXPECT_TRUE(CallAndWait(*before, "/t.Echo/Say", "").ok());
  EXPECT_EQ(CallError("/t.Echo/Say"), absl::OkStatus());
}

}  // namespace
}  // namespace devmgr::rpc
