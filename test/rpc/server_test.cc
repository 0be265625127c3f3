// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>
#include <vector>

#include "common/peer_status.h"
#include "common/status.h"
#include "server_fixture.h"
#include "support/unprivileged.h"

namespace devmgr::rpc {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

std::size_t FilesIn(const fs::path& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) {
    ++count;
  }
  return count;
}

TEST_F(ServerTest, AppearsWithItsModeAndNothingElse) {
  ServerOptions options;
  options.socket = Path();
  options.mode = 0640;
  const mode_t mask = umask(0777);
  const auto server = Server::Start(options);
  umask(mask);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  struct stat status {};
  ASSERT_EQ(stat(Path().c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 07777, 0640u);
  EXPECT_EQ(FilesIn(folder_.path()), 1u);
}

TEST_F(ServerTest, LeavesNothingBehind) {
  ServeEcho();
  EXPECT_EQ(FilesIn(folder_.path()), 0u);
}

TEST_F(ServerTest, NamesAnUnknownService) {
  const auto server = ServeEcho();
  EXPECT_EQ(CallError("/t.Other/Say"),
            FromPeer(UnimplementedError("unknown service t.Other")));
  EXPECT_EQ(CallError("/t.Ech/Say"),
            FromPeer(UnimplementedError("unknown service t.Ech")));
}

TEST_F(ServerTest, NamesAnUnknownMethod) {
  const auto server = ServeEcho();
  EXPECT_EQ(
      CallError("/t.Echo/Shout"),
      FromPeer(UnimplementedError("unknown method Shout for service t.Echo")));
}

TEST_F(ServerTest, AnswersAMalformedMethodName) {
  const auto server = ServeEcho();
  EXPECT_EQ(CallError("/nothing").code(), absl::StatusCode::kUnimplemented);
}

TEST_F(ServerTest, AnswersUnknownMethodsWithBigRequests) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(CallAndWait(*connection, "/t.Other/Say",
                          std::string(8 * 1024 * 1024, 'x'))
                  .status(),
              FromPeer(UnimplementedError("unknown service t.Other")));
  }
}

TEST_F(ServerTest, CarriesMessagesUpToTheLimit) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  for (const std::size_t size :
       {std::size_t{5} * 1024 * 1024, std::size_t{kMaxReceiveBytes}}) {
    const std::string message(size, 'm');
    const Result answer = CallAndWait(*connection, "/t.Echo/Say", message);
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_TRUE(*answer == message);
  }
}

TEST_F(ServerTest, RefusesAnOversizedRequestAndGoesOn) {
  const auto server = ServeEcho();
  const auto connection = Connect();
  const Result answer = CallAndWait(*connection, "/t.Echo/Say",
                                    std::string(kMaxReceiveBytes + 1, 'm'));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(CallAndWait(*connection, "/t.Echo/Say", "small").ok());
}

