// SPDX-License-Identifier: Apache-2.0
//
// Taints, counters, capacity and binding conditions, scenario by scenario.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "allocator/bed.h"

namespace devmgr::allocator {
namespace {

DeviceToleration Toleration(const std::string& key, const std::string& effect,
                            const std::string& op = "Exists",
                            const std::string& value = "") {
  DeviceToleration toleration;
  toleration.key = key;
  toleration.op = op;
  toleration.value = value;
  toleration.effect = effect;
  return toleration;
}

// AL-048
TEST(AllocatorTaints, KeepOffWhatDoesNotTolerateThem) {
  Bed bed;
  bed.Slice(
      "n1", "p1",
      {Dev("d1").Taint("t", "NoSchedule"), Dev("d2").Taint("t", "NoExecute")});
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
  EXPECT_EQ(bed.Solve(Ask("A")
                          .Tolerate(Toleration("t", "NoExecute"))
                          .Tolerate(Toleration("unused", ""))),
            "q0=p1/d2");
  // All of them, as eviction looks at them.
  const auto& result = bed.outcome.allocations[0].allocation.results[0];
  ASSERT_EQ(result.tolerations.size(), 2U);
  EXPECT_EQ(result.tolerations[0].effect, "NoExecute");
  bed.features.device_taints = false;
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
}

// AL-049
TEST(AllocatorTaints, NeedATolerationEach) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Taint("t", "NoSchedule").Taint("t", "NoExecute")});
  EXPECT_EQ(bed.Solve(Ask("A").Tolerate(Toleration("t", "NoExecute"))),
            "no-solution");
  EXPECT_EQ(bed.Solve(Ask("A")
                          .Tolerate(Toleration("t", "NoExecute"))
                          .Tolerate(Toleration("t", "NoSchedule"))),
            "q0=p1/d1");
  bed.Slice("n1", "p2",
            {Dev("d1").Taint("t", "None").Taint("t", "NoTomorrow")});
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p2/d1");
}

// AL-050
TEST(AllocatorTaints, AreToleratedByKeyValueAndEffect) {
  const auto solve = [](const DeviceToleration& toleration) {
    Bed bed;
    bed.Slice(
        "n1", "p1",
        {Dev("d1").Taint("t", "NoSchedule", "v").Taint("t", "NoExecute", "v")});
    return bed.Verdict(Ask("A").Tolerate(toleration));
  };
  EXPECT_EQ(solve(Toleration("", "", "Exists")), "solved");
  EXPECT_EQ(solve(Toleration("t", "", "Exists")), "solved");
  EXPECT_EQ(solve(Toleration("other", "", "Exists")), "no-solution");
  EXPECT_EQ(solve(Toleration("t", "", "Equal", "v")), "solved");
  EXPECT_EQ(solve(Toleration("t", "", "", "v")), "solved");
  EXPECT_EQ(solve(Toleration("t", "", "Equal", "w")), "no-solution");
  EXPECT_EQ(solve(Toleration("t", "", "Like", "v")), "no-solution");
  EXPECT_EQ(solve(Toleration("t", "NoSchedule", "Exists")), "no-solution");
}

TEST(AllocatorTaints, AreThoseOfRulesToo) {
  const auto solve = [](std::optional<DeviceTaintSelector> selector) {
    Bed bed;
    bed.Slice("n1", "p1", {Dev("d1"), Dev("d2")});
    DeviceTaintRule& rule = bed.rules.emplace_back();
    rule.device_selector = std::move(selector);
    rule.taint = {"t", "", "NoSchedule", ""};
    return bed.Solve(Ask("A"));
  };
  EXPECT_EQ(solve(std::nullopt), "q0=p1/d1");
  EXPECT_EQ(solve(DeviceTaintSelector()), "no-solution");
  EXPECT_EQ(solve(DeviceTaintSelector{"a", "p1", "d1"}), "q0=p1/d2");
  EXPECT_EQ(solve(DeviceTaintSelector{{}, {}, "d1"}), "q0=p1/d2");
  EXPECT_EQ(solve(DeviceTaintSelector{"b", "p1", "d1"}), "q0=p1/d1");
  EXPECT_EQ(solve(DeviceTaintSelector{"a", "p2", {}}), "q0=p1/d1");
}

