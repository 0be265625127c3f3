// SPDX-License-Identifier: Apache-2.0
#include "common/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/run_on.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

class ThreadExecutorTest : public testing::Test {
 protected:
  const std::unique_ptr<ThreadExecutor> executor_ =
      ThreadExecutor::Start("test-executor");
  Mailbox<int> ran_;
};

TEST_F(ThreadExecutorTest, RunsTasksInOrderOfPosting) {
  for (int i = 0; i < 100; ++i) {
    executor_->Post([this, i] { ran_.Put(i); });
  }
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ran_.Take(), i);
}

TEST_F(ThreadExecutorTest, RunsTasksOfAllThreadsOneAtATime) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 200;
  int unguarded = 0;  // ThreadSanitizer looks at this
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTasks; ++i) executor_->Post([&] { ++unguarded; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor_->Stop();
  EXPECT_EQ(unguarded, kThreads * kTasks);
}

TEST_F(ThreadExecutorTest, KnowsItsThread) {
  EXPECT_FALSE(executor_->IsCurrent());
  executor_->Post([this] { ran_.Put(executor_->IsCurrent() ? 1 : 0); });
  EXPECT_EQ(ran_.Take(), 1);
}

TEST_F(ThreadExecutorTest, NamesItsThread) {
  Mailbox<std::string> names;
  executor_->Post([&] {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof(name));
    names.Put(name);
  });
  EXPECT_EQ(names.Take(), "test-executor");
}

TEST_F(ThreadExecutorTest, RunsTimersWhenDueAndInOrder) {
  const auto begin = executor_->Now();
  executor_->PostAfter(milliseconds(40), [this] { ran_.Put(40); });
  executor_->PostAfter(milliseconds(10), [this] { ran_.Put(10); });
  executor_->PostAfter(milliseconds(0), [this] { ran_.Put(0); });
  EXPECT_EQ(ran_.Take(), 0);
  EXPECT_EQ(ran_.Take(), 10);
  EXPECT_EQ(ran_.Take(), 40);
  EXPECT_GE(executor_->Now() - begin, milliseconds(40));
}

TEST_F(ThreadExecutorTest, RunsTasksWhileATimerIsFarAway) {
  executor_->PostAfter(std::chrono::hours(1), [this] { ran_.Put(-1); });
  executor_->Post([this] { ran_.Put(1); });
  EXPECT_EQ(ran_.Take(), 1);
}

TEST_F(ThreadExecutorTest, CancelsTimers) {
  const TimerId id =
      executor_->PostAfter(milliseconds(20), [this] { ran_.Put(20); });
  executor_->PostAfter(milliseconds(40), [this] { ran_.Put(40); });
  executor_->Cancel(id);
  executor_->Cancel(id);
  executor_->Cancel(0);
  executor_->Cancel(4711);
  EXPECT_EQ(ran_.Take(), 40);
}

TEST_F(ThreadExecutorTest, LetsTasksPostAndCancel) {
  executor_->Post([this] {
    const TimerId id =
        executor_->PostAfter(milliseconds(1), [this] { ran_.Put(-1); });
    executor_->Cancel(id);
    executor_->Post([this] { ran_.Put(1); });
  });
  EXPECT_EQ(ran_.Take(), 1);
}

/// What `executor` does in a task that runs things afterwards.
std::vector<std::string> Course(Executor& executor) {
  std::vector<std::string> course;
  RunOn(executor, [&] {
    executor.PublishAfterTasks([&] { course.emplace_back("published"); });
    executor.Afterwards([&] {
      course.emplace_back("notified");
      executor.Afterwards([&] { course.emplace_back("because of that"); });
    });
    executor.Afterwards([&] { course.emplace_back("second"); });
    course.emplace_back("changed");
  });
  RunOn(executor, [&] { executor.PublishAfterTasks(nullptr); });
  return course;
}

TEST_F(ThreadExecutorTest, ATaskEndsWithWhatItPublishesAndThoseItNotifies) {
  EXPECT_THAT(Course(*executor_),
              ElementsAre("changed", "published", "notified", "second",
                          "because of that"));
}

