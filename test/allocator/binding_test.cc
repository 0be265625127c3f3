// SPDX-License-Identifier: Apache-2.0
#include "allocator/binding.h"

#include <gtest/gtest.h>

#include <string>

namespace devmgr::allocator {
namespace {

void AddShare(ResourceClaim& claim, const std::string& share) {
  if (!claim.status.allocation) claim.status.allocation.emplace();
  auto& result = claim.status.allocation->results.emplace_back();
  result.driver = "a";
  result.pool = "p1";
  result.device = "d1";
  result.share_id = share;
  result.binding_conditions = {"IsPrepared"};
  result.binding_failure_conditions = {"BindingFailed"};
}

void Report(ResourceClaim& claim, const std::string& share,
            const std::string& type, const std::string& status) {
  AllocatedDeviceStatus& device = claim.status.devices.emplace_back();
  device.driver = "a";
  device.pool = "p1";
  device.device = "d1";
  device.share_id = share;
  Condition& condition = device.conditions.emplace_back();
  condition.type = type;
  condition.status = status;
  condition.message = "broken cable";
}

TEST(AllocatorBinding, IsReadyWithoutConditions) {
  ResourceClaim claim;
  EXPECT_EQ(BindingOf(claim).binding, Binding::kReady);
  claim.status.allocation.emplace().results.emplace_back();
  EXPECT_EQ(BindingOf(claim).binding, Binding::kReady);
}

TEST(AllocatorBinding, WaitsForEachCondition) {
  ResourceClaim claim;
  AddShare(claim, "");
  EXPECT_EQ(BindingOf(claim).binding, Binding::kWaiting);
  Report(claim, "", "IsPrepared", "False");
  const BindingState state = BindingOf(claim);
  EXPECT_EQ(state.binding, Binding::kWaiting);
  EXPECT_EQ(state.detail, "IsPrepared of device a/p1/d1");
  claim.status.devices[0].conditions[0].status = "True";
  EXPECT_EQ(BindingOf(claim).binding, Binding::kReady);
}

// Δ12: upstream looks at the status of whichever share comes first.
TEST(AllocatorBinding, IsThatOfTheShare) {
  ResourceClaim claim;
  AddShare(claim, "one");
  AddShare(claim, "two");
  Report(claim, "one", "IsPrepared", "True");
  EXPECT_EQ(BindingOf(claim).binding, Binding::kWaiting);
  Report(claim, "two", "IsPrepared", "True");
  EXPECT_EQ(BindingOf(claim).binding, Binding::kReady);
}

TEST(AllocatorBinding, FailsByAnyFailureCondition) {
  ResourceClaim claim;
  AddShare(claim, "one");
  AddShare(claim, "two");
  Report(claim, "two", "BindingFailed", "True");
  const BindingState state = BindingOf(claim);
  EXPECT_EQ(state.binding, Binding::kFailed);
  EXPECT_EQ(state.detail, "BindingFailed of device a/p1/d1: broken cable");
}

}  // namespace
}  // namespace devmgr::allocator
