// SPDX-License-Identifier: Apache-2.0
#include "rpc/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "common/status.h"
#include "rpc_fixture.h"

namespace devmgr::rpc {
namespace {

using std::chrono::milliseconds;

class ConnectionTest : public RpcTest {
 protected:
  /// A server whose `/t.Slow/Wait` answers nothing until the test does.
  std::unique_ptr<Server> ServeSlow() {
    return Serve({{"/t.Slow/Wait", [this](std::string, Respond respond) {
                     parked_.Put(std::move(respond));
                   }}});
  }
  Mailbox<Respond> parked_;
};

TEST_F(ConnectionTest, AnswersWhatTheServerSays) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  const Result answer = CallAndWait(*connection, "/t.Echo/Say", "hello");
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(*answer, "hello");
}

TEST_F(ConnectionTest, CarriesBytesAndEmptyMessages) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  const std::string bytes("\0\xff\n\0", 4);
  EXPECT_EQ(CallAndWait(*connection, "/t.Echo/Say", bytes).value(), bytes);
  EXPECT_EQ(CallAndWait(*connection, "/t.Echo/Say", "").value(), "");
}

TEST_F(ConnectionTest, KeepsThePeersCodeAndText) {
  const auto server = Serve({{"/t.Fail/Now", [](std::string, Respond respond) {
                                respond(DataLossError("disk 'x' is gone"));
                              }}});
  const auto connection = Connect();
  EXPECT_EQ(CallAndWait(*connection, "/t.Fail/Now", "").status(),
            DataLossError("disk 'x' is gone"));
}

TEST_F(ConnectionTest, CarriesLongErrorTexts) {
  const std::string text(20'000, 'e');
  const auto server = Serve({{"/t.Fail/Now", [&](std::string, Respond respond) {
                                respond(UnavailableError("{}", text));
                              }}});
  const auto connection = Connect();
  EXPECT_EQ(CallAndWait(*connection, "/t.Fail/Now", "").status(),
            UnavailableError("{}", text));
}

TEST_F(ConnectionTest, TellsWhoThePeerIs) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  EXPECT_EQ(connection->peer().pid, getpid());
  EXPECT_EQ(connection->peer().uid, getuid());
  EXPECT_EQ(connection->peer().gid, getgid());
}

TEST_F(ConnectionTest, CarriesConcurrentCallsFromManyThreads) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  constexpr int kThreads = 8;
  constexpr int kCalls = 50;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        const std::string text = fmt::format("{}/{}", t, i);
        const Result answer = CallAndWait(*connection, "/t.Echo/Say", text);
        if (answer.ok() && *answer == text) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kCalls);
  EXPECT_EQ(server->accepted_connections(), 1u);
}

TEST_F(ConnectionTest, HoldsManyCallsUnderWayAtOnce) {
  const auto server = ServeSlow();
  const auto connection = Connect();
  Mailbox<Result> answers;
  constexpr int kCalls = 100;
  for (int i = 0; i < kCalls; ++i) {
    connection->Call("/t.Slow/Wait", "", {kPatience},
                     [&](Result result) { answers.Put(result); });
  }
  for (int i = 0; i < kCalls; ++i) {
    auto respond = parked_.Take();
    ASSERT_TRUE(respond);
    (*respond)(std::to_string(i));
  }
  std::set<std::string> seen;
  for (int i = 0; i < kCalls; ++i) seen.insert(answers.Take().value().value());
  EXPECT_EQ(seen.size(), std::size_t{kCalls});
}

}  // namespace
}  // namespace devmgr::rpc
