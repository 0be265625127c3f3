// SPDX-License-Identifier: Apache-2.0
#include "upkeep/withheld_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace devmgr::upkeep {
namespace {

using device::Health;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kDriver[] = "d.example.com";

class WithheldDevicesTest : public ::testing::Test {
 protected:
  void Note(const std::string& device, Health health,
            const std::string& pool = "node-1") {
    devices_.Note(kDriver, {pool, device}, health);
  }

  ManualExecutor executor_;
  std::vector<std::string> offered_;
  WithheldDevices devices_{
      {executor_,
       [](const std::string& driver) {
         return driver == kDriver ? device::Probation::Rules{10'000, false}
                                  : device::Probation::Rules();
       },
       [this](const std::string& driver,
              const std::vector<std::string>& devices) {
         for (const std::string& device : devices) {
           offered_.push_back(driver + "/" + device);
         }
       }}};
};

TEST_F(WithheldDevicesTest, WhatHasWorkedForLongEnoughIsOfferedByName) {
  Note("d1", Health::kUnhealthy, "rack/a");
  EXPECT_THAT(devices_.All(),
              ElementsAre(state::DeviceKey(kDriver, "rack/a", "d1")));
  const std::uint64_t version = devices_.version();
  EXPECT_GT(version, 0u);
  // That it is withheld helps no pod.
  EXPECT_THAT(offered_, IsEmpty());
  EXPECT_EQ(executor_.timers(), 0u);
  Note("d1", Health::kHealthy, "rack/a");
  executor_.Advance(milliseconds(9'999));
  EXPECT_THAT(offered_, IsEmpty());
  EXPECT_EQ(devices_.version(), version);
  executor_.Advance(milliseconds(1));
  EXPECT_THAT(offered_, ElementsAre("d.example.com/rack/a/d1"));
  EXPECT_THAT(devices_.All(), IsEmpty());
  EXPECT_GT(devices_.version(), version);
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(WithheldDevicesTest, ARecheckOffersWhatWorksAtOnce) {
  Note("d1", Health::kUnhealthy);
  Note("d2", Health::kUnhealthy);
  Note("d2", Health::kHealthy);
  EXPECT_THAT(devices_.Recheck(kDriver, "node-1/d1"), IsEmpty());
  EXPECT_THAT(offered_, IsEmpty());
  EXPECT_THAT(devices_.Recheck(kDriver, ""), ElementsAre("node-1/d2"));
  EXPECT_THAT(offered_, ElementsAre("d.example.com/node-1/d2"));
  EXPECT_EQ(executor_.timers(), 0u);
  EXPECT_THAT(devices_.Recheck("other.example.com", ""), IsEmpty());
}

TEST_F(WithheldDevicesTest, WithoutAPolicyNothingIsWithheld) {
  devices_.Note("other.example.com", {"node-1", "d1"}, Health::kUnhealthy);
  EXPECT_THAT(devices_.All(), IsEmpty());
  EXPECT_EQ(devices_.version(), 0u);
  EXPECT_EQ(devices_.Find("other.example.com"), nullptr);
}

}  // namespace
}  // namespace devmgr::upkeep
