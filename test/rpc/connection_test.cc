// SPDX-License-Identifier: Apache-2.0
#include "rpc/connection.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "common/peer_status.h"
#include "common/status.h"
#include "rpc_fixture.h"
#include "support/unprivileged.h"

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
            FromPeer(DataLossError("disk 'x' is gone")));
}

// gRPC itself uses these codes, too.
TEST_F(ConnectionTest, TellsWhatThePeerAnsweredFromALostCall) {
  absl::Status answer;
  const auto server = Serve({{"/t.Fail/Now", [&](std::string, Respond respond) {
                                respond(answer);
                              }}});
  const auto connection = Connect();
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted,
        absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kCancelled,
        absl::StatusCode::kAborted}) {
    answer = MakeStatus(code, "not now");
    EXPECT_EQ(CallAndWait(*connection, "/t.Fail/Now", "").status(),
              FromPeer(answer));
  }
  EXPECT_TRUE(
      IsFromPeer(CallAndWait(*connection, "/t.Fail/Other", "").status()));
  EXPECT_FALSE(IsFromPeer(
      CallAndWait(*connection, "/t.Fail/Now", "", milliseconds(0)).status()));
}

TEST_F(ConnectionTest, CarriesLongErrorTexts) {
  const std::string text(20'000, 'e');
  const auto server = Serve({{"/t.Fail/Now", [&](std::string, Respond respond) {
                                respond(UnavailableError("{}", text));
                              }}});
  const auto connection = Connect();
  EXPECT_EQ(CallAndWait(*connection, "/t.Fail/Now", "").status(),
            FromPeer(UnavailableError("{}", text)));
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

TEST_F(ConnectionTest, EndsACallAtItsDeadline) {
  const auto server = ServeSlow();
  const auto connection = Connect();
  const auto begin = std::chrono::steady_clock::now();
  const Result answer =
      CallAndWait(*connection, "/t.Slow/Wait", "", milliseconds(50));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(MessageOf(answer.status()), "no answer within 50 ms");
  EXPECT_FALSE(IsFromPeer(answer.status()));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(45));
  EXPECT_FALSE(connection->over());
}

// A peer that gives up when we do has words of its own, which do not say how
// long that was.
TEST_F(ConnectionTest, ADeadlineThatThePeerNoticedFirstSaysAfterHowLong) {
  const auto server =
      Serve({{"/t.Slow/Wait", [](std::string, Respond respond) {
                respond(DeadlineExceededError("context deadline exceeded"));
              }}});
  const auto connection = Connect();
  const Result answer =
      CallAndWait(*connection, "/t.Slow/Wait", "", milliseconds(40));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(IsFromPeer(answer.status()));
  // On a busy machine it may be our own deadline after all.
  EXPECT_THAT(
      MessageOf(answer.status()),
      testing::AnyOf("no answer within 40 ms: context deadline exceeded",
                     "no answer within 40 ms"));
}

TEST_F(ConnectionTest, EndsACallAtItsDeadlineWhenThePeerNeverSpeaks) {
  RawPeer peer(Path(), /*listens=*/true);
  const auto connection = Connect();
  const Result answer =
      CallAndWait(*connection, "/t.Slow/Wait", "", milliseconds(50));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ConnectionTest, RefusesACallWithoutATimeout) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  const Result answer =
      CallAndWait(*connection, "/t.Echo/Say", "", milliseconds(0));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ConnectionTest, TakesTheLongestTimeout) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  Mailbox<Result> answers;
  connection->Call("/t.Echo/Say", "x", {milliseconds::max()},
                   [&](Result result) { answers.Put(result); });
  EXPECT_EQ(answers.Take().value().value(), "x");
}

TEST_F(ConnectionTest, CancelsOneCallAndNoOther) {
  const auto server = ServeSlow();
  const auto connection = Connect();
  Mailbox<Result> first;
  Mailbox<Result> second;
  const auto id = connection->Call("/t.Slow/Wait", "", {kPatience},
                                   [&](Result result) { first.Put(result); });
  connection->Call("/t.Slow/Wait", "", {kPatience},
                   [&](Result result) { second.Put(result); });
  auto one = parked_.Take();
  auto two = parked_.Take();
  ASSERT_TRUE(one && two);
  connection->Cancel(id);
  EXPECT_EQ(first.Take().value().status().code(), absl::StatusCode::kCancelled);
  // Both are answered; the cancelled one does not care.
  (*one)("late");
  (*two)("late");
  EXPECT_EQ(second.Take().value().value(), "late");
  connection->Cancel(id);
  connection->Cancel(4711);
  EXPECT_EQ(first.size(), 0u);
}