TEST_F(ServerTest, ItsOversizedAnswerIsRefusedByTheClient) {
  const auto server = Serve({{"/t.Big/Get", [](std::string, Respond respond) {
                                respond(std::string(kMaxReceiveBytes + 1, 'm'));
                              }}});
  EXPECT_EQ(CallError("/t.Big/Get").code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(ServerTest, WorksOnAVeryLongPath) {
  fs::path folder = folder_.path();
  while (folder.string().size() < 200) folder /= std::string(40, 'd');
  fs::create_directories(folder);
  const fs::path path = folder / std::string(120, 's');
  auto server = TryServe(
      {{"/t.Echo/Say", [](std::string request,
                          Respond respond) { respond(std::move(request)); }}},
      path);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  {
    const auto connection = Dial(*runtime_, path, {});
    ASSERT_TRUE(connection.ok()) << connection.status().ToString();
    EXPECT_EQ(CallAndWait(**connection, "/t.Echo/Say", "far").value(), "far");
  }
  const absl::Status second = StartStatus(path);
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  server->reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ServerTest, RefusesALiveSocketAndNamesItsOwner) {
  const auto server = ServeEcho();
  const absl::Status status = StartStatus(Path());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string message = MessageOf(status);
  EXPECT_NE(message.find(Path().string()), std::string::npos) << message;
  EXPECT_NE(message.find(fmt::format("pid {}", getpid())), std::string::npos)
      << message;
  std::string name;
  std::getline(std::ifstream("/proc/self/comm"), name);
  EXPECT_NE(message.find(name), std::string::npos) << message;
  // The first one still works, and no other file is left.
  EXPECT_EQ(CallError("/t.Echo/Say"), absl::OkStatus());
  EXPECT_EQ(FilesIn(folder_.path()), 1u);
}

TEST_F(ServerTest, RefusesALiveSocketThatDoesNotAccept) {
  const RawPeer peer(Path(), /*listens=*/true, /*backlog=*/0);
  std::vector<absl::StatusOr<std::unique_ptr<Connection>>> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(Dial(*runtime_, Path(), {}));
  EXPECT_EQ(waiting.back().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(StartStatus(Path()).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ServerTest, ReplacesAStaleSocket) {
  { const RawPeer peer(Path(), /*listens=*/true); }
  ASSERT_TRUE(fs::exists(Path()));
  const auto server = ServeEcho();
  EXPECT_EQ(CallError("/t.Echo/Say"), absl::OkStatus());
  EXPECT_EQ(FilesIn(folder_.path()), 1u);
}

// Bound and not listening is what a crash in between leaves, too.
TEST_F(ServerTest, ReplacesASocketThatNeverListened) {
  const RawPeer peer(Path(), /*listens=*/false);
  const auto server = ServeEcho();
  EXPECT_EQ(CallError("/t.Echo/Say"), absl::OkStatus());
}

TEST_F(ServerTest, RefusesWhatIsNoSocket) {
  std::ofstream(Path()) << "precious";
  EXPECT_EQ(StartStatus(Path()).code(), absl::StatusCode::kFailedPrecondition);
  fs::create_symlink(Path(), Path("link"));
  EXPECT_EQ(StartStatus(Path("link")).code(),
            absl::StatusCode::kFailedPrecondition);
  fs::create_directory(Path("dir"));
  EXPECT_EQ(StartStatus(Path("dir")).code(),
            absl::StatusCode::kFailedPrecondition);
  std::string text;
  std::ifstream(Path()) >> text;
  EXPECT_EQ(text, "precious");
}

TEST_F(ServerTest, NeedsADirectory) {
  EXPECT_EQ(StartStatus(Path("no") / "s.sock").code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ServerTest, MayNotWriteTheDirectory) {
  const Unprivileged user(folder_.path());
  chmod(folder_.path().c_str(), 0500);
  const absl::Status status = StartStatus(Path());
  chmod(folder_.path().c_str(), 0700);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(MessageOf(status).find(Path().string()), std::string::npos);
}

TEST_F(ServerTest, OneOfManyRivalsWinsAStaleSocket) {
  { const RawPeer peer(Path(), /*listens=*/true); }
  constexpr int kRivals = 6;
  std::vector<absl::StatusOr<std::unique_ptr<Server>>> servers(kRivals);
  std::vector<std::thread> threads;
  for (auto& server : servers) {
    threads.emplace_back([&] { server = TryServe({}, Path()); });
  }
  for (std::thread& thread : threads) thread.join();
  int winners = 0;
  for (const auto& server : servers) winners += server.ok() ? 1 : 0;
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(FilesIn(folder_.path()), 1u);
}

TEST_F(ServerTest, LeavesTheFileOfItsSuccessorAlone) {
  auto first = ServeEcho();
  fs::rename(Path(), Path("moved"));
  const auto second = ServeEcho();
  first.reset();
  EXPECT_EQ(CallError("/t.Echo/Say"), absl::OkStatus());
}

TEST_F(ServerTest, RemovesItsFileWhereTheDirectoryWentTo) {
  fs::create_directory(Path("a"));
  auto server = TryServe({}, Path("a") / "s.sock");
  ASSERT_TRUE(server.ok());
  fs::rename(Path("a"), Path("b"));
  server->reset();
  EXPECT_EQ(FilesIn(Path("b")), 0u);
}

TEST_F(ServerTest, AnswersFromAnotherThreadLater) {
  const auto server = Serve({{"/t.Slow/Wait", park_}});
  const auto connection = Connect();
  Mailbox<Result> answers;
  connection->Call("/t.Slow/Wait", "", {kPatience},
                   [&](Result result) { answers.Put(result); });
  const Respond respond = parked_.Take().value();
  std::thread([respond] { respond("later"); }).join();
  EXPECT_EQ(answers.Take().value().value(), "later");
  // Once only.
  respond("again");
  respond(InternalError("again"));
}

TEST_F(ServerTest, AnswersForAHandlerThatDropsTheCall) {
  const auto server = Serve({{"/t.Bad/Drop", [](std::string, Respond) {}}});
  EXPECT_EQ(CallError("/t.Bad/Drop").code(), absl::StatusCode::kInternal);
}

TEST_F(ServerTest, GoesQuicklyWithHangingCalls) {
  auto server = Serve({{"/t.Slow/Wait", park_}});
  const auto connection = Connect();
  Mailbox<Result> answers;
  constexpr int kCalls = 10;
  for (int i = 0; i < kCalls; ++i) {
    connection->Call("/t.Slow/Wait", "", {kPatience},
                     [&](Result result) { answers.Put(result); });
  }
  std::vector<Respond> responds;
  for (int i = 0; i < kCalls; ++i) responds.push_back(*parked_.Take());
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_EQ(answers.Take().value().status().code(),
              absl::StatusCode::kUnavailable);
  }
  // Too late, and harmless.
  for (const Respond& respond : responds) respond("late");
}

TEST_F(ServerTest, GoesQuicklyWithClientsThatAreSilentOrStuck) {
  auto server = ServeEcho();
  // Says nothing at all, or half a request.
  std::vector<UniqueFd> clients;
  for (const std::string& said :
       {std::string(), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    UniqueFd fd = NewSocket();
    ASSERT_TRUE(ConnectRaw(fd, Path()));
    ASSERT_EQ(write(fd.get(), said.data(), said.size()),
              static_cast<ssize_t>(said.size()));
    // Its first frame shows that it was accepted.
    char byte = 0;
    ASSERT_EQ(read(fd.get(), &byte, 1), 1);
    clients.push_back(std::move(fd));
  }
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(2000));
}

TEST_F(ServerTest, GoesWhileAnswersAreGiven) {
  for (int i = 0; i < 30; ++i) {
    auto server = Serve({{"/t.Slow/Wait", park_}});
    const auto connection = Connect();
    Mailbox<Result> answers;
    for (int call = 0; call < 4; ++call) {
      connection->Call("/t.Slow/Wait", "", {kPatience},
                       [&](Result result) { answers.Put(result); });
    }
    std::thread answerer([this] {
      for (int call = 0; call < 2; ++call) (*parked_.Take())("done");
    });
    server.reset();
    // Some calls never reached a handler.
    for (int call = 0; call < 2; ++call) {
      parked_.Put([](const Result&) {});
    }
    answerer.join();
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(answers.Take());
    while (parked_.size() > 0) parked_.Take();
  }
}

TEST_F(ServerTest, SurvivesGarbage) {
  const auto server = ServeEcho();
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, '\xff')}) {
    const UniqueFd fd = NewSocket();
    ASSERT_TRUE(ConnectRaw(fd, Path()));
    send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    char buffer[4096];
    while (read(fd.get(), buffer, sizeof(buffer)) > 0) {
    }
  }
  EXPECT_EQ(CallError("/t.Echo/Say"), absl::OkStatus());
}

TEST_F(ServerTest, CountsConnections) {
  const auto server = ServeEcho();
  EXPECT_EQ(server->accepted_connections(), 0u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(CallError("/t.Echo/Say"), absl::OkStatus());
  }
  EXPECT_EQ(server->accepted_connections(), 5u);
}

// Behind the servers' backs.
void ShutDownAllListeners() {
  for (int fd = 3; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
        listens == 1) {
      shutdown(fd, SHUT_RDWR);
    }
  }
}