Dev Part(const std::string& name, const std::string& memory) {
  return Dev(name).Uses("set", {{"memory", memory}});
}

// AL-051
TEST(AllocatorCounters, AreSharedByThePartitionsOfADevice) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "8Gi"}});
  bed.Slice("n1", "p1",
            {Part("d1", "4Gi"), Part("d2", "6Gi"), Part("d3", "4Gi")});
  EXPECT_EQ(bed.Solve({Want().One(Ask("A")).One(Ask("A"))}),
            "q0=p1/d1 q1=p1/d3");
  const auto& charges = bed.outcome.allocations[0].charges;
  ASSERT_EQ(charges.size(), 2U);
  EXPECT_EQ(charges[1].device.device, "d3");
  EXPECT_EQ(charges[1].counters.at({"set", "memory"}), Q("4Gi"));
}

// AL-052
TEST(AllocatorCounters, MayBeOverdrawn) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "18Gi"}});
  bed.Slice("n1", "p1",
            {Part("d1", "1Gi"), Part("d2", "20Gi"), Part("d3", "0")});
  bed.Held("d2");
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

// AL-053
TEST(AllocatorCounters, ThatAreMissingMakeAPoolInvalid) {
  const auto solve = [](const Dev& device) {
    Bed bed;
    bed.Counters("p1", "set", {{"memory", "8Gi"}});
    bed.Slice("n1", "p1", {device});
    bed.Counters("p2", "other", {{"memory", "8Gi"}}, "b");
    return bed.Solve(Ask("A"));
  };
  const std::string invalid =
      "here-not-now: invalid resource pools were encountered: a/p1: device "
      "'d1' uses counter ";
  EXPECT_EQ(solve(Dev("d1").Uses("gone", {{"memory", "1"}})),
            invalid + "set 'gone', which is missing");
  EXPECT_EQ(solve(Dev("d1").Uses("other", {{"memory", "1"}})),
            invalid + "set 'other', which is missing");
  EXPECT_EQ(solve(Dev("d1").Uses("set", {{"cores", "1"}})),
            invalid + "'cores', which counter set 'set' lacks");
}

TEST(AllocatorCounters, MakeAPoolInvalidFromAnotherNodeToo) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "8Gi"}});
  bed.Slice("n1", "p1", {Part("d1", "1")});
  bed.Slice("n2", "p1", {Dev("d2").Uses("gone", {{"memory", "1"}})});
  EXPECT_EQ(bed.Verdict(Ask("A")), "here-not-now");
  bed.slices.back().devices.clear();
  bed.slices.back().shared_counters = bed.slices.front().shared_counters;
  EXPECT_EQ(bed.Solve(Ask("A")),
            "here-not-now: invalid resource pools were encountered: a/p1: "
            "duplicate counter set name 'set'");
}

// Also what devices on other nodes use.
TEST(AllocatorCounters, AreUsedByDevicesOfOtherNodes) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "8Gi"}});
  bed.Slice("n1", "p1", {Part("d1", "4Gi")});
  bed.Slice("n2", "p1", {Part("d2", "6Gi")});
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
  bed.Held("d2");
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

// Δ1
TEST(AllocatorCounters, OfTwoDriversAreNotTheSame) {
  Bed bed;
  for (const char* driver : {"a", "b"}) {
    bed.Counters("n1", "set", {{"memory", "8Gi"}}, driver);
    bed.Slice("n1", "n1", {Part("d1", "8Gi")}, driver);
  }
  EXPECT_EQ(bed.Solve({Want().One(Ask("A")).One(Ask("B"))}),
            "q0=n1/d1 q1=n1/d1");
  bed.Held("d1", "n1", "a");
  EXPECT_EQ(bed.Solve(Ask("B")), "q0=n1/d1");
}