TEST_F(ConnectionTest, LetsDoneCallAndCancel) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  Mailbox<Result> answers;
  connection->Call("/t.Echo/Say", "1", {kPatience}, [&](const Result&) {
    const auto id =
        connection->Call("/t.Echo/Say", "2", {kPatience},
                         [&](Result result) { answers.Put(result); });
    connection->Cancel(id);
  });
  const Result answer = answers.Take().value();
  EXPECT_TRUE(answer.ok() || absl::IsCancelled(answer.status()));
}

TEST_F(ConnectionTest, EndsPendingCallsBeforeItIsGone) {
  const auto server = ServeSlow();
  auto connection = Connect();
  std::vector<absl::StatusCode> codes;
  constexpr int kCalls = 20;
  std::mutex mutex;
  for (int i = 0; i < kCalls; ++i) {
    connection->Call("/t.Slow/Wait", "", {kPatience}, [&](Result result) {
      const std::lock_guard lock(mutex);
      codes.push_back(result.status().code());
    });
  }
  connection.reset();
  // No lock: nothing may run any more.
  EXPECT_EQ(codes, std::vector(kCalls, absl::StatusCode::kCancelled));
}

TEST_F(ConnectionTest, FreesWhatDoneCapturedBeforeItIsGone) {
  const auto server = ServeEcho();
  for (int i = 0; i < 100; ++i) {
    auto connection = Connect();
    std::weak_ptr<int> captured;
    {
      const auto owned = std::make_shared<int>(1);
      captured = owned;
      connection->Call("/t.Echo/Say", "", {kPatience},
                       [owned](const Result&) {});
    }
    connection.reset();
    ASSERT_TRUE(captured.expired());
  }
}

TEST_F(ConnectionTest, ThePeerSeesItsEndAtOnce) {
  RawPeer peer(Path(), /*listens=*/true);
  auto connection = Connect();
  const UniqueFd accepted = peer.Accept();
  connection.reset();
  char buffer[4096];
  // First what gRPC says by itself, then the end.
  ssize_t size = 0;
  while ((size = read(accepted.get(), buffer, sizeof(buffer))) > 0) {
  }
  EXPECT_EQ(size, 0);
}

class HangUpTest : public ConnectionTest {
 protected:
  std::unique_ptr<Connection> ConnectAndListen() {
    return Connect([this] { hang_ups_.Put(1); });
  }
  Mailbox<int> hang_ups_;
};

TEST_F(HangUpTest, IsToldOnce) {
  auto server = ServeEcho();
  const auto connection = ConnectAndListen();
  EXPECT_TRUE(CallAndWait(*connection, "/t.Echo/Say", "").ok());
  EXPECT_FALSE(connection->over());
  server.reset();
  EXPECT_TRUE(hang_ups_.Take());
  EXPECT_TRUE(connection->over());
  EXPECT_FALSE(hang_ups_.Take(milliseconds(50)));
}

TEST_F(HangUpTest, IsToldWithoutAnyCall) {
  RawPeer peer(Path(), /*listens=*/true);
  const auto connection = ConnectAndListen();
  peer.Accept();  // and closes
  EXPECT_TRUE(hang_ups_.Take());
}

TEST_F(HangUpTest, IsToldWhenThePeerStopsWritingOnly) {
  RawPeer peer(Path(), /*listens=*/true);
  const auto connection = ConnectAndListen();
  const UniqueFd accepted = peer.Accept();
  shutdown(accepted.get(), SHUT_WR);
  EXPECT_TRUE(hang_ups_.Take());
}

TEST_F(HangUpTest, IsToldWhenNobodyEverAccepted) {
  auto peer = std::make_unique<RawPeer>(Path(), /*listens=*/true);
  const auto connection = ConnectAndListen();
  peer.reset();
  EXPECT_TRUE(hang_ups_.Take());
}

TEST_F(HangUpTest, MakesCallsUnavailable) {
  auto server = ServeEcho();
  const auto connection = ConnectAndListen();
  server.reset();
  ASSERT_TRUE(hang_ups_.Take());
  const Result answer = CallAndWait(*connection, "/t.Echo/Say", "");
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(answer.status()), "the peer hung up");
}

TEST_F(HangUpTest, EndsACallUnderWay) {
  RawPeer peer(Path(), /*listens=*/true);
  const auto connection = ConnectAndListen();
  UniqueFd accepted = peer.Accept();
  Mailbox<Result> answers;
  connection->Call("/t.Slow/Wait", "", {kPatience},
                   [&](Result result) { answers.Put(result); });
  char buffer[4096];
  ASSERT_GT(read(accepted.get(), buffer, sizeof(buffer)), 0);
  accepted.Reset();
  const absl::Status ended = answers.Take().value().status();
  EXPECT_EQ(ended.code(), absl::StatusCode::kUnavailable);
  // Our transport does not say whose socket was closed.
  EXPECT_NE(MessageOf(ended).find("the other end closed the connection"),
            std::string::npos)
      << ended;
  EXPECT_FALSE(IsFromPeer(ended));
  EXPECT_TRUE(hang_ups_.Take());
}

