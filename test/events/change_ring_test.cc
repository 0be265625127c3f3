// SPDX-License-Identifier: Apache-2.0
#include "events/change_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace devmgr::events {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t kProcess = 77;

DeviceChange Change(std::uint64_t sequence, std::uint32_t index,
                    const std::string& device) {
  DeviceChange change;
  change.token = {sequence, index};
  change.devices = {device};
  return change;
}

std::vector<std::string> DevicesOf(const std::optional<DeviceChanges>& some) {
  std::vector<std::string> devices;
  if (!some.has_value()) return {"too old"};
  for (const DeviceChange& change : some->changes) {
    devices.push_back(change.devices.front().value);
  }
  return devices;
}

class ChangeRingTest : public testing::Test {
 protected:
  /// A decision with one change.
  void Add(std::uint64_t sequence) {
    ring_.AddDecision(sequence, {Change(sequence, ChangeToken::kWhole,
                                        "d" + std::to_string(sequence))});
  }

  ChangeRing ring_{kProcess, 10, 8};
};

TEST_F(ChangeRingTest, GivesWhatComesAfterAToken) {
  const ChangeToken begin = ring_.End();
  EXPECT_THAT(DevicesOf(ring_.After(begin, 9)), testing::IsEmpty());
  ring_.AddDecision(11,
                    {Change(11, 1, "a"), Change(11, ChangeToken::kWhole, "b")});
  ring_.AddHealth({Change(0, 0, "c"), Change(0, 0, "d")});
  const auto some = ring_.After(begin, 3);
  EXPECT_THAT(DevicesOf(some), testing::ElementsAre("a", "b", "c"));
  EXPECT_TRUE(some->more);
  EXPECT_EQ(some->next.ToString(), "11.h1-4d");
  const auto rest = ring_.After(some->next, 3);
  EXPECT_THAT(DevicesOf(rest), testing::ElementsAre("d"));
  EXPECT_FALSE(rest->more);
  EXPECT_EQ(rest->next, ring_.End());
  // Within a decision.
  EXPECT_THAT(DevicesOf(ring_.After({11, 1, 0, kProcess}, 9)),
              testing::ElementsAre("b", "c", "d"));
}

TEST_F(ChangeRingTest, ADecisionWithoutChangesMovesTheEnd) {
  const ChangeToken begin = ring_.End();
  ring_.AddDecision(11, {});
  const auto none = ring_.After(begin, 9);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->next.sequence, 11u);
}

TEST_F(ChangeRingTest, WhatIsNotReadInTimeIsTooOld) {
  const ChangeToken begin = ring_.End();
  Add(11);
  const ChangeToken first = ring_.End();
  // Each weighs 2, and 8 are kept.
  for (std::uint64_t sequence = 12; sequence < 16; ++sequence) Add(sequence);
  EXPECT_FALSE(ring_.Reaches(begin));
  EXPECT_EQ(DevicesOf(ring_.After(begin, 9)).front(), "too old");
  EXPECT_THAT(DevicesOf(ring_.After(first, 9)),
              testing::ElementsAre("d12", "d13", "d14", "d15"));
}

TEST_F(ChangeRingTest, OneChangeIsKeptHoweverLargeItIs) {
  const ChangeToken begin = ring_.End();
  DeviceChange large = Change(11, ChangeToken::kWhole, "a");
  large.devices.resize(1'000, "b");
  ring_.AddDecision(11, {large});
  EXPECT_EQ(ring_.After(begin, 9)->changes.size(), 1u);
  Add(12);
  EXPECT_FALSE(ring_.Reaches(begin));
}

TEST_F(ChangeRingTest, ATokenOfAnotherProcessIsNotKnownHere) {
  Add(11);
  EXPECT_FALSE(ring_.Reaches({11}));
  EXPECT_FALSE(ring_.Reaches({11, ChangeToken::kWhole, 0, kProcess + 1}));
  EXPECT_TRUE(ring_.Reaches({11, ChangeToken::kWhole, 0, kProcess}));
  // One that is ahead of this one is of another ledger.
  EXPECT_FALSE(ring_.Reaches({12, ChangeToken::kWhole, 0, kProcess}));
}

TEST_F(ChangeRingTest, AReaderWaitsForTheNextChange) {
  const ChangeToken begin = ring_.End();
  std::vector<std::string> devices;
  std::thread reader([&] {
    ring_.WaitPast(begin, steady_clock::now() + std::chrono::minutes(1));
    devices = DevicesOf(ring_.After(begin, 9));
  });
  ring_.AddDecision(11, {});
  Add(12);
  reader.join();
  EXPECT_THAT(devices, testing::ElementsAre("d12"));
  // Nothing comes.
  ring_.WaitPast(ring_.End(), steady_clock::now() + milliseconds(1));
}

TEST_F(ChangeRingTest, AReaderThatHasMissedSomeDoesNotWait) {
  const ChangeToken begin = ring_.End();
  for (std::uint64_t sequence = 11; sequence < 21; ++sequence) Add(sequence);
  ring_.WaitPast(begin, steady_clock::now() + std::chrono::hours(1));
  ring_.WaitPast({10}, steady_clock::now() + std::chrono::hours(1));
}

}  // namespace
}  // namespace devmgr::events
