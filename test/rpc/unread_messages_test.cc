// SPDX-License-Identifier: Apache-2.0
#include "rpc/unread_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "rpc/runtime.h"

namespace devmgr::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class UnreadMessagesTest : public testing::Test {
 protected:
  UnreadMessages::Duration Put(UnreadMessages& unread,
                               const std::string& text) {
    grpc::ByteBuffer message = ToByteBuffer(text);
    return unread.Put(message, now_);
  }
  static std::string Take(UnreadMessages& unread) {
    std::string text;
    for (const auto& message : unread.Take()) text += ToString(message) + ";";
    return text;
  }

  UnreadMessages::TimePoint now_{seconds(1'000)};
};

TEST_F(UnreadMessagesTest, KeepsTheNewestOrAll) {
  UnreadMessages newest(Unread::kKeepNewest);
  UnreadMessages all(Unread::kJoin);
  for (const char* text : {"1", "", "3"}) {
    Put(newest, text);
    Put(all, text);
    EXPECT_FALSE(newest.full() || all.full());
  }
  EXPECT_EQ(Take(newest), "3;");
  EXPECT_EQ(Take(all), "1;;3;");
  EXPECT_TRUE(newest.empty() && all.empty());
}

TEST_F(UnreadMessagesTest, KeepsNothingWhereMessagesWaitAtThePeer) {
  EXPECT_TRUE(UnreadMessages(Unread::kWait).full());
}

TEST_F(UnreadMessagesTest, IsFullOfMessagesToJoin) {
  UnreadMessages unread(Unread::kJoin);
  const std::string large(UnreadMessages::kMaxBytes, 'x');
  Put(unread, "1");
  EXPECT_FALSE(unread.full());
  Put(unread, large);
  EXPECT_TRUE(unread.full());
  EXPECT_EQ(Take(unread), "1;");
  // It goes alone, whatever its size.
  EXPECT_TRUE(unread.full());
  EXPECT_EQ(Take(unread), large + ";");
  EXPECT_FALSE(unread.full());
  // Those that say nothing count, too.
  int count = 0;
  for (; !unread.full(); ++count) Put(unread, "");
  EXPECT_LT(count, 10'000);
}

// A flood of messages that are dropped is read with pauses: other streams are
// read on the same thread.
TEST_F(UnreadMessagesTest, ReadsAFloodAFewAtATime) {
  UnreadMessages unread(Unread::kKeepNewest);
  for (int i = 1; i < UnreadMessages::kAtOnce; ++i) {
    EXPECT_EQ(Put(unread, "x").count(), 0);
  }
  EXPECT_EQ(Put(unread, "x"), UnreadMessages::kPause);
  // Those that come one by one are read without.
  for (int i = 0; i < 100; ++i) {
    now_ += UnreadMessages::kPause;
    EXPECT_EQ(Put(unread, "x").count(), 0);
  }
}

TEST_F(UnreadMessagesTest, ReadsAFloodAtItsShare) {
  UnreadMessages unread(Unread::kKeepNewest, {milliseconds(10), 10});
  const std::string text(10'000, 'x');
  int read = 0;
  const auto end = now_ + seconds(1);
  for (; now_ < end; ++read) now_ += Put(unread, text);
  // Of 20 us each: what is read at once, and a tenth of the time.
  EXPECT_LT(read, 5'700);
  EXPECT_GT(read, 5'000);
}

TEST_F(UnreadMessagesTest, LargeMessagesCostMore) {
  UnreadMessages unread(Unread::kKeepNewest, {milliseconds(10), 10});
  int read = 0;
  while (Put(unread, std::string(3'000'000, 'x')).count() == 0) {
    ASSERT_LT(++read, 10);
  }
}

}  // namespace
}  // namespace devmgr::rpc