// What a task has changed can be seen by a thread that waited for it.
TEST_F(ThreadExecutorTest, WaitingEndsWithTheTask) {
  std::atomic<int> published = 0;
  int changed = 0;
  RunOn(*executor_,
        [&] { executor_->PublishAfterTasks([&] { published = changed; }); });
  const auto change = [&] {
    for (int i = 0; i < 1'000; ++i) {
      const int mine = RunOn(*executor_, [&] { return ++changed; });
      EXPECT_GE(published, mine);
    }
  };
  std::thread other(change);
  change();
  other.join();
  RunOn(*executor_, [&] { executor_->PublishAfterTasks(nullptr); });
}

TEST_F(ThreadExecutorTest, RunsWhatIsPostedBeforeItStops) {
  Mailbox<int> gate;
  executor_->Post([&] { gate.Take(); });
  for (int i = 0; i < 10; ++i) {
    executor_->Post([this, i] { ran_.Put(i); });
  }
  executor_->PostAfter(milliseconds(0), [this] { ran_.Put(-1); });
  gate.Put(1);
  executor_->Stop();
  // The timer was due but is not a posted task: it may have run or not.
  for (int i = 0; i < 10; ++i) {
    auto next = ran_.Take();
    if (next == -1) next = ran_.Take();
    EXPECT_EQ(next, i);
  }
}

TEST_F(ThreadExecutorTest, DropsWhatComesAfterItStopped) {
  executor_->Stop();
  executor_->Stop();
  const auto captured = std::make_shared<int>(1);
  executor_->Post([this, captured] { ran_.Put(1); });
  EXPECT_EQ(executor_->PostAfter(milliseconds(0), [captured] {}), 0u);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(ran_.size(), 0u);
}

TEST_F(ThreadExecutorTest, FreesTimersWhenItStops) {
  const auto captured = std::make_shared<int>(1);
  executor_->PostAfter(std::chrono::hours(1), [captured] {});
  executor_->Stop();
  EXPECT_EQ(captured.use_count(), 1);
}

/// Mostly: the executor's own thread may be awake just then.
TEST_F(ThreadExecutorTest, AThreadThatWaitsRunsWhatItWaitsFor) {
  int ran_here = 0;
  for (int i = 0; i < 100; ++i) {
    std::thread::id ran_on;
    bool was_current = false;
    executor_->RunUntilFinished([&](Task finish) {
      executor_->Post([&, finish = std::move(finish)] {
        ran_on = std::this_thread::get_id();
        was_current = executor_->IsCurrent();
        finish();
      });
    });
    if (ran_on == std::this_thread::get_id()) ++ran_here;
    ASSERT_TRUE(was_current);
    ASSERT_FALSE(executor_->IsCurrent());
  }
  EXPECT_GE(ran_here, 90);
}

/// Runs on a thread with a stack of 100 KB.
void WaitOnSmallStack(Executor& executor, Mailbox<bool>& ran_there) {
  struct Call {
    Executor& executor;
    Mailbox<bool>& ran_there;
  } call{executor, ran_there};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 100 * 1024), 0);
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    const auto& [its, there] = *static_cast<Call*>(argument);
    const auto waits = std::this_thread::get_id();
    its.RunUntilFinished([&, &its = its, &there = there](Task finish) {
      its.Post([&there, waits, finish = std::move(finish)] {
        there.Put(std::this_thread::get_id() == waits);
        finish();
      });
    });
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &call), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST_F(ThreadExecutorTest, AThreadWithASmallStackOnlyWaits) {
  Mailbox<bool> ran_there;
  WaitOnSmallStack(*executor_, ran_there);
  EXPECT_EQ(ran_there.Take(), false);
}

TEST_F(ThreadExecutorTest, AThreadWaitsForWhatAnotherThreadFinishes) {
  std::thread other;
  executor_->RunUntilFinished([&](Task finish) {
    other = std::thread([this, finish = std::move(finish)] {
      executor_->Post([this] { ran_.Put(1); });
      finish();
    });
  });
  other.join();
  EXPECT_EQ(ran_.Take(), 1);
}

