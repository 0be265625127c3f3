// SPDX-License-Identifier: Apache-2.0
#include "common/feature_gates.h"

#include <devmgr/feature_gates.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/kubelet_gates.h"

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
    EXPECT_FALSE(IsIdleGate(gate.name)) << gate.name;
    EXPECT_NE(FindKubeletGate(gate.name), nullptr) << gate.name;
    EXPECT_EQ(IsOn({}, gate.feature), gate.on_by_default) << gate.name;
    const std::string name(gate.name);
    EXPECT_FALSE(IsOn({{name, false}}, gate.feature)) << name;
    EXPECT_TRUE(IsOn({{name, true}}, gate.feature)) << name;
  }
  EXPECT_EQ(FindFeatureGate("Accelerators"), nullptr);
}

TEST(FeatureGatesTest, GatesOfKubeletsAreFoundByNameAndInOrder) {
  const auto gates = KubeletGates();
  EXPECT_GT(gates.size(), 290u);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const KubeletGate& gate = gates[i];
    EXPECT_TRUE(i == 0 || gates[i - 1].name < gate.name) << gate.name;
    EXPECT_EQ(FindKubeletGate(gate.name), &gate);
    EXPECT_LE(kFirstKnownRelease, gate.since) << gate.name;
    EXPECT_LE(gate.since, gate.until) << gate.name;
    EXPECT_LE(gate.until, kLastKnownRelease) << gate.name;
    if (gate.locked_since == 0) continue;
    EXPECT_LE(gate.since, gate.locked_since) << gate.name;
    EXPECT_LE(gate.locked_since, gate.until) << gate.name;
  }
  // Names that are only in some releases, and those of the shared libraries.
  for (const char* name :
       {"SidecarContainers", "GangScheduling", "WorkloadAwarePreemption",
        "DRADerivedAttributes", "AllAlpha", "AllBeta", "ContextualLogging",
        "WatchListClient", "APIServerIdentity", "CustomCPUCFSQuotaPeriod"}) {
    EXPECT_TRUE(IsIdleGate(name)) << name;
  }
  EXPECT_EQ(FindKubeletGate("GangScheduling")->until, 36);
  EXPECT_EQ(FindKubeletGate("DRAExtendedResource")->locked_since, 37);
}

/// All that kubelets of `release` know, each as it is set there by its lock,
/// else to `on`.
std::map<std::string, bool> ListOf(int release, bool on) {
  std::map<std::string, bool> gates;
  for (const KubeletGate& gate : KubeletGates()) {
    if (release < gate.since || release > gate.until) continue;
    const bool is_locked =
        gate.locked_since != 0 && gate.locked_since <= release;
    gates[std::string(gate.name)] = is_locked ? gate.locked_to : on;
  }
  return gates;
}

// The first gate that is not one of devices used to refuse the start.
TEST(FeatureGatesTest, TheWholeListOfAKubeletIsTaken) {
  for (int release = kFirstKnownRelease; release <= kLastKnownRelease;
       ++release) {
    for (const bool on : {true, false}) {
      auto gates = ListOf(release, on);
      EXPECT_GT(gates.size(), 200u);
      // A kubelet refuses the one without the other, too.
      if (!on) gates.erase("GenericWorkload");
      EXPECT_TRUE(CheckFeatureGates(gates).ok())
          << release << CheckFeatureGates(gates).ToString();
      EXPECT_NE(IdleGatesText(gates), "");
    }
  }
}

TEST(FeatureGatesTest, WhatCannotBeTurnedIsSaid) {
  const auto why = [](std::map<std::string, bool> gates,
                      const std::string& gate) {
    return WhyNotGate(gates, gate);
  };
  EXPECT_EQ(why({{"DRAExtendedResource", false}}, "DRAExtendedResource"), "");
  EXPECT_EQ(why({{"DRAAdminAccess", false}}, "DRAAdminAccess"), "");
  EXPECT_EQ(
      why({{"DynamicResourceAllocation", false}}, "DynamicResourceAllocation"),
      "");
  EXPECT_EQ(why({{"Accelerators", true}}, "Accelerators"),
            "feature gate 'Accelerators' is not known");
  EXPECT_EQ(why({{"DRAAdminAcess", true}}, "DRAAdminAcess"),
            "feature gate 'DRAAdminAcess' is not known; is 'DRAAdminAccess' "
            "meant?");
  EXPECT_EQ(why({{"draExtendedresource", true}}, "draExtendedresource"),
            "feature gate 'draExtendedresource' is not known; is "
            "'DRAExtendedResource' meant?");
  EXPECT_EQ(
      why({{"DRAWorkloadResourceClaims", true}, {"GenericWorkload", false}},
          "DRAWorkloadResourceClaims"),
      "feature gate 'DRAWorkloadResourceClaims' needs 'GenericWorkload'");
  EXPECT_EQ(
      why({{"DRAWorkloadResourceClaims", true}, {"GenericWorkload", true}},
          "DRAWorkloadResourceClaims"),
      "");
}

TEST(FeatureGatesTest, AllMisspeltNamesAreInOneError) {
  EXPECT_EQ(std::string(CheckFeatureGates(
                            {{"A", true}, {"B", false}, {"AllBeta", true}})
                            .message()),
            "feature gate 'A' is not known; feature gate 'B' is not known");
  std::map<std::string, bool> many;
  for (char c = 'A'; c <= 'Z'; ++c) many[std::string("Unknown") + c] = true;
  const std::string text(CheckFeatureGates(many).message());
  EXPECT_TRUE(text.ends_with("; and 16 more")) << text;
}

TEST(FeatureGatesTest, GatesWithoutEffectAndAgainstTheirLockAreOneTextEach) {
  EXPECT_TRUE(FeatureGateWarnings({}).empty());
  EXPECT_TRUE(FeatureGateWarnings({{"DRAExtendedResource", true},
                                   {"ResourceHealthStatus", false}})
                  .empty());
  const auto texts = FeatureGateWarnings({{"DRAAdminAccess", false},
                                          {"DRAExtendedResource", false},
                                          {"DRAPrioritizedList", false},
                                          {"DynamicResourceAllocation", true},
                                          {"GitRepoVolumeDriver", true},
                                          {"NodeSwap", true},
                                          {"SidecarContainers", false}});
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0],
            "feature gates without effect on this node: "
            "DynamicResourceAllocation, NodeSwap");
  EXPECT_EQ(texts[1],
            "feature gates set against their lock: "
            "DRAAdminAccess=false (locked to true since Kubernetes 1.36; it "
            "turns nothing here), "
            "DRAExtendedResource=false (locked to true since Kubernetes 1.37; "
            "it is off here all the same), "
            "DRAPrioritizedList=false (locked to true since Kubernetes 1.37; "
            "it stays on here), "
            "GitRepoVolumeDriver=true (locked to false since Kubernetes 1.36; "
            "it turns nothing here), "
            "SidecarContainers=false (locked to true since Kubernetes 1.34 or "
            "before; it turns nothing here)");
}

}  // namespace
}  // namespace devmgr
