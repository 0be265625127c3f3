// SPDX-License-Identifier: Apache-2.0
//
// Clients that are not gRPC's: what a server makes of calls that gRPC would not
// send, and what one client's calls do to those of others.
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server_fixture.h"
#include "support/raw_frames.h"
#include "support/raw_peer.h"

namespace devmgr::rpc {
namespace {

using http2::CallHeaders;
using http2::Message;
using http2::RawConnect;
using http2::RawConnection;
using http2::RawHeaders;
using http2::RawMessage;
using http2::RawSend;

constexpr char kEcho[] = "/t.Echo/Say";

/// The last value of `name` that the server sent.
std::string ValueOf(const RawMessage& answer, const std::string& name) {
  std::string found = "(none)";
  for (const RawHeaders& headers : answer.headers) {
    for (const auto& [key, value] : headers) {
      if (key == name) found = value;
    }
  }
  return found;
}

class RawClientTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    server_ = ServeEcho();
    client_ = RawConnect(Path());
    ASSERT_NE(client_, nullptr);
  }

  RawMessage Call(RawSend send) {
    const std::int32_t stream = client_->Request(std::move(send));
    EXPECT_TRUE(client_->WaitClosed(stream));
    return client_->Take(stream);
  }
  std::string StatusOf(RawSend send) {
    return ValueOf(Call(std::move(send)), "grpc-status");
  }

  static RawSend Echo(std::string body, const RawHeaders& more = {}) {
    RawSend send;
    send.headers = CallHeaders(kEcho, more);
    send.body = std::move(body);
    return send;
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<RawConnection> client_;
};

TEST_F(RawClientTest, GetsAnAnswerAsOfGrpc) {
  const RawMessage answer = Call(Echo(Message("hello")));
  EXPECT_EQ(answer.body, Message("hello"));
  ASSERT_EQ(answer.headers.size(), 2u);
  EXPECT_EQ(ValueOf(answer, ":status"), "200");
  EXPECT_EQ(ValueOf(answer, "content-type"), "application/grpc");
  EXPECT_EQ(ValueOf(answer, "grpc-status"), "0");
  EXPECT_TRUE(answer.ended);
  EXPECT_EQ(answer.reset, NGHTTP2_NO_ERROR);
}

TEST_F(RawClientTest, MaySendItsMessageInPieces) {
  RawSend send = Echo(Message(std::string(1000, 'x')));
  send.piece = 3;
  EXPECT_EQ(Call(std::move(send)).body, Message(std::string(1000, 'x')));
}

std::string Deflated(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string result(size, '\0');
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(result.data()), &size,
                     reinterpret_cast<const Bytef*>(text.data()), text.size()),
            Z_OK);
  result.resize(size);
  return result;
}

TEST_F(RawClientTest, MayCompressItsMessage) {
  const std::string text(1000, 'x');
  EXPECT_EQ(Call(Echo(Message(Deflated(text), /*compressed=*/true),
                      {{"grpc-encoding", "deflate"}}))
                .body,
            Message(text));
  // 12: the client may send it again without.
  EXPECT_EQ(StatusOf(Echo(Message("x", true), {{"grpc-encoding", "zstd"}})),
            "12");
}

TEST_F(RawClientTest, IsAnsweredWithoutSayingThatItHasEnded) {
  RawSend send = Echo(Message("x"));
  send.open_end = true;
  const RawMessage answer = Call(std::move(send));
  EXPECT_EQ(answer.body, Message("x"));
  EXPECT_EQ(ValueOf(answer, "grpc-status"), "0");
  EXPECT_EQ(answer.reset, NGHTTP2_NO_ERROR);
}