// Δ6
TEST(AllocatorCounters, StayAsTheyWereChargedWhenASliceChanges) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "8Gi"}});
  bed.Slice("n1", "p1", {Part("d1", "8Gi"), Part("d2", "4Gi")});
  Want claim("first");
  claim.One(Ask("A"));
  ASSERT_EQ(bed.Solve({claim}), "q0=p1/d1");
  const Allocation first = bed.outcome.allocations[0];
  bed.held.Add(claim.metadata, first.allocation, &first.charges);
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
  bed.slices.back().devices = {Part("d1", "1Gi"), Part("d2", "4Gi")};
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
  bed.slices.back().devices = {Part("d2", "4Gi")};
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
  bed.held.Remove(claim.metadata, first.allocation);
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d2");
  EXPECT_EQ(bed.held, AllocatedState());
  // Without a record it is what the slice says today.
  bed.held.Add(claim.metadata, first.allocation);
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d2");
}

// AL-054
TEST(AllocatorCounters, KeepDevicesOutWhileTheyAreOff) {
  Bed bed;
  bed.features.partitionable_devices = false;
  bed.Slice("n1", "p1", {Part("d1", "1"), Dev("d2")});
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d2");
  bed.slices.front().devices = {Part("d1", "1")};
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

// AL-055
TEST(AllocatorNodes, AreSaidByEachDevice) {
  Bed bed;
  bed.Slice("", "p1",
            {Dev("d1").Cap("memory", "4Gi").On("n1"),
             Dev("d2").Cap("memory", "6Gi").On("n2")})
      .per_device_node_selection = true;
  const Want claim =
      Want().First({Ask("A").If(AtLeast("6Gi")), Ask("A").If(AtLeast("4Gi"))});
  EXPECT_EQ(bed.Solve({claim}), "q0/s1=p1/d1");
  EXPECT_EQ(NodesText(bed.outcome.allocations[0].allocation),
            "metadata.name In n1");
  SliceDevice& device = bed.slices.front().devices.front();
  device.node_name = "";
  device.node_selector = {
      {{.match_expressions = {{"region", "In", {"r1"}}}, .match_fields = {}}}};
  EXPECT_EQ(bed.Solve({claim}), "q0/s1=p1/d1");
  EXPECT_EQ(NodesText(bed.outcome.allocations[0].allocation), "region In r1");
  bed.features.partitionable_devices = false;
  EXPECT_EQ(bed.Solve({claim}), "no-solution");
}

// AL-056
TEST(AllocatorCounters, MakeTheSearchGoBack) {
  Bed bed;
  bed.Counters("p1", "set",
               {{"memory", "70Gi"},
                {"cpu1", "1"},
                {"cpu2", "1"},
                {"cpu3", "1"},
                {"cpu4", "1"},
                {"cpu5", "1"},
                {"cpu6", "1"},
                {"cpu7", "1"},
                {"cpu8", "1"}});
  std::vector<SliceDevice> devices;
  for (int i = 1; i <= 8; ++i) {
    devices.push_back(Dev(fmt::format("d{}", i))
                          .Uses("set", {{"memory", i == 1 ? "20Gi" : "10Gi"},
                                        {fmt::format("cpu{}", i), "1"}}));
  }
  bed.Slice("n1", "p1", devices);
  EXPECT_EQ(bed.Solve(Ask("A", 7)),
            "q0=p1/d2 q0=p1/d3 q0=p1/d4 q0=p1/d5 q0=p1/d6 q0=p1/d7 q0=p1/d8");
}

// AL-057
TEST(AllocatorCapacity, IsSharedByClaims) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Shared().Cap("memory", "2")});
  const auto claim = [](const std::string& name) {
    return Want(name).One(Ask("A").Cap("memory", "1"));
  };
  EXPECT_EQ(bed.Solve({claim("one"), claim("two")}), "q0=p1/d1 | q0=p1/d1");
  std::set<std::string> shares;
  for (const Allocation& each : bed.outcome.allocations) {
    const auto& result = each.allocation.results[0];
    shares.insert(result.share_id);
    EXPECT_EQ(result.share_id.size(), 36U);
    EXPECT_EQ(result.consumed_capacity.at("memory"), Q("1"));
  }
  EXPECT_EQ(shares.size(), 2U);
  EXPECT_EQ(bed.Solve({claim("one"), claim("two"), claim("three")}),
            "no-solution");
}

