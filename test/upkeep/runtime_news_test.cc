// SPDX-License-Identifier: Apache-2.0
#include "upkeep/runtime_news.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "support/scripted_runtime.h"

namespace devmgr::upkeep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RuntimeNewsTest : public ::testing::Test {
 protected:
  void Pass() { executor_.Advance(RuntimeNews::kDelay); }
  void IsUnknown(const std::string& reason) {
    runtime_.IsUnknown(reason);
    news_.OnRuntime();
  }
  void IsKnown() {
    runtime_.Runs({{"u-p", RuntimeContainer::State::kRunning}});
    news_.OnRuntime();
  }
  /// `reason: message xcount`, oldest first; a warning with `!`.
  std::vector<std::string> Events() const {
    std::vector<std::string> texts;
    for (const EventInfo& event : events_.After(0)) {
      EXPECT_EQ(event.object_kind, "Runtime");
      EXPECT_EQ(event.object.name, "runtime of the test");
      texts.push_back((event.warning ? "!" : "") + event.reason + ": " +
                      event.message + " x" + std::to_string(event.count));
    }
    return texts;
  }

  static constexpr char kUnknown[] =
      "!RuntimeUnknown: it is not known what runtime of the test runs, so that "
      "pods which are over keep their devices: ";
  static constexpr char kKnown[] =
      "RuntimeKnown: it is known again what runtime of the test runs: , 1 pods";

  ManualExecutor executor_;
  events::EventLog events_{executor_, 1'000, [] { return WallTime(); },
                           [](const EventInfo&) {}};
  ScriptedRuntime runtime_;
  RuntimeNews news_{executor_, events_, runtime_};
};

TEST_F(RuntimeNewsTest,
       ARuntimeThatStopsAnsweringIsAnEventAndItsReturnAnother) {
  IsKnown();
  IsUnknown("connection refused");
  EXPECT_THAT(Events(), IsEmpty());
  Pass();
  EXPECT_THAT(Events(),
              ElementsAre(std::string(kUnknown) + "connection refused x1"));
  // It is the same trouble as before.
  IsUnknown("connection refused");
  Pass();
  IsKnown();
  EXPECT_THAT(Events(),
              ElementsAre(std::string(kUnknown) + "connection refused x1",
                          std::string(kKnown) + " x1"));
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(RuntimeNewsTest, ItComesAgainAndIsCounted) {
  for (int i = 0; i < 2; ++i) {
    IsUnknown("connection refused");
    Pass();
    IsKnown();
  }
  EXPECT_THAT(Events(),
              ElementsAre(std::string(kUnknown) + "connection refused x2",
                          std::string(kKnown) + " x2"));
}

TEST_F(RuntimeNewsTest, AMomentIsNoNews) {
  IsUnknown("the runtime has not been asked yet");
  IsKnown();
  Pass();
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(RuntimeNewsTest, WhatIsShownIsOfTheNewestSnapshot) {
  IsKnown();
  EXPECT_TRUE(news_.Info().known);
  EXPECT_EQ(news_.Info().source, "runtime of the test");
  EXPECT_EQ(news_.Info().pods, 1);
  runtime_.IsUnknown("it has gone");
  EXPECT_FALSE(news_.Info().known);
  EXPECT_EQ(news_.Info().reason, "it has gone");
}

}  // namespace
}  // namespace devmgr::upkeep