TEST_F(RawClientTest, IsRefusedForWhatIsNoCall) {
  RawSend get = Echo(Message("x"));
  get.headers[0].second = "GET";
  EXPECT_EQ(StatusOf(std::move(get)), "3");
  RawSend json = Echo(Message("x"));
  json.headers[5].second = "application/json";
  EXPECT_EQ(StatusOf(std::move(json)), "3");
  RawSend none = Echo("");
  none.has_body = false;
  EXPECT_EQ(StatusOf(std::move(none)), "13");
  EXPECT_EQ(StatusOf(Echo("")), "13");
  EXPECT_EQ(StatusOf(Echo("\1\2")), "3");
  EXPECT_EQ(StatusOf(Echo(Message("cut").substr(0, 6))), "3");
  EXPECT_EQ(StatusOf(Echo(Message("one") + Message("two"))), "3");
  EXPECT_EQ(StatusOf(Echo(Message("x"), {{"much", std::string(20'000, 'm')}})),
            "8");
  // It is none the worse for that.
  EXPECT_EQ(StatusOf(Echo(Message("x"))), "0");
}

// A length alone reserves no memory.
TEST_F(RawClientTest, IsRefusedForALengthThatIsTooLarge) {
  RawSend send = Echo(std::string("\0\xff\xff\xff\xff", 5));
  send.open_end = true;
  EXPECT_EQ(StatusOf(std::move(send)), "8");
}

TEST_F(RawClientTest, IsAnsweredAtItsDeadline) {
  client_.reset();
  server_.reset();
  server_ = Serve({{"/t.Slow/Wait", park_}});
  client_ = RawConnect(Path());
  RawSend send = Echo(Message("x"), {{"grpc-timeout", "20m"}});
  send.headers[2].second = "/t.Slow/Wait";
  EXPECT_EQ(StatusOf(std::move(send)), "4");
  EXPECT_EQ(server_->open_calls(), 0u);
  (*parked_.Take())("late");
}

TEST_F(RawClientTest, IsSentOnlyWhatItTakes) {
  client_.reset();
  RawConnection::Options options;
  options.gives_window = false;
  options.stream_window = 1000;
  client_ = RawConnect(Path(), options);
  const std::int32_t stream =
      client_->Request(Echo(Message(std::string(10'000, 'x'))));
  ASSERT_TRUE(client_->WaitFor(
      stream, [](const RawMessage& m) { return m.body_bytes == 1000; }));
  client_->GiveWindow();
  EXPECT_TRUE(client_->WaitClosed(stream));
  EXPECT_EQ(client_->Take(stream).body, Message(std::string(10'000, 'x')));
}

/// Bytes of a client, as they are.
class ManyCallsTest : public ServerTest {
 protected:
  UniqueFd Client(const std::string& bytes) {
    UniqueFd fd = NewSocket();
    EXPECT_TRUE(ConnectRaw(fd, Path()));
    EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  static std::string Calls(int count, const std::string& message,
                           const std::string& method = kEcho) {
    std::string bytes = Greeting();
    for (int i = 0; i < count; ++i) {
      bytes +=
          CallFrames(static_cast<std::uint32_t>(2 * i + 1), method, message);
    }
    return bytes;
  }
};

// All that a client had sent was read at once and worked on, before.
TEST_F(ManyCallsTest, OfOneClientLetThoseOfOthersThrough) {
  std::vector<std::string>
      handled;  // Of the server's thread, until it is over.
  Mailbox<bool> holds;
  Mailbox<bool> released;
  auto server =
      Serve({{kEcho, [&](std::string request, const Respond& respond) {
                if (request == "hold") {
                  holds.Put(true);
                  released.Take();
                }
                handled.push_back(request);
                respond("");
              }}});
  const UniqueFd first = Client(Calls(1, "hold"));
  ASSERT_TRUE(holds.Take());
  // All of this is there when the server looks again.
  const UniqueFd many = Client(Calls(300, "one of many"));
  const UniqueFd one = Client(Calls(1, "one"));
  released.Put(true);
  char bytes[1000];
  std::size_t got = 0;
  while (got < 100) {
    const ssize_t count = read(one.get(), bytes, sizeof(bytes));
    ASSERT_GT(count, 0);
    got += static_cast<std::size_t>(count);
    if (std::string_view(bytes, static_cast<std::size_t>(count))
            .find("grpc-status") != std::string_view::npos) {
      break;
    }
  }
  server.reset();
  const auto found = std::find(handled.begin(), handled.end(), "one");
  ASSERT_NE(found, handled.end());
  EXPECT_LE(found - handled.begin(), 10);
}

TEST_F(ManyCallsTest, ThatAreLeftUnreadEndTheConnection) {
  ServerOptions options;
  options.socket = Path();
  Mailbox<std::string> told;
  options.on_turned_away = [&](const std::string& why) { told.Put(why); };
  options.methods[kEcho] = park_;
  auto server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  UniqueFd fd = Client(Greeting());
  const std::string bytes = Calls(60'000, "x").substr(Greeting().size());
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count =
        send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0) break;  // It was hung up on.
    sent += static_cast<std::size_t>(count);
  }
  const auto why = told.Take();
  ASSERT_TRUE(why.has_value());
  EXPECT_TRUE(why->find("was hung up on") != std::string::npos) << *why;
  EXPECT_EQ((*server)->turned_away(), 1u);
  EXPECT_EQ((*server)->open_calls(), 0u);
  while (parked_.size() > 0) (*parked_.Take())("late");
}

/// A process that connects so often, calls once on each, and tells which of its
/// connections is hung up on.
class OtherProcess {
 public:
  OtherProcess(const std::filesystem::path& path, int connections,
               const std::string& first, const std::string& others) {
    const sockaddr_un address = AddressOf(path);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    gone_ = UniqueFd(ends[0]);
    pid_ = fork();
    if (pid_ != 0) {
      close(ends[1]);
      return;
    }
    std::array<pollfd, 16> fds{};
    for (int i = 0; i < connections; ++i) {
      const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
      const std::string& bytes = i == 0 ? first : others;
      if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) != 0 ||
          write(fd, bytes.data(), bytes.size()) < 0) {
        _exit(1);
      }
      fds[static_cast<std::size_t>(i)] = {fd, POLLRDHUP, 0};
    }
    for (;;) {
      poll(fds.data(), static_cast<nfds_t>(connections), -1);
      for (int i = 0; i < connections; ++i) {
        pollfd& fd = fds[static_cast<std::size_t>(i)];
        const char number = static_cast<char>(i);
        if (fd.revents == 0) continue;
        if (write(ends[1], &number, 1) != 1) _exit(1);
        fd.fd = -1;
      }
    }
  }
  ~OtherProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  int NextGone() const {
    char number = -1;
    return read(gone_.get(), &number, 1) == 1 ? number : -1;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd gone_;
};

// All have called once, and so none is silent: a process with many connections
// would keep all others out for as long as it likes.
TEST_F(ManyCallsTest, AProcessWithManyConnectionsGivesWayToOthers) {
  ServerOptions options;
  options.socket = Path();
  options.max_connections = 8;
  std::atomic<int> echoed = 0;
  options.methods["/t.Slow/Wait"] = park_;
  options.methods[kEcho] = [&](std::string request, const Respond& respond) {
    respond(std::move(request));
    ++echoed;
  };
  auto server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  const auto own = Connect();
  ASSERT_TRUE(CallAndWait(*own, kEcho, "x").ok());
  // The first one has a call under way; the others are idle.
  const OtherProcess other(Path(), 7, Calls(1, "x", "/t.Slow/Wait"),
                           Calls(1, "x"));
  const auto held = parked_.Take();
  ASSERT_TRUE(held.has_value());
  while (echoed < 7) std::this_thread::yield();
  // All answers are out but one.
  while ((*server)->open_calls() > 1) std::this_thread::yield();
  std::vector<std::unique_ptr<Connection>> more;
  for (const int gives_way : {1, 2, 3}) {
    more.push_back(Connect());
    EXPECT_TRUE(CallAndWait(*more.back(), kEcho, "x").ok());
    EXPECT_EQ(other.NextGone(), gives_way);
  }
  // Each has four of the eight now.
  EXPECT_FALSE(CallAndWait(*Connect(), kEcho, "x").ok());
  EXPECT_TRUE(CallAndWait(*own, kEcho, "x").ok());
}

}  // namespace
}  // namespace devmgr::rpc