TEST(AllocatorCapacity, HasSharesNamedByTheCaller) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Shared()});
  bed.options.new_share_id = [] { return "an-id"; };
  ASSERT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
  const auto& result = bed.outcome.allocations[0].allocation.results[0];
  EXPECT_EQ(result.share_id, "an-id");
  EXPECT_TRUE(result.consumed_capacity.empty());
}

// AL-058
TEST(AllocatorCapacity, GoesAsAWholeToARequestThatNamesNone) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Shared().Cap("memory", "1"),
             Dev("d2").Shared().Cap("memory", "1")});
  EXPECT_EQ(bed.Solve({Want("one").One(Ask("A")), Want("two").One(Ask("A"))}),
            "q0=p1/d1 | q0=p1/d2");
  for (const Allocation& each : bed.outcome.allocations) {
    EXPECT_EQ(each.allocation.results[0].consumed_capacity.at("memory"),
              Q("1"));
  }
}

/// What is charged for `request` by a device with this policy, or the result.
std::string Charged(const CapacityRequestPolicy& policy,
                    const std::string& value, const std::string& request) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Shared().Cap("memory", value).Policy("memory", policy)});
  Ask ask("A");
  if (!request.empty()) ask.Cap("memory", request);
  const Outcome& outcome = bed.Run({Want().One(ask)});
  if (outcome.result != Result::kSolved) return TextOf(outcome);
  return outcome.allocations[0]
      .allocation.results[0]
      .consumed_capacity.at("memory")
      .text.str();
}

CapacityRequestPolicy Range(const std::string& default_value,
                            const std::string& min, const std::string& step,
                            const std::string& max = "") {
  CapacityRequestPolicy policy;
  policy.default_value = Q(default_value);
  policy.valid_range.emplace().min = Q(min);
  if (!step.empty()) policy.valid_range->step = Q(step);
  if (!max.empty()) policy.valid_range->max = Q(max);
  return policy;
}

// AL-059
TEST(AllocatorCapacity, IsRoundedUpWithinARange) {
  const CapacityRequestPolicy policy = Range("2", "2", "2", "4");
  EXPECT_EQ(Charged(policy, "10", "1"), "2");
  EXPECT_EQ(Charged(policy, "10", "2"), "2");
  EXPECT_EQ(Charged(policy, "10", "3"), "4");
  EXPECT_EQ(Charged(policy, "10", "6"), "no-solution");
  EXPECT_EQ(Charged(policy, "10", ""), "2");
  EXPECT_EQ(Charged(Range("2", "2", ""), "10", "3"), "3");
}

// Δ8: exact decimals.
TEST(AllocatorCapacity, IsRoundedByAmountWhateverItsUnits) {
  EXPECT_EQ(Charged(Range("1", "500m", "500m"), "4", "1200m"), "1500m");
  EXPECT_EQ(Charged(Range("1", "500m", "500m"), "4", "1600m"), "2");
  EXPECT_EQ(Charged(Range("1Gi", "1Gi", "512Mi"), "4Gi", "1025Mi"), "1536Mi");
  EXPECT_EQ(Charged(Range("1Gi", "1Gi", "512Mi"), "4Gi", "1537Mi"), "2Gi");
  EXPECT_EQ(Charged(Range("1Gi", "1Gi", "1"), "4Gi", "1073741825500m"),
            "1073741826");
  // The default is one of the range's by amount.
  EXPECT_EQ(Charged(Range("1024Mi", "1Gi", "1Gi"), "4Gi", "1Gi"), "1Gi");
  EXPECT_EQ(Charged(Range("1", "1", "3"), "9223372036854775806",
                    "9223372036854775806"),
            "no-solution");
  EXPECT_EQ(Charged(Range("1", "1", "3"), "9223372036854775807",
                    "9223372036854775806"),
            "9223372036854775807");
}

