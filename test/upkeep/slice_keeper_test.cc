// SPDX-License-Identifier: Apache-2.0
#include "upkeep/slice_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "manager/driver_names.h"
#include "support/status_matchers.h"

namespace devmgr::upkeep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Notes what it is asked for, and answers at once unless it is held.
class FakeSink : public ObjectSink {
 public:
  void DeleteResourceSlices(const std::string& driver,
                            std::function<void(absl::Status)> done) override {
    asked.push_back(driver.empty() ? "all" : driver);
    if (hold) {
      held.push_back(std::move(done));
    } else {
      done(answer);
    }
  }
  void KeepResourceSlices(const std::string& driver) override {
    kept.push_back(driver);
  }
  std::vector<std::string> asked;
  std::vector<std::string> kept;
  absl::Status answer;
  bool hold = false;
  std::vector<std::function<void(absl::Status)>> held;
};

class SliceKeeperTest : public ::testing::Test {
 protected:
  std::unique_ptr<SliceKeeper> Make(ObjectSink* sink) {
    return std::make_unique<SliceKeeper>(
        SliceKeeper::Parts{executor_, events_, sink, seconds(30),
                           [this](const std::string& driver) {
                             return connected_.contains(driver);
                           }});
  }
  void Connect(const std::string& driver) {
    connected_.insert(driver);
    keeper_->OnDriver(driver);
  }
  void Disconnect(const std::string& driver) {
    connected_.erase(driver);
    keeper_->OnDriver(driver);
  }
  void Pass(milliseconds time) { executor_.Advance(time); }

  ManualExecutor executor_;
  events::EventLog events_{executor_, 100, [] { return WallTime(); },
                           [](const EventInfo&) {}};
  FakeSink sink_;
  std::set<std::string> connected_;
  std::unique_ptr<SliceKeeper> keeper_ = Make(&sink_);
};

// DRA-029, DRA-030: until it succeeds.
TEST_F(SliceKeeperTest, TheStartTakesBackWhatAllDriversPublished) {
  sink_.answer = UnavailableError("no node yet");
  keeper_->Start();
  Pass(seconds(2));
  EXPECT_THAT(sink_.asked, ElementsAre("all", "all"));
  sink_.answer = absl::OkStatus();
  Pass(seconds(10));
  EXPECT_THAT(sink_.asked, SizeIs(3));
  Pass(std::chrono::hours(1));
  EXPECT_THAT(sink_.asked, SizeIs(3));
}

// DRA-031, DRA-039
TEST_F(SliceKeeperTest, ADriverWithoutConnectionLosesItsSlicesAfterAWhile) {
  for (int round = 1; round <= 2; ++round) {
    Connect(kDriver);
    Pass(std::chrono::hours(1));
    Disconnect(kDriver);
    Pass(seconds(29));
    EXPECT_THAT(sink_.asked, SizeIs(round - 1));
    Pass(seconds(1));
    EXPECT_THAT(sink_.asked, SizeIs(round));
  }
  EXPECT_THAT(sink_.asked, ElementsAre(kDriver, kDriver));
}

// DRA-032, DRA-035, DRA-040
TEST_F(SliceKeeperTest, ADriverThatIsBackInTimeKeepsThem) {
  Connect(kDriver);
  Disconnect(kDriver);
  Pass(seconds(29));
  Connect(kOther);
  Connect(kDriver);
  Pass(std::chrono::hours(1));
  EXPECT_THAT(sink_.asked, IsEmpty());
  Disconnect(kDriver);
  Connect(kOther);
  Pass(seconds(30));
  EXPECT_THAT(sink_.asked, ElementsAre(kDriver));
}

// DRA-033: another instance of it is connected.
TEST_F(SliceKeeperTest, TheLossOfOneConnectionOfTwoIsNone) {
  Connect(kDriver);
  keeper_->OnDriver(kDriver);
  Pass(std::chrono::hours(1));
  EXPECT_THAT(sink_.asked, IsEmpty());
}

// DRA-034: the time counts from the loss of the connection.
TEST_F(SliceKeeperTest, WhatComesLaterDoesNotPutItOff) {
  Connect(kDriver);
  Disconnect(kDriver);
  Pass(seconds(10));
  keeper_->OnDriver(kDriver);  // It is deregistered.
  Pass(seconds(20));
  EXPECT_THAT(sink_.asked, ElementsAre(kDriver));
  Pass(std::chrono::hours(1));
  EXPECT_THAT(sink_.asked, SizeIs(1));
}

// DRA-036
TEST_F(SliceKeeperTest, ADriverThatNeverListensHasNoSlices) {
  keeper_->OnDriver(kDriver);  // It is registered.
  Pass(seconds(30));
  EXPECT_THAT(sink_.asked, ElementsAre(kDriver));
}

// DRA-037
TEST_F(SliceKeeperTest, WithoutASinkNothingHappens) {
  keeper_ = Make(nullptr);
  keeper_->Start();
  Connect(kDriver);
  Disconnect(kDriver);
  Pass(std::chrono::hours(1));
  EXPECT_THAT(events_.After(0), IsEmpty());
}

// DRA-038
TEST_F(SliceKeeperTest, NotFoundIsAsGood) {
  sink_.answer = NotFoundError("no such collection");
  Disconnect(kDriver);
  Pass(std::chrono::hours(1));
  EXPECT_THAT(sink_.asked, SizeIs(1));
}

// DW-18: without end, further and further apart; not once it is back.
TEST_F(SliceKeeperTest, TriesUntilItSucceedsOrTheDriverIsBack) {
  sink_.answer = UnavailableError("no API server");
  Disconnect(kDriver);
  Pass(seconds(30 + 1 + 2 + 4 + 8));
  EXPECT_THAT(sink_.asked, SizeIs(5));
  Pass(std::chrono::hours(24));
  EXPECT_GT(sink_.asked.size(), 280u);  // every five minutes
  const std::size_t tried = sink_.asked.size();
  Connect(kDriver);
  Pass(std::chrono::hours(1));
  EXPECT_EQ(sink_.asked.size(), tried);
}

TEST_F(SliceKeeperTest, TheAnswerToAnEarlierLossSettlesNothing) {
  sink_.hold = true;
  Disconnect(kDriver);
  Pass(seconds(30));
  Connect(kDriver);
  Disconnect(kDriver);
  sink_.held.front()(absl::OkStatus());
  Pass(seconds(30));
  EXPECT_THAT(sink_.asked, SizeIs(2));
}

TEST_F(SliceKeeperTest, AnAnswerMayComeAfterTheEnd) {
  sink_.hold = true;
  keeper_->Start();
  keeper_.reset();
  sink_.held.front()(absl::OkStatus());
  executor_.RunPending();
}

TEST_F(SliceKeeperTest, ADeletionUnderWayIsStoppedWhenTheDriverIsBack) {
  sink_.hold = true;
  Disconnect("d");
  Pass(seconds(30));
  EXPECT_THAT(sink_.asked, ElementsAre("d"));
  Connect("d");
  EXPECT_THAT(sink_.kept, ElementsAre("d"));
  Connect("d");
  EXPECT_THAT(sink_.kept, SizeIs(1));
}

}  // namespace
}  // namespace devmgr::upkeep
