// SPDX-License-Identifier: Apache-2.0
#include "events/event_log.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace devmgr::events {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kLimit = 1'000;

class EventLogTest : public ::testing::Test {
 protected:
  void Add(const std::string& reason, const std::string& object,
           const std::string& message, bool warning = true,
           const std::string& kind = "Plugin") {
    log_.Add(warning, reason, kind, {"", object}, message);
  }
  std::size_t CountOf(const std::string& object) const {
    std::size_t count = 0;
    for (const EventInfo& event : log_.After(0)) {
      if (event.object.name.starts_with(object)) ++count;
    }
    return count;
  }
  /// What is known of pods that were prepared before all else.
  void AddOthers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Add("Prepared", fmt::format("other-{}", i), "is prepared", false, "Pod");
    }
  }

  ManualExecutor executor_;
  std::vector<EventInfo> delivered_;
  EventLog log_{
      executor_, kLimit,
      [this] {
        return WallTime(seconds(1'000)) + executor_.Now().time_since_epoch();
      },
      [this](const EventInfo& event) { delivered_.push_back(event); }};
};

TEST_F(EventLogTest, TheSameAgainIsCountedWithItsFirstAndLastTime) {
  for (int i = 0; i < 313; ++i) {
    Add("PluginGone", "gpu", "hung up");
    executor_.Advance(milliseconds(10));
  }
  const std::vector<EventInfo> events = log_.After(0);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].count, 313u);
  EXPECT_EQ(events[0].first_time, WallTime(seconds(1'000)));
  EXPECT_EQ(events[0].time, WallTime(seconds(1'000) + milliseconds(3'120)));
}

TEST_F(EventLogTest, AnotherObjectReasonTypeOrMessageIsAnotherEvent) {
  Add("PluginGone", "gpu", "hung up");
  Add("PluginGone", "nic", "hung up");
  Add("PluginLate", "gpu", "hung up");
  Add("PluginGone", "gpu", "hung up", /*warning=*/false);
  Add("PluginGone", "gpu", "fell over");
  Add("PluginGone", "gpu", "hung up", true, "Resource");
  EXPECT_THAT(log_.After(0), SizeIs(6));
}

TEST_F(EventLogTest, EverOtherWordsOfOneProblemBecomeOneEventWithTheLast) {
  for (std::size_t i = 1; i <= 100; ++i) {
    Add("PluginGone", "gpu", fmt::format("error {}", i));
  }
  const std::vector<EventInfo> events = log_.After(0);
  ASSERT_THAT(events, SizeIs(EventLog::kMostMessages));
  EXPECT_EQ(events.back().count, 101 - EventLog::kMostMessages);
  EXPECT_EQ(events.back().message, "error 100");
}

TEST_F(EventLogTest, RepeatsAreDeliveredTogetherAfterAPause) {
  Add("PluginGone", "gpu", "hung up");
  ASSERT_THAT(delivered_, SizeIs(1));
  EXPECT_EQ(delivered_[0].fresh, 1u);
  for (int i = 0; i < 99; ++i) Add("PluginGone", "gpu", "hung up");
  EXPECT_THAT(delivered_, SizeIs(1));
  executor_.Advance(EventLog::kPause);
  ASSERT_THAT(delivered_, SizeIs(2));
  EXPECT_EQ(delivered_[1].count, 100u);
  EXPECT_EQ(delivered_[1].fresh, 99u);
  EXPECT_EQ(executor_.timers(), 0u) << "nothing is due any more";
}

TEST_F(EventLogTest, ARareRepeatIsDeliveredAtOnce) {
  Add("PluginGone", "gpu", "hung up");
  executor_.Advance(EventLog::kPause);
  Add("PluginGone", "gpu", "hung up");
  ASSERT_THAT(delivered_, SizeIs(2));
  EXPECT_EQ(delivered_[1].count, 2u);
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(EventLogTest, WhoHasReadAnEventReadsItAgainWhenRepeatsAreDelivered) {
  Add("PluginGone", "gpu", "hung up");
  Add("Prepared", "p", "is prepared", false, "Pod");
  const std::uint64_t last = log_.After(0).back().sequence;
  Add("PluginGone", "gpu", "hung up");
  EXPECT_THAT(log_.After(last), IsEmpty()) << "at a bounded rate";
  executor_.Advance(EventLog::kPause);
  const std::vector<EventInfo> more = log_.After(last);
  ASSERT_THAT(more, SizeIs(1));
  EXPECT_EQ(more[0].reason, "PluginGone");
  EXPECT_EQ(more[0].count, 2u);
  // The only one, and the last, too.
  Add("PluginGone", "gpu", "hung up");
  executor_.Advance(EventLog::kPause);
  EXPECT_THAT(log_.After(more[0].sequence), SizeIs(1));
}

TEST_F(EventLogTest, AFloodOfNewEventsIsDeliveredAtABoundedRate) {
  for (std::size_t i = 0; i < 10 * EventLog::kMostAtOnce; ++i) {
    Add("PluginGone", fmt::format("made-up-{}", i), "hung up", false);
  }
  EXPECT_THAT(delivered_, SizeIs(EventLog::kMostAtOnce));
  Add("Prepared", "p", "is prepared", false, "Pod");
  EXPECT_THAT(delivered_, SizeIs(EventLog::kMostAtOnce + 1))
      << "a flood holds up none but its own";
  executor_.Advance(EventLog::kPause);
  // Those that are still there.
  EXPECT_THAT(delivered_, SizeIs(EventLog::kMostAtOnce + 1 + kLimit / 10));
  const std::vector<EventInfo> events = log_.After(0);
  for (std::size_t i = 1; i < events.size(); ++i) {
    EXPECT_LT(events[i - 1].sequence, events[i].sequence);
  }
}

TEST_F(EventLogTest, OneObjectHasATwentiethOfTheLog) {
  AddOthers(900);
  for (int reason = 0; reason < 100; ++reason) {
    for (int i = 0; i < 40; ++i) {
      Add(fmt::format("Reason{}", reason), "gpu", fmt::format("words {}", i));
    }
  }
  EXPECT_EQ(CountOf("gpu"), kLimit / 20);
  EXPECT_EQ(CountOf("other-"), 900u);
}

TEST_F(EventLogTest, OneReasonOfWarningsHasATwentiethOfTheLog) {
  AddOthers(900);
  for (int i = 0; i < 5'000; ++i) {
    Add("InvalidPod", fmt::format("bad-{}", i), "no name", true, "Pod");
  }
  EXPECT_EQ(CountOf("bad-"), kLimit / 20);
  EXPECT_EQ(CountOf("other-"), 900u);
}

// A plugin that fails all its pods had each of them tell of what it gave back,
// in ever other words.
TEST_F(EventLogTest, WhatComesAgainAndAgainForManyHasAFortieth) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) {
      log_.Add(false, "Released", "Pod", {"ns", fmt::format("p-{}", i)},
               fmt::format("device {}", round * 7 + i));
    }
  }
  EXPECT_EQ(log_.After(0).size(), kLimit / 40);
  // Another reason comes once for each.
  for (int i = 0; i < 300; ++i) {
    log_.Add(false, "Prepared", "Pod", {"ns", fmt::format("p-{}", i)}, "x");
  }
  EXPECT_EQ(log_.After(0).size(), kLimit / 40 + 300);
}