// AL-109
TEST(AllocatorCapacity, IsRoundedUpToAValidValue) {
  CapacityRequestPolicy policy;
  policy.default_value = Q("1");
  policy.valid_values = {Q("1"), Q("3")};
  EXPECT_EQ(Charged(policy, "3", "2"), "3");
  EXPECT_EQ(Charged(policy, "3", "4"), "no-solution");
  EXPECT_EQ(Charged(policy, "3", ""), "1");
}

TEST(AllocatorCapacity, IsNeverNegative) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Shared().Cap("memory", "3")});
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "-1")),
            "bad-input: claim ns/claim, request q0: checking capacity for "
            "device a/p1/d1: capacity 'memory' is negative");
}

TEST(AllocatorCapacity, IsNotAskedForWhileItIsOff) {
  Bed bed;
  bed.features.consumable_capacity = false;
  bed.Slice("n1", "p1", {Dev("d1").Shared().Cap("memory", "3")});
  EXPECT_EQ(bed.Verdict(Ask("A").Cap("memory", "1")), "bad-input");
  EXPECT_EQ(bed.Solve({Want("one").One(Ask("A"))}), "q0=p1/d1");
  EXPECT_EQ(bed.outcome.allocations[0].allocation.results[0].share_id, "");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 1)).One(Ask("A"))}), "no-solution");
}

// AL-060
TEST(AllocatorCapacity, IsAskedForByTheDevicesOwnName) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Cap("a/memory", "1"), Dev("d2"),
             Dev("d3").Cap("memory", "1")});
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "1")), "q0=p1/d3");
  EXPECT_EQ(bed.Solve(Ask("A", 2).Cap("memory", "1")), "no-solution");
  Ask all = Ask::All("A");
  EXPECT_EQ(bed.Solve(all.Cap("memory", "1")), "q0=p1/d3");
}

// As upstream has it since 1.37: one that is full at the moment is one of all.
TEST(AllocatorCapacity, ThatIsTakenKeepsADeviceAmongAll) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Shared().Cap("memory", "2"),
             Dev("d2").Shared().Cap("memory", "2")});
  bed.HeldShare("d1", {{"memory", "2"}});
  Ask all = Ask::All("A");
  EXPECT_EQ(bed.Solve(all.Cap("memory", "1")), "no-solution");
}

// AL-061
TEST(AllocatorCapacity, IsLookedForOnTheNextDevice) {
  Bed bed;
  bed.Slice("n1", "p1",
            {Dev("d1").Shared().Cap("memory", "2"),
             Dev("d2").Shared().Cap("memory", "2")});
  bed.HeldShare("d1", {{"memory", "2"}});
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "2")), "q0=p1/d2");
}

// AL-062, and Δ7.
TEST(AllocatorCapacity, IsNotSharedWithAClaimThatHasTheWholeDevice) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Shared().Cap("memory", "2")});
  bed.Held("d1");
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "1")), "no-solution");

  Bed turned;
  turned.Slice("n1", "p1", {Dev("d1")});
  turned.HeldShare("d1");
  EXPECT_EQ(turned.Solve(Ask("A")), "no-solution");
}

Dev SharedPart(const std::string& name) {
  return Dev(name).Shared().Uses("set", {{"slots", "1"}});
}

