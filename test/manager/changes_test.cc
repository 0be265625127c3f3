// SPDX-License-Identifier: Apache-2.0
//
// What readers of changes get of a manager that lives, stops and comes back.
#include <devmgr/device_changes.h>
#include <fmt/core.h>

#include <atomic>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "manager/device_fixture.h"
#include "manager/dra_health_fixture.h"
#include "support/held_by_stream.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr milliseconds kAtOnce(0);

/// `Allocated u-p/c example.com/gpu: 0`, or `HealthChanged u-p ...: 0
/// Unhealthy`.
std::string Text(const DeviceChange& change) {
  std::string text(change.kind.name());
  if (!change.pod_uid.value.empty()) text += " " + change.pod_uid.value;
  if (!change.container.empty()) text += "/" + change.container.value;
  if (!change.resource.empty()) text += " " + change.resource.value;
  if (!change.driver.empty()) text += " " + change.driver + "/" + change.pool;
  if (!change.devices.empty()) text += ":";
  for (const DeviceId& device : change.devices) text += " " + device.value;
  if (change.health) text += " " + std::string(change.health->name());
  if (change.owner) text += " " + std::string(change.owner->name());
  return text;
}

/// Reads changes, and goes on where it was.
class Reader {
 public:
  explicit Reader(TestNode& node) : node_(node) {}

  /// All that there is, without waiting.
  std::vector<std::string> Read() {
    std::vector<std::string> texts;
    for (;;) {
      auto some = node_.manager().Changes(from_, kAtOnce);
      EXPECT_THAT(some, IsOk());
      if (!some.ok()) return texts;
      stream_.Take(some->changes);
      for (const DeviceChange& change : some->changes) {
        texts.push_back(Text(change));
      }
      from_ = some->next;
      if (!some->more) return texts;
    }
  }
  /// The next ones, of which it waits for the first.
  std::vector<std::string> Wait() {
    auto some = node_.manager().Changes(from_, kPatience);
    EXPECT_THAT(some, IsOk());
    std::vector<std::string> texts;
    if (!some.ok()) return texts;
    stream_.Take(some->changes);
    for (const DeviceChange& change : some->changes) {
      texts.push_back(Text(change));
    }
    from_ = some->next;
    return texts;
  }
  ChangeToken token() const { return std::get<ChangeToken>(from_); }
  void Begin(const ChangesFrom& from) { from_ = from; }

  /// What it takes for held is what a snapshot has.
  void ExpectAllHeld() {
    EXPECT_EQ(stream_.complaint(), "");
    const auto now = node_.manager().Changes(FromSnapshot(), kAtOnce);
    ASSERT_THAT(now, IsOk());
    HeldByStream snapshot;
    for (const DeviceChange& change : now->changes) {
      if (change.kind == DeviceChangeKind::kHeld) snapshot.Take(change);
    }
    EXPECT_EQ(stream_.held(), snapshot.held());
  }

 private:
  TestNode& node_;
  ChangesFrom from_ = FromSnapshot();
  HeldByStream stream_;
};

class ChangesTest : public DeviceNodeTest {
 protected:
  void Start(int devices) {
    node_.Start();
    node_.plugins.Serve(kGpu, devices);
  }
  void Report(const std::vector<device::Health>& healths) {
    std::vector<device::Device> devices;
    for (std::size_t i = 0; i < healths.size(); ++i) {
      devices.push_back({std::to_string(i), healths[i], {}});
    }
    node_.plugins.Report(kGpu, std::move(devices));
    node_.Sync();
  }

  Reader reader_{node_};
};

