// SPDX-License-Identifier: Apache-2.0
#include "control/eviction_plan.h"

#include <devmgr/manifests.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "state/record_builders.h"

namespace devmgr::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Of the taints that say when they came up.
constexpr std::int64_t kAddedMs = 1'767'323'045'000;  // 2026-01-02T03:04:05Z
constexpr std::int64_t kNowMs = kAddedMs + 1'000;

DeviceTaint Broken(const std::string& effect = "NoExecute",
                   const std::string& time = "2026-01-02T03:04:05Z") {
  return {"example.com/broken", "fan", effect, time};
}

DeviceToleration Tolerates(std::optional<std::int64_t> seconds) {
  return {"example.com/broken", "Exists", "", "NoExecute", seconds};
}

DeviceTaintRule Rule(const std::string& device, const DeviceTaint& taint) {
  DeviceTaintRule rule;
  rule.metadata.name = "rule";
  rule.device_selector = DeviceTaintSelector{state::kDriver, "n1", device};
  rule.taint = taint;
  return rule;
}

ResourceSlice Slice(const std::string& name, std::int64_t generation,
                    std::vector<SliceDevice> devices) {
  ResourceSlice slice;
  slice.metadata.name = name;
  slice.driver = state::kDriver;
  slice.pool = "n1";
  slice.pool_generation = generation;
  slice.devices = std::move(devices);
  return slice;
}

SliceDevice Device(const std::string& name, std::vector<DeviceTaint> taints) {
  SliceDevice device;
  device.name = name;
  for (DeviceTaint& taint : taints) device.taints.push_back(std::move(taint));
  return device;
}

class EvictionPlanTest : public ::testing::Test {
 protected:
  template <typename T>
  static void Put(const T& object, ObjectMap<T>* objects) {
    objects->insert_or_assign(object.metadata.FullName(),
                              std::make_shared<const T>(object));
  }
  void Put(const DeviceTaintRule& rule) {
    Put(rule, &objects_.device_taint_rules);
  }
  void Put(const ResourceSlice& slice) {
    Put(slice, &objects_.resource_slices);
  }

  /// A claim with this device, for pods of the same names.
  void Hold(const std::string& claim, const std::string& device,
            const std::vector<std::string>& pods,
            std::vector<DeviceToleration> tolerations = {}) {
    ResourceClaim object;
    object.metadata.ns = "default";
    object.metadata.name = claim;
    object.metadata.uid = "u-" + claim;
    DeviceRequestAllocationResult result;
    result.driver = state::kDriver;
    result.pool = "n1";
    result.device = device;
    result.tolerations = std::move(tolerations);
    object.status.allocation = AllocationResult{};
    object.status.allocation->results = {result};
    for (const std::string& pod : pods) {
      object.status.reserved_for.push_back({"", "pods", pod, pod});
      state_.Put(std::make_shared<const state::PodRecord>(
          state::MakePod(PodUid{pod}, pod, state::PodPhase::kWaiting)));
    }
    auto record = std::make_shared<state::LocalClaimRecord>();
    record->uid.value = object.metadata.uid;
    record->object = std::make_shared<const ResourceClaim>(object);
    state_.Put(std::shared_ptr<const state::LocalClaimRecord>(record));
  }

  /// Pods and when, in seconds after `kAddedMs`.
  std::map<std::string, std::int64_t> Due() {
    plan_.Follow(state_, objects_, kNowMs);
    std::map<std::string, std::int64_t> due;
    for (const auto& [pod, eviction] : plan_.OfPods(state_)) {
      due[pod.value] = (eviction.at_ms - kAddedMs) / 1'000;
    }
    return due;
  }
  std::string Why(const std::string& pod) {
    return plan_.OfPods(state_).at(PodUid{pod}).message;
  }

  state::State state_;
  ObjectSnapshot objects_;
  EvictionPlan plan_;
};

TEST_F(EvictionPlanTest, AL190OneAtOnceOneWhenItsTolerationEnds) {
  Hold("of-p", "d1", {"p"}, {Tolerates(30)});
  Hold("of-q", "d1", {"q"});
  Hold("of-r", "d2", {"r"});
  EXPECT_THAT(Due(), IsEmpty());
  Put(Rule("d1", Broken()));
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 30), Pair("q", 0)));
  EXPECT_EQ(Why("p"),
            "device d.example.com/n1/d1 of ResourceClaim default/of-p has the "
            "taint example.com/broken=fan:NoExecute of DeviceTaintRule rule "
            "since 2026-01-02T03:04:05Z, which it tolerates for 30 s");
  EXPECT_NE(plan_.OfClaim({"u-of-p"}), nullptr);
  EXPECT_EQ(plan_.OfClaim({"u-of-r"}), nullptr);
  objects_.device_taint_rules.erase(ObjectName{"", "rule"});
  EXPECT_THAT(Due(), IsEmpty());
}

