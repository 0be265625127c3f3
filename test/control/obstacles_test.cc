// SPDX-License-Identifier: Apache-2.0
#include "control/obstacles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace devmgr::control {
namespace {

using allocator::Refusal;
using What = WaitingFor::Kind;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(DriverPinnedByTest, OnlyWhatMustHold) {
  EXPECT_EQ(DriverPinnedBy({"device.driver == \"d\""}), "d");
  EXPECT_EQ(DriverPinnedBy({"true", " device.driver=='d' && has(x)"}), "d");
  EXPECT_EQ(DriverPinnedBy({"f(a || b) && device.driver == \"d\""}), "d");
  for (const char* selector :
       {"device.driver == \"d\" || device.driver == \"e\"",
        "device.driver == \"d\" ? x : y", "!(device.driver == \"d\")",
        "(device.driver == \"d\") == false", "device.driver != \"d\"",
        "device.driver == \"d\" == false", "device.driver == \"a\\\"\"",
        "device.driver == \"d\" // && x", "(device.driver == \"d\"", ""}) {
    EXPECT_EQ(DriverPinnedBy({selector}), "") << selector;
  }
}

class ObstaclesTest : public ::testing::Test {
 protected:
  ObstaclesTest() {
    claim_.metadata.ns = "default";
    claim_.metadata.name = "c";
    DeviceRequest request;
    request.exactly.emplace().device_class_name = "gpu";
    request.exactly->allocation_mode = "ExactCount";
    claim_.spec.requests.push_back(request);
    DeviceClass gpu;
    gpu.metadata.name = "gpu";
    gpu.selectors = {"device.driver == \"d\""};
    classes_.insert_or_assign(ObjectName{"", "gpu"},
                              std::make_shared<const DeviceClass>(gpu));
  }
  std::vector<WaitingFor> For(const std::vector<Refusal>& reasons) {
    allocator::Outcome outcome;
    auto& request = outcome.refusals.emplace_back();
    for (const Refusal reason : reasons) {
      request.devices.push_back(
          {{"d", "p", "g" + std::to_string(request.devices.size())},
           reason,
           ""});
      ++request.counts[reason];
    }
    return ObstaclesOf({{&claim_}, {}, {}}, classes_, outcome);
  }
  ResourceClaim claim_;
  ObjectMap<DeviceClass> classes_;
};

const WaitingFor kClass{What::kDeviceClass, "gpu"};
const WaitingFor kPublished{What::kDevices, "d"};
const WaitingFor kFree{What::kFreeDevices, "d"};

TEST_F(ObstaclesTest, WhatDevicesWereRefusedFor) {
  EXPECT_THAT(For({Refusal::kRequestSelector}),
              UnorderedElementsAre(kClass, kPublished));
  for (const Refusal held :
       {Refusal::kBusy, Refusal::kCounter, Refusal::kCapacity}) {
    EXPECT_THAT(For({Refusal::kRequestSelector, held}),
                UnorderedElementsAre(kClass, kPublished, kFree));
  }
  EXPECT_THAT(For({Refusal::kBusy, Refusal::kTaint}),
              UnorderedElementsAre(kClass, kPublished, kFree,
                                   WaitingFor{What::kTaint, "d/p/g1"}));
}

TEST_F(ObstaclesTest, ManyTaintedDevicesAreThoseOfTheirDriver) {
  EXPECT_THAT(
      For(std::vector<Refusal>(100, Refusal::kTaint)),
      UnorderedElementsAre(kClass, kPublished, WaitingFor{What::kTaint, "d"}));
}

TEST_F(ObstaclesTest, ARequestForAll) {
  claim_.spec.requests[0].exactly->allocation_mode = "All";
  EXPECT_THAT(For({Refusal::kTakenInThisRun}),
              UnorderedElementsAre(kClass, kPublished, kFree,
                                   WaitingFor{What::kFewerDevices, "d"}));
}

/// Bad input, for one: it may hide a device that another claim has.
TEST_F(ObstaclesTest, WhereItIsNotKnownAnyDeviceMayHelp) {
  EXPECT_THAT(
      ObstaclesOf({{&claim_}, {{"default", "c"}}, {{"default", "t"}}}, classes_,
                  {}),
      UnorderedElementsAre(kClass, kPublished, kFree,
                           WaitingFor{What::kClaim, "default/c"},
                           WaitingFor{What::kClaimTemplate, "default/t"}));
}

TEST_F(ObstaclesTest, WithoutItsClassNothingElseHelps) {
  classes_ = {};
  EXPECT_THAT(For({Refusal::kBusy}), ElementsAre(kClass));
}

}  // namespace
}  // namespace devmgr::control