// AL-063
TEST(AllocatorCounters, AreUsedBySharedDevices) {
  Bed bed;
  bed.Counters("p1", "set", {{"slots", "1"}});
  bed.Slice("n1", "p1",
            {SharedPart("d1").Cap("memory", "2"),
             SharedPart("d2").Cap("memory", "2")});
  bed.HeldShare("d1", {{"memory", "1"}});
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "2")), "no-solution");
  // A further share costs no counters.
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "1")), "q0=p1/d1");
}

TEST(AllocatorCounters, AreChargedOnceForSharesWithoutCapacity) {
  Bed bed;
  bed.Counters("p1", "set", {{"slots", "1"}});
  bed.Slice("n1", "p1", {SharedPart("d1")});
  EXPECT_EQ(bed.Solve({Want("one").One(Ask("A")), Want("two").One(Ask("A"))}),
            "q0=p1/d1 | q0=p1/d1");
  bed.HeldShare("d1");
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
}

// AL-064
TEST(AllocatorBinding, ConditionsAreCopied) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Binds("IsPrepared", "BindingFailed")});
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
  const auto& result = bed.outcome.allocations[0].allocation.results[0];
  EXPECT_EQ(result.binding_conditions, std::vector<std::string>{"IsPrepared"});
  EXPECT_EQ(result.binding_failure_conditions,
            std::vector<std::string>{"BindingFailed"});
  bed.features.device_binding_and_status = false;
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

Dev Grouped(const std::string& name, std::vector<SharedText> groups) {
  return Dev(name).Uses("set", {{"memory", "1"}}, std::move(groups));
}

// AL-065
TEST(AllocatorCounters, AreDrawnOnByCompatibleGroups) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "8"}});
  bed.Slice("n1", "p1",
            {Grouped("d1", {"mig"}), Grouped("d2", {"vgpu"}),
             Grouped("d3", {"mig"}), Grouped("d4", {})});
  bed.Held("d1");
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d3");
  EXPECT_EQ(bed.Solve(Ask("A", 2)), "no-solution");
  bed.held = AllocatedState();
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 2))}), "q0=p1/d1 q0=p1/d3");
}

TEST(AllocatorCounters, NeedAGroupThatAllHaveInCommon) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "8"}});
  bed.Slice("n1", "p1",
            {Grouped("d1", {"x", "y"}), Grouped("d2", {"x"}),
             Grouped("d3", {"y"}), Grouped("d4", {"y", "z"})});
  EXPECT_EQ(bed.Solve(Ask("A", 3)), "q0=p1/d1 q0=p1/d3 q0=p1/d4");
  bed.features.compatibility_groups = false;
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

TEST(AllocatorFeatures, SkippedCallsNeedTheNodesDeclaration) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")}).skip_node_operations = {"*"};
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
  bed.node.declared_features = {"DRAOptionalNodeOperations"};
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
  EXPECT_EQ(
      bed.outcome.allocations[0].allocation.results[0].skip_node_operations,
      std::vector<std::string>{"*"});
  bed.features.optional_node_operations = false;
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

TEST(AllocatorFeatures, DerivedAttributesAreRefused) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  Ask ask("A");
  ask.derived_attributes = {{"x/y", "1"}};
  EXPECT_EQ(bed.Verdict(ask), "bad-input");
}

// AL-110
TEST(AllocatorCapacity, OfAWholeDeviceIsAFilter) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Cap("memory", "1")});
  const Ask ask = Ask("A").Cap("memory", "1");
  EXPECT_EQ(bed.Solve(ask), "q0=p1/d1");
  const auto& result = bed.outcome.allocations[0].allocation.results[0];
  EXPECT_EQ(result.share_id, "");
  EXPECT_TRUE(result.consumed_capacity.empty());
  EXPECT_EQ(bed.Solve({Want("one").One(ask), Want("two").One(ask)}),
            "no-solution");
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "2")), "no-solution");
}

}  // namespace
}  // namespace devmgr::allocator
