// SPDX-License-Identifier: Apache-2.0
#include "plugin/list_parser.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <thread>
#include <vector>

namespace devmgr::plugin {
namespace {

constexpr std::size_t kLong = ListParser::kShort + 1;

TEST(ListParserTest, ParsesAShortListAtOnce) {
  ListParser parser(/*is_apart=*/true);
  std::thread::id thread;
  parser.Parse(ListParser::kShort,
               [&] { thread = std::this_thread::get_id(); });
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(ListParserTest, ParsesAllListsAtOnceWhereItHasNoThread) {
  ListParser parser(/*is_apart=*/false);
  std::thread::id thread;
  parser.Parse(kLong, [&] { thread = std::this_thread::get_id(); });
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(ListParserTest, DoesNotHoldUpItsCallerWithALongList) {
  std::promise<void> goes_on;
  std::promise<std::thread::id> thread;
  ListParser parser(/*is_apart=*/true);  // Last: its thread uses those above.
  parser.Parse(kLong, [&] {
    goes_on.get_future().wait();
    thread.set_value(std::this_thread::get_id());
  });
  // A short one does not wait for it.
  bool short_one = false;
  parser.Parse(1, [&] { short_one = true; });
  EXPECT_TRUE(short_one);
  goes_on.set_value();
  EXPECT_NE(thread.get_future().get(), std::this_thread::get_id());
}

// The end of a stream must not come before its last list.
TEST(ListParserTest, RunsWhatComesAfterwardsAfterTheLongLists) {
  std::vector<int> order;
  std::promise<void> goes_on;
  {
    ListParser parser(/*is_apart=*/true);
    parser.After([&] { order.push_back(0); });
    EXPECT_EQ(order.size(), 1u) << "there is nothing to wait for";
    parser.Parse(kLong, [&] {
      goes_on.get_future().wait();
      order.push_back(1);
    });
    parser.Parse(kLong, [&] { order.push_back(2); });
    parser.After([&] { order.push_back(3); });
    goes_on.set_value();
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace devmgr::plugin