TEST_F(ChangesTest, AReaderSeesWhatAPodGetsAndGivesBack) {
  Start(2);
  EXPECT_EQ(reader_.Read().front(), "HealthReset");
  node_.Publish(DevicePod("p", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  // The name may have been handed over before the snapshot.
  const std::string allocated = "Allocated u-p/c example.com/gpu: 0 1";
  EXPECT_THAT(
      reader_.Read(),
      AnyOf(ElementsAre(allocated),
            ElementsAre("HandedOver example.com/gpu DevicePlugin", allocated)));
  reader_.ExpectAllHeld();
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(reader_.Read(),
              ElementsAre("Released u-p/c example.com/gpu: 0 1"));
  reader_.ExpectAllHeld();
  EXPECT_THAT(reader_.Read(), IsEmpty());
}

TEST_F(ChangesTest, AReaderThatWaitsIsWokenByTheNextChange) {
  Start(1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  reader_.Read();
  node_.Publish("");
  EXPECT_THAT(reader_.Wait(), ElementsAre("Released u-p/c example.com/gpu: 0"));
  // Nothing comes.
  const auto none = node_.manager().Changes(reader_.token(), milliseconds(1));
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(none->changes, IsEmpty());
}

TEST_F(ChangesTest, ATokenGoesOnAfterARestart) {
  Start(4);
  node_.Publish(DevicePod("a", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  reader_.Read();
  // The reader is away.
  node_.Publish(DevicePod("a", {{kGpu, 1}}) + DevicePod("b", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  node_.Restart();
  node_.plugins.Serve(kGpu, 4);
  node_.Publish(DevicePod("b", {{kGpu, 2}}));
  ASSERT_TRUE(node_.WaitUntilGone("a"));
  const std::vector<std::string> missed = reader_.Read();
  ASSERT_GE(missed.size(), 3u);
  EXPECT_EQ(missed[0], "Allocated u-b/c example.com/gpu: 1 2");
  EXPECT_EQ(missed[1], "Released u-a/c example.com/gpu: 0");
  EXPECT_EQ(missed[2], "HealthReset");
  reader_.ExpectAllHeld();
  // From now on from memory.
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("b"));
  EXPECT_THAT(reader_.Read(),
              ElementsAre("Released u-b/c example.com/gpu: 1 2"));
  reader_.ExpectAllHeld();
}

TEST_F(ChangesTest, AllThatTheHistoryHasMayBeRead) {
  Start(1);
  for (int i = 0; i < 3; ++i) {
    node_.Publish(DevicePod("p", {{kGpu, 1}}));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    node_.Publish("");
    ASSERT_TRUE(node_.WaitUntilGone("p"));
  }
  reader_.Begin(FromOldest());
  EXPECT_THAT(reader_.Read(),
              ElementsAre("HandedOver example.com/gpu DevicePlugin",
                          "Allocated u-p/c example.com/gpu: 0",
                          "Released u-p/c example.com/gpu: 0",
                          "Allocated u-p/c example.com/gpu: 0",
                          "Released u-p/c example.com/gpu: 0",
                          "Allocated u-p/c example.com/gpu: 0",
                          "Released u-p/c example.com/gpu: 0", "HealthReset"));
  reader_.ExpectAllHeld();
}

TEST_F(ChangesTest, HealthOfDevicesSaysWhichPodHasThem) {
  using enum device::Health;
  Start(3);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  reader_.Read();
  Report({kUnhealthy, kUnhealthy, kUnhealthy});
  EXPECT_THAT(reader_.Read(),
              ElementsAre("HealthChanged example.com/gpu: 1 2 Unhealthy",
                          "HealthChanged u-p example.com/gpu: 0 Unhealthy"));
  const ChangeToken broken = reader_.token();
  EXPECT_GT(broken.health, 0u);
  Report({kUnhealthy, kUnhealthy, kHealthy});
  EXPECT_THAT(reader_.Read(),
              ElementsAre("HealthChanged example.com/gpu: 2 Healthy"));
  // Another process does not know these changes, and says how it is.
  node_.Restart();
  node_.plugins.Serve(kGpu, 3);
  Report({kHealthy, kUnhealthy, kHealthy});
  const std::vector<std::string> now = reader_.Read();
  ASSERT_FALSE(now.empty());
  EXPECT_EQ(now[0], "HealthReset");
  EXPECT_THAT(
      now, ::testing::Contains("HealthChanged example.com/gpu: 1 Unhealthy"));
  reader_.ExpectAllHeld();
}

TEST_F(ChangesTest, AStalledReaderGoesOnFromTheHistory) {
  using enum device::Health;
  Start(1);
  reader_.Read();
  const ChangeToken stalled = reader_.token();
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  // More than is kept in memory.
  constexpr int kDevices = 4'000;
  for (int i = 0; i < 10; ++i) {
    Report(std::vector<device::Health>(kDevices,
                                       i % 2 == 0 ? kUnhealthy : kHealthy));
  }
  reader_.Begin(stalled);
  // The name may have been handed over before the token.
  const std::string allocated = "Allocated u-p/c example.com/gpu: 0";
  EXPECT_THAT(reader_.Read(),
              AnyOf(ElementsAre(allocated, "HealthReset"),
                    ElementsAre("HandedOver example.com/gpu DevicePlugin",
                                allocated, "HealthReset")));
  reader_.ExpectAllHeld();
}

TEST_F(ChangesTest, WhatTheHistoryHasDroppedIsTooOld) {
  Start(1);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  constexpr int kMore = 10'050;  // The history holds 10,000.
  Mailbox<absl::Status> ends;
  for (int i = 0; i < kMore; ++i) {
    node_.manager().maintenance().StartRecordWish(
        {true, PodUid{"u-x"}, {}, "uid 0"}, [&, i](absl::Status status) {
          if (i + 1 == kMore) ends.Put(std::move(status));
        });
  }
  const auto end = ends.Take();
  ASSERT_TRUE(end.has_value());
  ASSERT_THAT(*end, IsOk());
  EXPECT_THAT(node_.manager().Changes(ChangeToken{1}, kAtOnce),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("too old: the changes after 1 are not known "
                                 "any more")));
  EXPECT_THAT(
      node_.manager().Changes(ChangeToken{99'999}, kAtOnce),
      StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("of another ledger")));
  // A snapshot is how a reader goes on, and the rest of the history is there.
  EXPECT_EQ(reader_.Read().front(), "Held u-p/c example.com/gpu: 0");
  reader_.ExpectAllHeld();
  reader_.Begin(FromOldest());
  EXPECT_THAT(reader_.Read(), ElementsAre("HealthReset"));
}

TEST_F(ChangesTest, ObserversHearThatThereAreChanges) {
  class Listener : public DeviceManagerObserver {
   public:
    explicit Listener(DeviceManager& to) : manager(to) {}
    void OnDeviceChanges() override {
      // On the manager's thread: does not wait.
      const auto changes = manager.Changes(FromOldest(), kPatience);
      if (changes.ok() && !changes->changes.empty()) ++seen;
    }
    DeviceManager& manager;
    std::atomic<int> seen = 0;
  };
  Start(1);
  Listener listener(node_.manager());
  const auto observation = node_.manager().Observe(listener);
  node_.Publish(DevicePod("p", {{kGpu, 1}}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Sync();
  EXPECT_GT(listener.seen, 0);
}

class DraChangesTest : public DraHealthTest {
 protected:
  Reader reader_{node_};
};

TEST_F(DraChangesTest, HealthOfDriversIsAChangeOnceThoughTheLedgerKeepsIt) {
  using enum device::Health;
  Start(2);
  EXPECT_EQ(reader_.Read().front(),
            fmt::format("Held u-p0/c {}/pool-1: dev-0", kDriver));
  Report({Of("dev-0", kUnhealthy, "too hot"), Of("dev-9", kHealthy)});
  node_.Sync();
  ASSERT_TRUE(WaitForKept(ElementsAre("dev-0 Unhealthy too hot")));
  node_.Sync();
  EXPECT_THAT(
      reader_.Read(),
      ElementsAre(
          fmt::format("HealthChanged {}/pool-1: dev-9 Healthy", kDriver),
          fmt::format("HealthChanged u-p0 {}/pool-1: dev-0 Unhealthy",
                      kDriver)));
  // The same again, with another text and a longer lease.
  Report({Of("dev-0", kUnhealthy, "hot", 90'000)});
  node_.Sync();
  EXPECT_THAT(reader_.Read(), IsEmpty());
  // Another process reads it from the ledger.
  StopListening();
  node_.Restart();
  Listen();
  reader_.Begin(FromOldest());
  EXPECT_THAT(reader_.Read(),
              ::testing::IsSupersetOf({fmt::format(
                  "HealthChanged u-p0 {}/pool-1: dev-0 Unhealthy", kDriver)}));
}

}  // namespace
}  // namespace devmgr