// No slice lists the device in the test above; taints of slices count as well.
TEST_F(EvictionPlanTest, TaintsOfSlicesCountOfTheNewestGenerationOnly) {
  Hold("c", "d1", {"p"});
  Put(Slice("old", 1, {Device("d1", {Broken()})}));
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 0)));
  EXPECT_THAT(Why("p"), HasSubstr("of ResourceSlice old"));
  Put(Slice("new", 2, {Device("d1", {})}));
  EXPECT_THAT(Due(), IsEmpty());
  objects_.resource_slices.erase(ObjectName{"", "new"});
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 0)));
  Put(Slice("old", 1, {Device("d1", {Broken("NoSchedule")})}));
  EXPECT_THAT(Due(), IsEmpty());
}

TEST_F(EvictionPlanTest, TheEarliestOverTaintsAndDevicesCounts) {
  Hold("one", "d1", {"p"}, {Tolerates(50)});
  Hold("two", "d2", {"p"}, {Tolerates(40)});
  DeviceTaintRule late = Rule("d1", Broken());
  late.taint.time_added = "2026-01-02T03:04:25Z";
  Put(late);
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 70)));
  Put(Slice("s", 1, {Device("d1", {}), Device("d2", {Broken()})}));
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 40)));
}

TEST_F(EvictionPlanTest, ClaimsThatComeAndGoAreFollowed) {
  Put(Rule("d1", Broken()));
  EXPECT_THAT(Due(), IsEmpty());
  Hold("c", "d1", {"p", "q"});
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 0), Pair("q", 0)));
  state_.Put(std::make_shared<const state::PodRecord>(
      state::MakePod(PodUid{"q"}, "q", state::PodPhase::kRejected)));
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 0)));
  Hold("c", "d2", {"p"});
  EXPECT_THAT(Due(), IsEmpty());
}

// Manifests need not say when. An edit elsewhere in the slice begins nothing
// anew.
TEST_F(EvictionPlanTest, ATaintWithoutATimeCountsSinceItWasSeen) {
  Hold("c", "d1", {"p"}, {Tolerates(5)});
  Put(Slice("s", 1, {Device("d1", {Broken("NoExecute", "")})}));
  plan_.Follow(state_, objects_, kAddedMs);
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 5)));
  Put(Slice("s", 1,
            {Device("d0", {}), Device("d1", {Broken("NoExecute", "")})}));
  EXPECT_THAT(Due(), ElementsAre(Pair("p", 5)));
}

TEST(ToleratedUntilTest, LeastSecondsCountAndNoneIsForEver) {
  const auto until = [](std::vector<DeviceToleration> tolerations) {
    return ToleratedUntil(Broken(), 1'000, tolerations);
  };
  EXPECT_EQ(until({}), 1'000);
  EXPECT_EQ(until({Tolerates(std::nullopt)}), std::nullopt);
  EXPECT_EQ(until({Tolerates(std::nullopt), Tolerates(20), Tolerates(10)}),
            11'000);
  EXPECT_EQ(until({Tolerates(0)}), 1'000);
  EXPECT_EQ(until({Tolerates(-5)}), 1'000);
  EXPECT_GT(*until({Tolerates(std::numeric_limits<std::int64_t>::max())}),
            1'000);
  DeviceToleration other = Tolerates(std::nullopt);
  other.effect = "NoSchedule";
  EXPECT_EQ(until({other}), 1'000);
}

TEST_F(EvictionPlanTest, AL191ADryRunCountsAndEvictsNoPod) {
  Hold("of-p", "d1", {"p"}, {Tolerates(30)});
  Hold("of-q", "d1", {"q"});
  Hold("of-r", "d1", {"r"}, {Tolerates(std::nullopt)});
  Put(Slice("s", 1, {Device("d1", {}), Device("d2", {})}));
  const DeviceTaintRule rule = Rule("d1", Broken("None"));
  Put(rule);
  EXPECT_THAT(Due(), IsEmpty());
  const RuleEffects effects = EffectsOf(rule, objects_.resource_slices, state_);
  EXPECT_EQ(effects, (RuleEffects{1, 1, 2, 1}));
  const Condition condition = DryRunCondition(effects);
  EXPECT_EQ(condition.type, "EvictionInProgress");
  EXPECT_EQ(condition.status, "False");
  EXPECT_EQ(condition.reason, "NoEffect");
  EXPECT_EQ(condition.message,
            "it selects 1 published device and 1 allocated device; with effect "
            "NoExecute 2 pods in 1 namespace would be evicted");
}

TEST_F(EvictionPlanTest, SaysWhichClaimsAreToBeLeftNoMore) {
  Hold("of-p", "d1", {"p"});
  Hold("of-q", "d2", {"q"});
  Put(Rule("d1", Broken()));
  EXPECT_THAT(plan_.Follow(state_, objects_, kNowMs), IsEmpty());
  Put(Rule("d2", Broken()));
  EXPECT_THAT(plan_.Follow(state_, objects_, kNowMs),
              ElementsAre(ObjectName{"default", "of-p"}));
  objects_.device_taint_rules = {};
  EXPECT_THAT(plan_.Follow(state_, objects_, kNowMs),
              ElementsAre(ObjectName{"default", "of-q"}));
  EXPECT_THAT(plan_.Follow(state_, objects_, kNowMs), IsEmpty());
}

}  // namespace
}  // namespace devmgr::control
