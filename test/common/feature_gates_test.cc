// SPDX-License-Identifier: Apache-2.0
#include "common/feature_gates.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace devmgr {
namespace {

TEST(FeatureGatesTest, AllAreFoundByNameAndInOrder) {
  const auto by_name = [](const auto& a, const auto& b) {
    return a.name < b.name;
  };
  const auto gates = FeatureGates();
  EXPECT_TRUE(std::is_sorted(gates.begin(), gates.end(), by_name));
  for (const FeatureGate& gate : gates) {
    EXPECT_EQ(FindFeatureGate(gate.name), &gate);
    EXPECT_EQ(FindIdleGate(gate.name), nullptr) << gate.name;
    EXPECT_EQ(IsOn({}, gate.feature), gate.on_by_default) << gate.name;
    const std::string name(gate.name);
    EXPECT_FALSE(IsOn({{name, false}}, gate.feature)) << name;
    EXPECT_TRUE(IsOn({{name, true}}, gate.feature)) << name;
  }
  const auto idle = IdleGates();
  EXPECT_TRUE(std::is_sorted(idle.begin(), idle.end(), by_name));
  for (const IdleGate& gate : idle) {
    EXPECT_EQ(FindIdleGate(gate.name), &gate);
  }
  EXPECT_EQ(FindFeatureGate("Accelerators"), nullptr);
}

TEST(FeatureGatesTest, WhatCannotBeTurnedIsSaid) {
  const auto why = [](std::map<std::string, bool> gates,
                      const std::string& gate) {
    return WhyNotGate(gates, gate);
  };
  EXPECT_EQ(why({{"DRAExtendedResource", false}}, "DRAExtendedResource"), "");
  EXPECT_EQ(why({{"DRAAdminAccess", false}}, "DRAAdminAccess"), "");
  EXPECT_EQ(
      why({{"DynamicResourceAllocation", true}}, "DynamicResourceAllocation"),
      "");
  EXPECT_EQ(
      why({{"DynamicResourceAllocation", false}}, "DynamicResourceAllocation"),
      "feature gate 'DynamicResourceAllocation' is locked: it is always on");
  EXPECT_EQ(why({{"Accelerators", true}}, "Accelerators"),
            "feature gate 'Accelerators' is not known");
  EXPECT_EQ(
      why({{"DRAWorkloadResourceClaims", true}, {"GenericWorkload", false}},
          "DRAWorkloadResourceClaims"),
      "feature gate 'DRAWorkloadResourceClaims' needs 'GenericWorkload'");
  EXPECT_EQ(
      why({{"DRAWorkloadResourceClaims", true}, {"GenericWorkload", true}},
          "DRAWorkloadResourceClaims"),
      "");
}

}  // namespace
}  // namespace devmgr
