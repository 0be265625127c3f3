// SPDX-License-Identifier: Apache-2.0
#include "common/poller.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;

class PollerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto poller = Poller::Start("test-poller");
    ASSERT_TRUE(poller.ok()) << poller.status().ToString();
    poller_ = *std::move(poller);
  }

  static UniqueFd Event(unsigned value = 0) {
    return UniqueFd(eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  Poller::WatchId Watch(const UniqueFd& fd, std::uint32_t events,
                        Poller::Ready ready) {
    auto watch = poller_->Watch(fd.get(), events, std::move(ready));
    EXPECT_TRUE(watch.ok()) << watch.status().ToString();
    return watch.value_or(0);
  }

  /// Puts the events that come into `ready_`.
  Poller::WatchId Watch(const UniqueFd& fd, std::uint32_t events) {
    return Watch(fd, events, [this](std::uint32_t came) { ready_.Put(came); });
  }

  std::unique_ptr<Poller> poller_;
  Mailbox<std::uint32_t> ready_;
};

TEST_F(PollerTest, TellsOfWhatIsReadyAlready) {
  const UniqueFd fd = Event(1);
  EXPECT_NE(Watch(fd, EPOLLIN | EPOLLET), 0u);
  EXPECT_EQ(ready_.Take(), std::uint32_t{EPOLLIN});
}

TEST_F(PollerTest, TellsOfWhatBecomesReady) {
  const UniqueFd fd = Event();
  Watch(fd, EPOLLIN | EPOLLET);
  eventfd_write(fd.get(), 1);
  EXPECT_EQ(ready_.Take(), std::uint32_t{EPOLLIN});
  eventfd_write(fd.get(), 1);
  EXPECT_EQ(ready_.Take(), std::uint32_t{EPOLLIN});
}

TEST_F(PollerTest, TellsOfAHangUpBesideUnreadData) {
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  Watch(ours, EPOLLRDHUP | EPOLLET);
  ASSERT_EQ(write(theirs.get(), "x", 1), 1);
  theirs.Reset();
  const auto events = ready_.Take();
  ASSERT_TRUE(events);
  EXPECT_NE(*events & EPOLLRDHUP, 0u);
}

TEST_F(PollerTest, RunsOnOneThreadThatIsNotOurs) {
  const UniqueFd one = Event(1);
  const UniqueFd two = Event(1);
  Mailbox<std::thread::id> threads;
  const auto note = [&](std::uint32_t) {
    threads.Put(std::this_thread::get_id());
  };
  Watch(one, EPOLLIN | EPOLLET, note);
  Watch(two, EPOLLIN | EPOLLET, note);
  const auto first = threads.Take();
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_EQ(threads.Take(), first);
}

TEST_F(PollerTest, RefusesWhatCannotBeWatched) {
  EXPECT_FALSE(poller_->Watch(-1, EPOLLIN, [](std::uint32_t) {}).ok());
  const UniqueFd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(poller_->Watch(file.get(), EPOLLIN, [](std::uint32_t) {}).ok());
  const UniqueFd fd = Event();
  Watch(fd, EPOLLIN);
  EXPECT_FALSE(poller_->Watch(fd.get(), EPOLLIN, [](std::uint32_t) {}).ok());
}

TEST_F(PollerTest, IsSilentAfterUnwatch) {
  const UniqueFd fd = Event();
  const auto watch = Watch(fd, EPOLLIN | EPOLLET);
  poller_->Unwatch(watch);
  poller_->Unwatch(watch);
  poller_->Unwatch(0);
  poller_->Unwatch(4711);
  eventfd_write(fd.get(), 1);
  // Another descriptor shows that the poller has been round.
  const UniqueFd other = Event(1);
  Mailbox<int> others;
  Watch(other, EPOLLIN | EPOLLET, [&](std::uint32_t) { others.Put(1); });
  EXPECT_TRUE(others.Take());
  EXPECT_EQ(ready_.size(), 0u);
}

TEST_F(PollerTest, UnwatchWaitsForWhatRuns) {
  const UniqueFd fd = Event(1);
  Mailbox<int> inside;
  Mailbox<int> release;
  std::atomic<bool> finished{false};
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = captured;
  const auto watch = Watch(fd, EPOLLIN | EPOLLET,
                           [&, captured = std::move(captured)](std::uint32_t) {
                             inside.Put(*captured);
                             release.Take();
                             finished = true;
                           });
  ASSERT_TRUE(inside.Take());
  std::thread releaser([&] { release.Put(1); });
  poller_->Unwatch(watch);
  EXPECT_TRUE(finished);
  EXPECT_TRUE(seen.expired());
  releaser.join();
}

TEST_F(PollerTest, LetsReadyWatchAndUnwatch) {
  const UniqueFd one = Event(1);
  const UniqueFd two = Event(1);
  Mailbox<Poller::WatchId> ids;
  const auto watch = Watch(one, EPOLLIN, [&](std::uint32_t) {
    // Level-triggered and never read: without this it would come for ever.
    poller_->Unwatch(*ids.Take());
    Watch(two, EPOLLIN | EPOLLET);
  });
  ids.Put(watch);
  EXPECT_TRUE(ready_.Take());
  EXPECT_EQ(ids.size(), 0u);
}

TEST_F(PollerTest, LetsReadyUnwatchAnotherThatIsReadyToo) {
  const UniqueFd one = Event();
  const UniqueFd two = Event();
  const UniqueFd gate = Event(1);
  Mailbox<int> inside;
  Mailbox<int> release;
  Watch(gate, EPOLLIN | EPOLLET, [&](std::uint32_t) {
    inside.Put(1);
    release.Take();
  });
  ASSERT_TRUE(inside.Take());
  // Both become ready while the poller is busy; whoever is first ends the
  // other.
  std::array<Poller::WatchId, 2> watches{};
  watches[0] = Watch(one, EPOLLIN | EPOLLET, [&](std::uint32_t events) {
    poller_->Unwatch(watches[1]);
    ready_.Put(events);
  });
  watches[1] = Watch(two, EPOLLIN | EPOLLET, [&](std::uint32_t events) {
    poller_->Unwatch(watches[0]);
    ready_.Put(events);
  });
  eventfd_write(one.get(), 1);
  eventfd_write(two.get(), 1);
  release.Put(1);
  EXPECT_TRUE(ready_.Take());
  EXPECT_FALSE(ready_.Take(milliseconds(20)));
}

TEST_F(PollerTest, EndsWithWatchesLeft) {
  const UniqueFd fd = Event();
  const auto captured = std::make_shared<int>(1);
  Watch(fd, EPOLLIN, [captured](std::uint32_t) {});
  poller_.reset();
  EXPECT_EQ(captured.use_count(), 1);
}

TEST_F(PollerTest, StandsWatchesComingAndGoingUnderFire) {
  constexpr int kThreads = 3;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const UniqueFd fd = Event(1);
        auto alive = std::make_unique<int>(0);
        const auto watch = Watch(fd, EPOLLIN, [&](std::uint32_t) { ++*alive; });
        poller_->Unwatch(watch);
        // Freed memory from here on, for whoever still runs.
        alive.reset();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace devmgr
