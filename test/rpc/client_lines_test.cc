// SPDX-License-Identifier: Apache-2.0
#include "rpc/client_lines.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <string>

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