TEST_F(ServerTest, ListensAgainWhenItsFileIsDeleted) {
  const auto server = ServeEcho();
  const auto before = Connect();
  EXPECT_TRUE(server->IsReachable());
  std::filesystem::remove(Path());
  EXPECT_FALSE(server->IsReachable());
  ASSERT_EQ(server->Relisten(), absl::OkStatus());
  EXPECT_TRUE(server->IsReachable());
  const auto after = Connect();
  EXPECT_EQ(CallAndWait(*after, "/t.Echo/Say", "new").value(), "new");
  EXPECT_EQ(CallAndWait(*before, "/t.Echo/Say", "old").value(), "old");
}

TEST_F(ServerTest, DoesNotTakeItsPlaceBackFromALivePeer) {
  const auto server = ServeEcho();
  std::filesystem::remove(Path());
  auto other = std::make_unique<RawPeer>(Path(), /*listens=*/true);
  EXPECT_FALSE(server->IsReachable());
  EXPECT_EQ(server->Relisten().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(server->IsReachable());
  other.reset();
  EXPECT_EQ(server->Relisten(), absl::OkStatus());
  EXPECT_TRUE(server->IsReachable());
}

TEST_F(ServerTest, TellsThatItsListenerFailed) {
  Mailbox<bool> failed;
  ServerOptions options;
  options.socket = Path();
  options.on_listener_failed = [&] { failed.Put(true); };
  auto server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  ShutDownAllListeners();
  EXPECT_TRUE(failed.Take());
  EXPECT_FALSE((*server)->IsReachable());
  EXPECT_EQ((*server)->Relisten(), absl::OkStatus());
  EXPECT_TRUE((*server)->IsReachable());
  EXPECT_TRUE(Dial(*runtime_, Path(), {}).ok());
  EXPECT_EQ(failed.size(), 0u);
}

}  // namespace
}  // namespace devmgr::rpc
