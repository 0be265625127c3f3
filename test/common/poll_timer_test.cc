// SPDX-License-Identifier: Apache-2.0
#include "common/poll_timer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "support/status_matchers.h"

namespace devmgr {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class PollTimerTest : public testing::Test {
 protected:
  PollTimerTest() {
    auto poller = Poller::Start("timer-test");
    EXPECT_THAT(poller.status(), IsOk());
    poller_ = *std::move(poller);
    auto timer = PollTimer::Start(*poller_, [this] {
      thread_ = std::this_thread::get_id();
      due_.set_value();
    });
    EXPECT_THAT(timer.status(), IsOk());
    timer_ = *std::move(timer);
  }

  std::promise<void> due_;
  std::thread::id thread_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<PollTimer> timer_;
};

TEST_F(PollTimerTest, IsDueOnThePollersThread) {
  timer_->Set(milliseconds(1));
  due_.get_future().get();
  timer_->Stop();
  EXPECT_NE(thread_, std::this_thread::get_id());
}

TEST_F(PollTimerTest, IsDueAtOnceForATimeThatIsOver) {
  timer_->Set(-hours(1));
  due_.get_future().get();
}

// The first is never due: it would come before the second.
TEST_F(PollTimerTest, IsSetAnew) {
  timer_->Set(hours(1));
  timer_->Set(milliseconds(1));
  due_.get_future().get();
}

TEST_F(PollTimerTest, IsNotDueOnceClearedOrStopped) {
  timer_->Set(hours(1));
  timer_->Clear();
  timer_->Stop();
  timer_->Set(milliseconds(0));
  poller_.reset();  // All that was due has run.
  timer_.reset();
  EXPECT_EQ(due_.get_future().wait_for(milliseconds(0)),
            std::future_status::timeout);
}

}  // namespace
}  // namespace devmgr