TEST_F(HangUpTest, ComesFromAPeerThatTalksGarbage) {
  RawPeer peer(Path(), /*listens=*/true);
  const auto connection = ConnectAndListen();
  const UniqueFd accepted = peer.Accept();
  Mailbox<Result> answers;
  connection->Call("/t.Slow/Wait", "", {kPatience},
                   [&](Result result) { answers.Put(result); });
  const std::string garbage = "HTTP/1.1 400 Bad Request\r\n\r\n";
  ASSERT_GT(write(accepted.get(), garbage.data(), garbage.size()), 0);
  // gRPC's own code: it tells that the peer broke the protocol.
  const absl::Status status = answers.Take().value().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(IsFromPeer(status));
  EXPECT_TRUE(hang_ups_.Take());
}

TEST_F(HangUpTest, IsNotToldOnceTheConnectionIsGone) {
  for (int i = 0; i < 50; ++i) {
    auto server = ServeEcho();
    bool gone = false;
    auto connection = Connect([&] { EXPECT_FALSE(gone); });
    std::thread stopper([&] { server.reset(); });
    connection.reset();
    gone = true;
    stopper.join();
  }
}

class DialTest : public RpcTest {
 protected:
  absl::Status DialStatus(const std::filesystem::path& path) {
    return Dial(*runtime_, path, {}).status();
  }
};

TEST_F(DialTest, FindsNoFile) {
  EXPECT_EQ(DialStatus(Path()).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(DialStatus(Path("no") / "such" / "s.sock").code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(DialStatus(Path(std::string(150, 'x'))).code(),
            absl::StatusCode::kNotFound);
}

TEST_F(DialTest, FindsNobodyListening) {
  const RawPeer peer(Path(), /*listens=*/false);
  const absl::Status status = DialStatus(Path());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(MessageOf(status).find("no process listens"), std::string::npos);
}

// Whoever dials names the path: it used to stand in messages twice.
TEST_F(DialTest, LeavesThePathToTheCaller) {
  const auto names_path = [this](const absl::Status& status) {
    EXPECT_FALSE(status.ok());
    return MessageOf(status).find(Path().string()) != std::string::npos;
  };
  EXPECT_FALSE(names_path(DialStatus(Path())));
  { const RawPeer peer(Path(), /*listens=*/true); }
  EXPECT_FALSE(names_path(DialStatus(Path())));
  std::filesystem::remove(Path());
  std::ofstream(Path()) << "text";
  EXPECT_FALSE(names_path(DialStatus(Path())));
}

TEST_F(DialTest, FindsAStaleSocket) {
  { const RawPeer peer(Path(), /*listens=*/true); }
  EXPECT_EQ(DialStatus(Path()).code(), absl::StatusCode::kUnavailable);
}

TEST_F(DialTest, FindsAFullQueue) {
  const RawPeer peer(Path(), /*listens=*/true, /*backlog=*/0);
  std::vector<std::unique_ptr<Connection>> waiting;
  absl::Status status;
  while (status.ok() && waiting.size() < 10) {
    auto connection = Dial(*runtime_, Path(), {});
    status = connection.status();
    if (connection.ok()) waiting.push_back(*std::move(connection));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(MessageOf(status).find("queue"), std::string::npos);
}

TEST_F(DialTest, RefusesWhatIsNoSocket) {
  std::ofstream(Path()) << "text";
  EXPECT_EQ(DialStatus(Path()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DialStatus(folder_.path()).code(),
            absl::StatusCode::kFailedPrecondition);
  // Also where the path is too long for the kernel's address.
  const auto deep = Path(std::string(150, 'x'));
  std::ofstream(deep) << "text";
  EXPECT_EQ(DialStatus(deep).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DialTest, RefusesADatagramSocket) {
  const UniqueFd fd = NewSocket(SOCK_DGRAM);
  ASSERT_TRUE(BindRaw(fd, Path()));
  EXPECT_EQ(DialStatus(Path()).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DialTest, MayNotConnect) {
  const RawPeer peer(Path(), /*listens=*/true);
  const Unprivileged user(folder_.path());
  chmod(Path().c_str(), 0);
  const absl::Status status = DialStatus(Path());
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(MessageOf(status).find("cannot connect"), std::string::npos);
}

}  // namespace
}  // namespace devmgr::rpc
