// SPDX-License-Identifier: Apache-2.0
#include "rpc/client_lines.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "rpc_fixture.h"

namespace devmgr::rpc {
namespace {

class ClientLinesTest : public RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    lines_ = std::make_unique<ClientLines>(
        runtime_->poller(), 8, [this](ClientLines::Id id) { gone_.Put(id); });
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_ = UniqueFd(ends[0]);
    theirs_ = UniqueFd(ends[1]);
    peer_ = fmt::format("fd:{}", ours_.get());
    ASSERT_TRUE(lines_->Add(ours_.get()).taken);
  }
  void TearDown() override {
    lines_.reset();
    RpcTest::TearDown();
  }

  Mailbox<ClientLines::Id> gone_;
  std::unique_ptr<ClientLines> lines_;
  UniqueFd ours_, theirs_;
  std::string peer_;
};

TEST_F(ClientLinesTest, TheEndOfAClientIsNoticed) {
  const ClientLines::Call call = lines_->Begin(peer_);
  EXPECT_FALSE(call.too_many);
  theirs_.Reset();
  EXPECT_EQ(gone_.Take(), call.line);
  EXPECT_EQ(lines_->size(), 0u);
  EXPECT_EQ(lines_->Begin(peer_).line, 0u);
}

/// The server goes while the poller still says that a client is gone.
TEST_F(ClientLinesTest, WaitAtTheirEndForAClientThatJustGoes) {
  std::promise<void> told;
  std::promise<void> destroyed;
  bool waited = false;
  lines_ = std::make_unique<ClientLines>(
      runtime_->poller(), 8, [&](ClientLines::Id) {
        told.set_value();
        // Long enough for a destructor that does not wait.
        waited =
            destroyed.get_future().wait_for(std::chrono::milliseconds(50)) ==
            std::future_status::timeout;
      });
  ASSERT_TRUE(lines_->Add(ours_.get()).taken);
  theirs_.Reset();
  told.get_future().wait();
  lines_.reset();
  destroyed.set_value();
  EXPECT_TRUE(waited);
}

/// A process that connects so often, and says nothing of its own.
class OtherProcess {
 public:
  explicit OtherProcess(int connections) {
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;  // With a name that the kernel gives it.
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address),
                   sizeof(address.sun_family)),
              0);
    EXPECT_EQ(listen(listener, connections), 0);
    socklen_t size = sizeof(address);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    pid_ = fork();
    if (pid_ == 0) {
      for (int i = 0; i < connections; ++i) {
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) {
          _exit(1);
        }
      }
      for (;;) pause();
    }
    for (int i = 0; i < connections; ++i) {
      lines_.emplace_back(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    }
    close(listener);
  }
  ~OtherProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  const std::vector<UniqueFd>& lines() const { return lines_; }

 private:
  pid_t pid_ = 0;
  std::vector<UniqueFd> lines_;
};

// All have called once, and so none is silent: a process with many connections
// would keep all others out for as long as it likes.
TEST_F(ClientLinesTest, AProcessWithManyConnectionsGivesWayToOthers) {
  const auto end_of = [](int fd) { return fmt::format("fd:{}", fd); };
  lines_->End(lines_->Begin(peer_).line);
  const OtherProcess other(7);
  std::vector<ClientLines::Id> ids;
  for (const UniqueFd& fd : other.lines()) {
    ASSERT_TRUE(lines_->Add(fd.get()).taken);
    ids.push_back(lines_->Begin(end_of(fd.get())).line);
    // The first one has a call under way; the others are idle.
    if (ids.size() > 1) lines_->End(ids.back());
  }
  std::vector<UniqueFd> own;
  const auto connect = [&] {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    own.emplace_back(ends[0]);
    own.emplace_back(ends[1]);
    const auto added = lines_->Add(ends[0]);
    if (added.taken) lines_->End(lines_->Begin(end_of(ends[0])).line);
    return added;
  };
  for (const std::size_t gives_way : {1, 2, 3}) {
    const auto added = connect();
    EXPECT_TRUE(added.taken && added.was_full);
    EXPECT_EQ(gone_.Take(), ids[gives_way]);
  }
  // Each has four of the eight now.
  EXPECT_FALSE(connect().taken);
  EXPECT_EQ(lines_->size(), 8U);
}

// gRPC has read more calls of such a client by then, and hands them out.
TEST_F(ClientLinesTest, CallsOfAClientThatWasHungUpOnAreTooMany) {
  for (std::size_t i = 0; i < ClientLines::kMaxOpen; ++i) {
    ASSERT_FALSE(lines_->Begin(peer_).too_many) << i;
  }
  const ClientLines::Call first = lines_->Begin(peer_);
  EXPECT_TRUE(first.too_many);
  EXPECT_TRUE(first.hung_up);
  EXPECT_EQ(gone_.Take(), first.line);
  for (int i = 0; i < 3; ++i) {
    const ClientLines::Call next = lines_->Begin(peer_);
    EXPECT_TRUE(next.too_many);
    EXPECT_FALSE(next.hung_up);
  }
  EXPECT_EQ(lines_->turned_away(), 1u);
  // The number of the descriptor is in use anew.
  ASSERT_TRUE(lines_->Add(ours_.get()).taken);
  EXPECT_FALSE(lines_->Begin(peer_).too_many);
}

}  // namespace
}  // namespace devmgr::rpc