TEST_F(ThreadExecutorTest, WhatAThreadLeavesIsRunByTheExecutorsOwn) {
  executor_->RunUntilFinished([&](Task finish) {
    executor_->Post([&, finish = std::move(finish)] {
      finish();
      for (int i = 0; i < 10; ++i) {
        executor_->Post([this, i] { ran_.Put(i); });
      }
    });
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ran_.Take(), i);
}

TEST_F(ThreadExecutorTest, TimersAreRunAlthoughAWaitingThreadWasBusyThen) {
  executor_->RunUntilFinished([&](Task finish) {
    executor_->Post([&, finish = std::move(finish)] {
      executor_->PostAfter(milliseconds(5), [this] { ran_.Put(5); });
      const auto due = executor_->Now() + milliseconds(10);
      while (executor_->Now() < due) std::this_thread::yield();
      finish();
    });
  });
  EXPECT_EQ(ran_.Take(), 5);
  executor_->PostAfter(milliseconds(1), [this] { ran_.Put(1); });
  EXPECT_EQ(ran_.Take(), 1);
}

TEST_F(ThreadExecutorTest, ATimerMayBeWhatAThreadWaitsFor) {
  executor_->RunUntilFinished([&](Task finish) {
    executor_->PostAfter(milliseconds(5), [this, finish = std::move(finish)] {
      ran_.Put(5);
      finish();
    });
  });
  EXPECT_EQ(ran_.Take(), 5);
}

TEST_F(ThreadExecutorTest, ManyThreadsThatWaitRunTasksOneAtATime) {
  constexpr int kThreads = 4;
  constexpr int kWaits = 200;
  int unguarded = 0;  // ThreadSanitizer looks at this
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kWaits; ++i) {
        executor_->PostAfter(milliseconds(i % 3), [&] { ++unguarded; });
        executor_->RunUntilFinished([&](Task finish) {
          executor_->Post([&, finish = std::move(finish)] {
            ++unguarded;
            executor_->Post(finish);
          });
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor_->PostAfter(milliseconds(5), [this] { ran_.Put(0); });
  EXPECT_EQ(ran_.Take(), 0);
  executor_->Stop();
  EXPECT_EQ(unguarded, 2 * kThreads * kWaits);
}

/// Posts when it is destroyed: what a task captured may do so.
class PostsAtItsEnd {
 public:
  explicit PostsAtItsEnd(Executor& executor) : executor_(executor) {}
  ~PostsAtItsEnd() {
    executor_.Post([] {});
  }

 private:
  Executor& executor_;
};

TEST_F(ThreadExecutorTest, FreesCancelledTimersOutsideItsLock) {
  const TimerId id = executor_->PostAfter(
      std::chrono::hours(1),
      [end = std::make_shared<PostsAtItsEnd>(*executor_)] {});
  executor_->Cancel(id);
}

TEST(ManualExecutorTest, FreesCancelledTimersOutsideItsLock) {
  ManualExecutor executor;
  const TimerId id = executor.PostAfter(
      milliseconds(1), [end = std::make_shared<PostsAtItsEnd>(executor)] {});
  executor.Cancel(id);
  EXPECT_EQ(executor.RunPending(), 1);
}

TEST(ManualExecutorTest, RunsOnlyWhenTold) {
  ManualExecutor executor;
  int ran = 0;
  executor.Post([&] { ++ran; });
  executor.Post([&] { executor.Post([&] { ++ran; }); });
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(executor.RunPending(), 3);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(executor.RunPending(), 0);
  EXPECT_TRUE(executor.IsCurrent());
}

TEST(ManualExecutorTest, MovesItsClockTimerByTimer) {
  ManualExecutor executor;
  const auto begin = executor.Now();
  std::vector<std::pair<int, milliseconds>> ran;
  const auto note = [&](int number) {
    return [&, number] {
      ran.emplace_back(number, std::chrono::duration_cast<milliseconds>(
                                   executor.Now() - begin));
    };
  };
  executor.PostAfter(milliseconds(30), note(30));
  executor.PostAfter(milliseconds(10), [&] {
    note(10)();
    executor.PostAfter(milliseconds(5), note(15));
  });
  executor.PostAfter(milliseconds(31), note(31));
  executor.Advance(milliseconds(30));
  const std::vector<std::pair<int, milliseconds>> expected = {
      {10, milliseconds(10)}, {15, milliseconds(15)}, {30, milliseconds(30)}};
  EXPECT_EQ(ran, expected);
  EXPECT_EQ(executor.Now() - begin, milliseconds(30));
  EXPECT_EQ(executor.timers(), 1u);
}

TEST(ManualExecutorTest, ATaskEndsWithWhatItPublishesAndThoseItNotifies) {
  ManualExecutor executor;
  std::string course;
  executor.PublishAfterTasks([&] { course += 'p'; });
  executor.Afterwards([&] { course += 'o'; });  // outside of a task
  EXPECT_EQ(course, "o");
  executor.PostAfter(milliseconds(1), [&] {
    executor.Afterwards([&] { course += 'n'; });
    course += 'c';
  });
  executor.Advance(milliseconds(1));
  EXPECT_EQ(course, "ocpn");
}

TEST(ManualExecutorTest, RunsPostedTasksBeforeTimers) {
  ManualExecutor executor;
  std::string order;
  executor.PostAfter(milliseconds(0), [&] { order += 't'; });
  executor.Post([&] { order += 'p'; });
  executor.Advance(milliseconds(0));
  EXPECT_EQ(order, "pt");
}

TEST(ManualExecutorTest, CancelsTimers) {
  ManualExecutor executor;
  int ran = 0;
  const TimerId id = executor.PostAfter(milliseconds(1), [&] { ++ran; });
  executor.PostAfter(milliseconds(1), [&] { ++ran; });
  executor.Cancel(id);
  executor.Cancel(4711);
  executor.Advance(milliseconds(1));
  EXPECT_EQ(ran, 1);
}

TEST(ManualExecutorTest, RunsOneTaskAtATime) {
  ManualExecutor executor;
  std::string order;
  executor.Post([&] {
    order += 'a';
    executor.Post([&] { order += 'c'; });
  });
  executor.Post([&] { order += 'b'; });
  EXPECT_TRUE(executor.RunOne());
  EXPECT_EQ(order, "a");
  EXPECT_TRUE(executor.RunOne());
  EXPECT_TRUE(executor.RunOne());
  EXPECT_EQ(order, "abc");
  EXPECT_FALSE(executor.RunOne());
}

TEST(ManualExecutorTest, StopsAsAThreadDoes) {
  ManualExecutor executor;
  std::string order;
  executor.PostAfter(milliseconds(0), [&] { order += 't'; });
  executor.Post([&] {
    order += 'a';
    executor.Post([&] { order += 'b'; });
  });
  executor.Stop();
  EXPECT_EQ(order, "ab");
  executor.Post([&] { order += 'c'; });
  EXPECT_EQ(executor.PostAfter(milliseconds(0), [&] { order += 't'; }), 0u);
  executor.Advance(milliseconds(1));
  EXPECT_EQ(order, "ab");
}

#ifndef NDEBUG
TEST(ExecutorDeathTest, AnEntryOfItsThreadStopsAnotherThread) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto confined = [](Executor& executor) { DEVMGR_ASSERT_ON(executor); };
  EXPECT_DEATH(
      {
        const auto executor = ThreadExecutor::Start("confined");
        confined(*executor);
      },
      "IsCurrent");
  const auto executor = ThreadExecutor::Start("confined");
  bool passed = false;
  executor->Post([&] {
    confined(*executor);
    passed = true;
  });
  executor->Stop();
  EXPECT_TRUE(passed);
}
#endif

}  // namespace
}  // namespace devmgr