TEST_F(EventLogTest, PluginsThatComeUnderEverNewNamesHaveATenth) {
  AddOthers(900);
  for (int i = 0; i < 5'000; ++i) {
    Add("PluginRegistered", fmt::format("made-up-{}", i), "", false);
    Add("PluginGone", fmt::format("made-up-{}", i), "hung up");
  }
  EXPECT_EQ(CountOf("made-up-"), kLimit / 10);
  EXPECT_EQ(CountOf("other-"), 900u);
}

TEST_F(EventLogTest, PodsThatAreGoneHaveATenth) {
  AddOthers(900);
  for (int i = 0; i < 5'000; ++i) {
    const std::string name = fmt::format("short-{}", i);
    Add("Prepared", name, "is prepared", false, "Pod");
    Add("Released", name, "is released", false, "Pod");
    log_.OnObjectGone("Pod", {"", name});
  }
  EXPECT_EQ(CountOf("short-"), kLimit / 10);
  EXPECT_EQ(CountOf("other-"), 900u);
}

TEST_F(EventLogTest, APodOfTheSameNameBeginsAnew) {
  Add("Prepared", "p", "is prepared", false, "Pod");
  log_.OnObjectGone("Pod", {"", "p"});
  Add("Prepared", "p", "is prepared", false, "Pod");
  const std::vector<EventInfo> events = log_.After(0);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[1].count, 1u);
}

TEST_F(EventLogTest, TheNewestEventIsKeptHoweverSmallTheLog) {
  EventLog small(
      executor_, 1, [] { return WallTime(seconds(0)); },
      [this](const EventInfo& event) { delivered_.push_back(event); });
  for (const char* kind : {"Pod", "Node", "ResourceClaim", "Node"}) {
    small.Add(false, "Seen", kind, {"", "it"}, "is seen");
    const std::vector<EventInfo> events = small.After(0);
    ASSERT_THAT(events, SizeIs(1));
    EXPECT_EQ(events[0].object_kind, kind);
  }
  EXPECT_THAT(delivered_, SizeIs(4));
}

TEST_F(EventLogTest, PodsThatAreKnownHaveAsMuchAsThereIs) {
  Add("LedgerRecovered", "node", "was not closed", true, "Node");
  AddOthers(3'000);
  EXPECT_THAT(log_.After(0), SizeIs(kLimit));
  EXPECT_EQ(CountOf("node"), 1u) << "and push out none of other kinds";
  EXPECT_EQ(log_.After(0).back().object.name, "other-2999");
}

}  // namespace
}  // namespace devmgr::events
