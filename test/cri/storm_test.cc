// SPDX-License-Identifier: Apache-2.0
//
// Cancels, kills and cut connections on both sides at once. What counts is
// that nothing is left behind, and that the proxy serves afterwards.
#include <algorithm>
#include <atomic>
#include <deque>

#include "cri/fixture.h"
#include "support/luck.h"
#include "support/test_scale.h"

namespace devmgr::cri {
namespace {

class StormTest : public ProxyTest {
 protected:
  /// Decides now, later on another thread, or never.
  void Decide(const CriInterceptor::Decide& decide) {
    const std::lock_guard lock(mutex_);
    switch (decisions_.Below(4)) {
      case 0:
        return decide(CriDecision::Forward());
      case 1:
        return decide(CriDecision::Replace(std::string(5000, 'r')));
      case 2:
        return;
      default:
        undecided_.push_back(decide);
    }
  }

  /// On a thread of its own: decides what was left for later.
  void DecideLater() {
    while (!over_) {
      CriInterceptor::Decide decide;
      {
        const std::lock_guard lock(mutex_);
        if (!undecided_.empty()) {
          decide = std::move(undecided_.front());
          undecided_.pop_front();
        }
      }
      if (decide) {
        decide(CriDecision::Fail(absl::AbortedError("later")));
      } else {
        std::this_thread::yield();
      }
    }
  }

  static RawSend AnyCall(Luck& luck) {
    static const char* const kKinds[] = {"echo",  "stream", "never", "half",
                                         "early", "reset",  "error"};
    RawSend send;
    send.headers =
        CallHeaders(luck.Below(3) == 0 ? kCreate : kList,
                    {{"x-do", luck.Pick(kKinds)},
                     {"x-code", std::to_string(1 + luck.Below(13))},
                     {"x-count", std::to_string(1 + luck.Below(100))},
                     {"x-size", std::to_string(luck.Below(20'000))}});
    send.body = Message(std::string(luck.Below(100'000), 'b'));
    send.open_end = luck.Below(4) == 0;
    return send;
  }

  /// One caller after the other, each with many calls, each ending badly.
  void Storm(std::uint32_t seed, int rounds) {
    Luck luck(seed);
    for (int round = 0; round < rounds; ++round) {
      RawConnection::Options options;
      options.keeps_bodies = false;
      options.gives_window = luck.Below(4) != 0;
      const auto client = Client(options);
      if (client == nullptr) continue;
      std::vector<std::int32_t> streams;
      for (std::size_t i = 1 + luck.Below(30); i > 0; --i) {
        streams.push_back(client->Request(AnyCall(luck)));
        if (streams.back() <= 0) break;
        if (luck.Below(3) == 0) {
          client->Reset(streams[luck.Below(streams.size())],
                        1 + luck.Below(13u));
        }
        if (luck.Below(8) == 0) client->Ping();
      }
      switch (luck.Below(3)) {
        case 0:
          client->Cut();
          break;
        case 1:
          for (const std::int32_t stream : streams) {
            if (stream > 0) client->Reset(stream, NGHTTP2_CANCEL);
          }
          break;
        default:
          break;  // the destructor closes with everything open
      }
    }
  }

  std::mutex mutex_;
  Luck decisions_{7};
  std::deque<CriInterceptor::Decide> undecided_;
  std::atomic<bool> over_ = false;
  std::mutex backend_mutex_;
};

TEST_F(StormTest, LeavesNothingBehind) {
  const int rounds = 60 * TestScale();
  options_.intercept = {kCreate};
  interceptor_.on_call = [&](const CriCall&,
                             const CriInterceptor::Decide& decide) {
    Decide(decide);
  };
  StartBoth();
  const int before = OpenDescriptors();
  std::thread decider([&] { DecideLater(); });
  std::vector<std::thread> callers;
  for (std::uint32_t i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] { Storm(TestSeed(10) + i, rounds); });
  }
  std::thread killer([&] {
    Luck luck(TestSeed(20));
    while (!over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(luck.Below(40)));
      const std::size_t what = luck.Below(4);
      if (what == 0) {
        // The whole runtime.
        const std::lock_guard lock(backend_mutex_);
        backend_->Kill();
        StartBackend();
      } else {
        const std::lock_guard lock(backend_mutex_);
        backend_->ForEach([&](RawConnection& connection) {
          if (luck.Below(3) != 0) return;
          what == 1 ? connection.Cut()
                    : connection.Goaway(NGHTTP2_NO_ERROR, what == 2);
        });
      }
    }
  });
  for (std::thread& caller : callers) caller.join();
  over_ = true;
  killer.join();
  decider.join();
  {
    const std::lock_guard lock(mutex_);
    undecided_.clear();
  }
  // Everybody has gone: so have the calls, and the connections to the runtime.
  EXPECT_TRUE(Eventually([&] {
    const CriProxyStats stats = proxy_->Stats();
    return stats.connections == 0 && stats.calls == 0 && stats.held == 0;
  })) << proxy_->Stats().connections
      << " connections, " << proxy_->Stats().calls << " calls, "
      << proxy_->Stats().held << " held";
  EXPECT_TRUE(Eventually([&] { return backend_->connections() == 0; }));
  EXPECT_EQ(interceptor_.ends().size(), interceptor_.calls().size());
  EXPECT_GT(proxy_->Stats().intercepted, 0U);
  EXPECT_EQ(StatusOf(Call(*Client(), kList)), "0");
  backend_->Kill();
  StartBackend();
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() <= before; }))
      << OpenDescriptors() << " descriptors, " << before << " before";
}

// 1.000 calls given up at once, again and again, cost nobody a connection.
TEST_F(StormTest, MassCancelsAreNoAttack) {
  StartBoth();
  const auto client = Client();
  for (int round = 0; round < 5; ++round) {
    std::vector<std::int32_t> streams;
    for (int i = 0; i < 1000; ++i) {
      RawSend send;
      send.headers = CallHeaders(kList, {{"x-do", "never"}});
      send.body = Message("x");
      streams.push_back(client->Request(std::move(send)));
    }
    for (const std::int32_t stream : streams) {
      client->Reset(stream, NGHTTP2_CANCEL);
    }
    for (const std::int32_t stream : streams) {
      ASSERT_TRUE(client->WaitClosed(stream));
    }
  }
  EXPECT_EQ(StatusOf(Call(*client, kList)), "0");
  EXPECT_TRUE(NothingLeft());
}

}  // namespace
}  // namespace devmgr::cri
