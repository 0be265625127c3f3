// SPDX-License-Identifier: Apache-2.0
#include "admission/aligned_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admission/device_verdict.h"
#include "device/devices.h"
#include "support/random_lives.h"
#include "support/status_matchers.h"
#include "topology/masks.h"

namespace devmgr::admission {
namespace {

using device::Healthy;
using device::Held;
using device::Live;
using device::Shortage;
using device::TableOf;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using topology::FirstNodes;
using topology::ResourceHints;

constexpr char kGpu[] = "example.com/gpu";
constexpr char kNic[] = "example.com/nic";

/// A machine, what others hold of it, and a pod.
struct Case {
  state::State state;
  device::InventoryMap inventories;
  device::ReservationTable reservations;
  claim::WantedDevices wanted{{"P"}, {}};
  AlignmentRules rules;
  std::vector<ContainerName> containers;
  ContainerHints providers;
  ContainerHints claims;
  ChoiceHints choices;
  ChoiceHints choices_when_empty;

  explicit Case(topology::Policy policy,
                topology::Scope scope = topology::Scope::kContainer,
                int nodes = 2) {
    rules.options = {.policy = policy, .scope = scope, .max_numa_nodes = 64};
    rules.machine.nodes = FirstNodes(nodes);
  }

  /// Devices `r0`, `r1`, ... of the resource, on these nodes.
  void Have(const std::string& resource, const std::vector<int>& nodes) {
    std::vector<device::Device> devices;
    for (const int node : nodes) {
      devices.push_back(Healthy("r" + std::to_string(devices.size()), {node}));
    }
    inventories[resource] = Live(std::move(devices));
  }
  void Hold(const std::string& pod, const std::string& resource,
            const std::vector<DeviceId>& ids) {
    EXPECT_TRUE(reservations.Add(Held(pod, "app", ids, resource)).ok());
    inventories[resource].UpdateHeld(ids, [&](const DeviceId& id) {
      return reservations.Held(resource).contains(id);
    });
  }
  void Want(const std::string& container, const std::string& resource,
            std::int64_t count,
            device::ContainerKind kind = device::ContainerKind::kApp) {
    wanted.needs.push_back({container, kind, resource, count});
    const bool known = std::find(containers.begin(), containers.end(),
                                 ContainerName(container)) != containers.end();
    if (!known) containers.emplace_back(container);
  }

  absl::StatusOr<AlignedPlan> Plan() const {
    return PlanAligned(
        {state, inventories, reservations}, wanted,
        {rules, containers, claims, providers, choices, choices_when_empty});
  }
  AlignedPlan Planned() const {
    auto plan = Plan();
    EXPECT_THAT(plan.status(), IsOk());
    return plan.ok() ? *std::move(plan) : AlignedPlan();
  }
};

std::vector<DeviceId> Chosen(const AlignedPlan& aligned,
                             const std::string& container,
                             const std::string& resource) {
  for (const device::Reservation& one : aligned.plan.reservations) {
    if (one.container == container && one.resource == resource) {
      return device::IdsOf(one.devices);
    }
  }
  return {};
}

/// Hints of CPUs on just this node.
ContainerHints CpusOn(int node) {
  return
      [node](
          const ContainerName&) -> absl::StatusOr<std::vector<ResourceHints>> {
        return std::vector<ResourceHints>{
            {"cpu", "cpu",
             std::vector<TopologyHint>{{NumaMask::OfNode(node), true}}}};
      };
}

TEST(AlignedPlanTest, UnderNoneThePlanIsAsItWas) {
  Case on(topology::Policy::kNone);
  on.Have(kGpu, {0, 1});
  on.Have(kNic, {1});
  on.Want("c", kGpu, 1);
  on.Want("c", kNic, 1);
  const AlignedPlan plan = on.Planned();
  EXPECT_THAT(Chosen(plan, "c", kGpu), ElementsAre("r0"));
  EXPECT_EQ(plan.alignment, nullptr);
}

TEST(AlignedPlanTest, ShortagesAreJudgedBeforeAlignment) {
  Case on(topology::Policy::kRestricted);
  on.Have(kGpu, {0, 1});
  on.Want("c", kGpu, 3);
  const AlignedPlan plan = on.Planned();
  ASSERT_THAT(plan.plan.shortages, SizeIs(1));
  EXPECT_EQ(plan.plan.shortages[0].kind, Shortage::Kind::kTooFewExist);
  EXPECT_EQ(plan.alignment, nullptr);
}

// The devices that the first container takes are not free for the second one.
TEST(AlignedPlanTest, EachContainerIsAlignedWithWhatThoseBeforeItTake) {
  Case on(topology::Policy::kSingleNumaNode);
  on.Have(kGpu, {0, 0, 1, 1});
  on.Want("a", kGpu, 2);
  on.Want("b", kGpu, 2);
  const AlignedPlan plan = on.Planned();
  EXPECT_THAT(Chosen(plan, "a", kGpu), ElementsAre("r0", "r1"));
  EXPECT_THAT(Chosen(plan, "b", kGpu), ElementsAre("r2", "r3"));
}

TEST(AlignedPlanTest, HoldersInTheWayAreNamed) {
  Case on(topology::Policy::kSingleNumaNode);
  on.Have(kGpu, {0, 0, 1, 1});
  on.Hold("X", kGpu, {"r0"});
  on.Hold("Y", kGpu, {"r2"});
  on.Want("c", kGpu, 2);
  const AlignedPlan plan = on.Planned();
  ASSERT_THAT(plan.plan.shortages, SizeIs(1));
  const Shortage& shortage = plan.plan.shortages[0];
  EXPECT_EQ(shortage.kind, Shortage::Kind::kNotAligned);
  EXPECT_EQ(shortage.requested, 2);
  EXPECT_EQ(shortage.available, 1);
  EXPECT_THAT(shortage.holders, ElementsAre(PodUid{"X"}));
  EXPECT_THAT(device::ShortageText(shortage),
              AllOf(HasSubstr("container 'c' requests 2 devices"),
                    HasSubstr("NUMA node 0: 1 of 2 free there"),
                    HasSubstr("held by 'X'")));
  EXPECT_FALSE(plan.alignment->admitted);
  EXPECT_THAT(plan.alignment->message, HasSubstr("single-numa-node"));
}

TEST(AlignedPlanTest, WhatNoMachineCouldAlignNamesItsResources) {
  Case on(topology::Policy::kSingleNumaNode);
  on.Have(kGpu, {0});
  on.Have(kNic, {1});
  on.Want("c", kGpu, 1);
  on.Want("c", kNic, 1);
  const AlignedPlan plan = on.Planned();
  ASSERT_THAT(plan.plan.shortages, SizeIs(1));
  EXPECT_EQ(plan.plan.shortages[0].kind, Shortage::Kind::kNeverAligned);
  EXPECT_THAT(device::ShortageText(plan.plan.shortages[0]),
              AllOf(HasSubstr(kGpu), HasSubstr(kNic)));
}

TEST(AlignedPlanTest, AVerdictHasTheReasonsOfTheKubelet) {  // BO-148
  Shortage never;
  never.kind = Shortage::Kind::kNeverAligned;
  never.resource = kGpu;
  Shortage now = never;
  now.kind = Shortage::Kind::kNotAligned;
  for (const auto authority : {Authority::kNode, Authority::kScheduler}) {
    DevicePolicy policy;
    policy.authority = authority;
    const auto rejected = JudgeShortages({never}, policy, {}).verdict;
    EXPECT_EQ(rejected.kind, Verdict::Kind::kReject);
    EXPECT_EQ(rejected.reason, "TopologyAffinityError");
    EXPECT_EQ(rejected.message,
              "Resources cannot be allocated with Topology locality");
    const auto judged = JudgeShortages({now}, policy, {}).verdict;
    EXPECT_EQ(judged.kind, authority == Authority::kNode
                               ? Verdict::Kind::kWait
                               : Verdict::Kind::kReject);
    EXPECT_EQ(judged.reason, authority == Authority::kNode
                                 ? "DevicesNotAligned"
                                 : "TopologyAffinityError");
  }
  DevicePolicy strict;
  strict.profile = Profile::kStrictKubelet;
  EXPECT_EQ(JudgeShortages({now}, strict, {}).verdict.reason,
            "TopologyAffinityError");
}

TEST(AlignedPlanTest, WhatHoldsDevicesIsNotAlignedAnew) {
  Case on(topology::Policy::kSingleNumaNode);
  on.Have(kGpu, {0, 1});
  on.Hold("P", kGpu, {"r0"});
  on.wanted.needs = {{"app", device::ContainerKind::kApp, kGpu, 1},
                     {"more", device::ContainerKind::kApp, kGpu, 1}};
  on.containers = {"app", "more"};
  const AlignedPlan plan = on.Planned();
  EXPECT_THAT(plan.plan.shortages, IsEmpty());
  EXPECT_EQ(plan.alignment, nullptr);
  EXPECT_THAT(Chosen(plan, "more", kGpu), ElementsAre("r1"));
}

TEST(AlignedPlanTest, ClaimsCountWhereThisNodeAllocates) {
  Case on(topology::Policy::kSingleNumaNode);
  on.Have(kGpu, {0, 1});
  on.Want("c", kGpu, 1);
  on.claims = CpusOn(1);
  const AlignedPlan shown = on.Planned();
  EXPECT_THAT(Chosen(shown, "c", kGpu), ElementsAre("r0"));
  EXPECT_TRUE(shown.alignment->containers[0].resources[1].informative);
  on.rules.claims_count = true;
  const AlignedPlan counted = on.Planned();
  EXPECT_THAT(Chosen(counted, "c", kGpu), ElementsAre("r1"));
  EXPECT_FALSE(counted.alignment->containers[0].resources[1].informative);
  // A claim on another node refuses no pod.
  on.Hold("X", kGpu, {"r1"});
  const AlignedPlan apart = on.Planned();
  EXPECT_THAT(Chosen(apart, "c", kGpu), ElementsAre("r0"));
  EXPECT_TRUE(apart.alignment->containers[0].resources[1].informative);
}

/// Hints of claims that are about to be allocated on one of these nodes.
ChoiceHints ChoiceOf(const std::vector<int>& nodes) {
  return [nodes](const ContainerName&,
                 const auto&) -> absl::StatusOr<std::vector<ResourceHints>> {
    std::vector<TopologyHint> hints;
    for (const int node : nodes)
      hints.push_back({NumaMask::OfNode(node), true});
    return std::vector<ResourceHints>{{"claim", "own", hints}};
  };
}

TEST(AlignedPlanTest, WhereClaimsCanBeAllocatedCountsAsDevicesDo) {
  for (const auto policy :
       {topology::Policy::kBestEffort, topology::Policy::kRestricted,
        topology::Policy::kSingleNumaNode}) {
    Case on(policy);
    on.Have(kGpu, {0, 1});
    on.Want("c", kGpu, 1);
    on.choices = on.choices_when_empty = ChoiceOf({1});
    const AlignedPlan plan = on.Planned();
    EXPECT_THAT(Chosen(plan, "c", kGpu), ElementsAre("r1"));
    EXPECT_EQ(plan.alignment->containers[0].merged,
              (TopologyHint{NumaMask::OfNode(1), true}));
  }
}

TEST(AlignedPlanTest, DevicesOfClaimsInTheWayAreWaitedFor) {
  Case on(topology::Policy::kRestricted);
  on.Have(kGpu, {0});
  on.Want("c", kGpu, 1);
  on.choices = ChoiceOf({1});
  on.choices_when_empty = ChoiceOf({0, 1});
  const AlignedPlan plan = on.Planned();
  EXPECT_TRUE(plan.waits);
  EXPECT_EQ(plan.possible, NumaMask::OfNode(0));
  EXPECT_THAT(plan.plan.shortages, IsEmpty());
  EXPECT_THAT(plan.plan.reservations, IsEmpty());
  EXPECT_FALSE(plan.alignment->admitted);
  EXPECT_THAT(plan.alignment->message,
              AllOf(HasSubstr(kGpu), HasSubstr("own")));
}

TEST(AlignedPlanTest, DevicesOfPluginsInTheWayOfClaimsAreNamed) {
  Case on(topology::Policy::kSingleNumaNode);
  on.Have(kGpu, {0, 1});
  on.Hold("X", kGpu, {"r1"});
  on.Want("c", kGpu, 1);
  on.choices = on.choices_when_empty = ChoiceOf({1});
  const AlignedPlan plan = on.Planned();
  EXPECT_TRUE(plan.waits);
  ASSERT_THAT(plan.plan.shortages, SizeIs(1));
  EXPECT_EQ(plan.plan.shortages[0].kind, Shortage::Kind::kNotAligned);
  EXPECT_THAT(plan.plan.shortages[0].holders, ElementsAre(PodUid{"X"}));
}

TEST(AlignedPlanTest, ClaimsThatNoMachineCouldAlignAreRefusedForGood) {
  Case on(topology::Policy::kSingleNumaNode);
  on.Have(kGpu, {0});
  on.Want("c", kGpu, 1);
  on.choices = on.choices_when_empty = ChoiceOf({1});
  const AlignedPlan plan = on.Planned();
  EXPECT_FALSE(plan.waits);
  ASSERT_THAT(plan.plan.shortages, SizeIs(1));
  EXPECT_EQ(plan.plan.shortages[0].kind, Shortage::Kind::kNeverAligned);
}

// Claims alone are aligned with each other.
TEST(AlignedPlanTest, AChoiceNeedsNoDevicesOfPlugins) {
  Case on(topology::Policy::kSingleNumaNode);
  on.containers = {"c"};
  on.choices = on.choices_when_empty = ChoiceOf({1});
  EXPECT_EQ(on.Planned().alignment->containers[0].merged,
            (TopologyHint{NumaMask::OfNode(1), true}));
  on.choices = ChoiceOf({});
  const AlignedPlan plan = on.Planned();
  EXPECT_TRUE(plan.waits);
  EXPECT_EQ(plan.possible, NumaMask::OfNode(1));
}

// What this node has allocated is where it is: a pod whose devices are
// elsewhere is refused, until other pods that share the claim are gone.
TEST(AlignedPlanTest, AnAllocatedClaimOfThisNodeIsBinding) {
  Case on(topology::Policy::kRestricted);
  on.rules.claims_count = true;
  on.Have(kGpu, {0});
  on.Want("c", kGpu, 1);
  on.claims =
      [](const ContainerName&) -> absl::StatusOr<std::vector<ResourceHints>> {
    ResourceHints own{"claim", "own",
                      std::vector<TopologyHint>{{NumaMask::OfNode(1), true}}};
    own.binding = true;
    return std::vector<ResourceHints>{own};
  };
  const AlignedPlan plan = on.Planned();
  ASSERT_THAT(plan.plan.shortages, SizeIs(1));
  EXPECT_EQ(plan.plan.shortages[0].kind, Shortage::Kind::kNotAligned);
  on.Have(kGpu, {0, 1});
  const AlignedPlan follows = on.Planned();
  EXPECT_THAT(Chosen(follows, "c", kGpu), ElementsAre("r1"));
  EXPECT_FALSE(follows.alignment->containers[0].resources[1].informative);
}

TEST(AlignedPlanTest, AProviderThatFailsIsAnError) {
  Case on(topology::Policy::kBestEffort);
  on.Have(kGpu, {0, 1});
  on.Want("c", kGpu, 1);
  on.providers =
      [](const ContainerName&) -> absl::StatusOr<std::vector<ResourceHints>> {
    return absl::UnavailableError("not yet");
  };
  EXPECT_THAT(on.Plan().status(),
              StatusIs(absl::StatusCode::kUnavailable, "not yet"));
}

TEST(AlignedPlanTest, WhatAProviderRefusesIsToldApart) {
  Case on(topology::Policy::kSingleNumaNode);
  on.Have(kGpu, {0});
  on.Want("c", kGpu, 1);
  on.providers = CpusOn(1);
  const AlignedPlan plan = on.Planned();
  EXPECT_THAT(plan.provider_refusal, HasSubstr("'cpu'"));
  ASSERT_THAT(plan.plan.shortages, SizeIs(1));
  EXPECT_EQ(plan.plan.shortages[0].kind, Shortage::Kind::kNeverAligned);
}

Case RandomCase(Luck& luck) {
  static constexpr topology::Policy kPolicies[] = {
      topology::Policy::kBestEffort, topology::Policy::kRestricted,
      topology::Policy::kSingleNumaNode};
  const int nodes = 1 + luck.Below(4);
  Case on(kPolicies[luck.Below(3)],
          luck.Chance(50) ? topology::Scope::kContainer : topology::Scope::kPod,
          nodes);
  on.rules.claims_count = luck.Chance(50);
  for (const char* resource : {kGpu, kNic}) {
    std::vector<device::Device> devices;
    std::vector<DeviceId> held;
    const int count = 1 + luck.Below(8);
    for (int i = 0; i < count; ++i) {
      device::Device one = Healthy("r" + std::to_string(i));
      if (luck.Chance(90)) one.numa_nodes = {luck.Below(nodes)};
      if (luck.Chance(10)) one.health = device::Health::kUnhealthy;
      if (luck.Chance(25)) held.push_back(one.id);
      devices.push_back(std::move(one));
    }
    on.inventories[resource] = Live(std::move(devices));
    if (!held.empty()) on.Hold("other", resource, held);
  }
  const int containers = 1 + luck.Below(3);
  for (int i = 0; i < containers; ++i) {
    const auto kind = luck.Chance(70)   ? device::ContainerKind::kApp
                      : luck.Chance(50) ? device::ContainerKind::kInit
                                        : device::ContainerKind::kSidecar;
    for (const char* resource : {kGpu, kNic}) {
      if (luck.Chance(30)) continue;
      on.Want("c" + std::to_string(i), resource, 1 + luck.Below(3), kind);
    }
  }
  return on;
}

void CheckPlan(const Case& on, const AlignedPlan& plan) {
  if (!plan.plan.shortages.empty()) {
    ASSERT_THAT(plan.plan.reservations, IsEmpty());
    return;
  }
  std::set<std::pair<std::string, std::string>> of_others;
  for (const device::DeviceNeed& need : on.wanted.needs) {
    // Never more devices than asked for, and none that another pod holds.
    const auto ids = Chosen(plan, need.container, need.resource);
    ASSERT_THAT(ids, SizeIs(need.count)) << need.container.value;
    ASSERT_EQ(std::set<DeviceId>(ids.begin(), ids.end()).size(), ids.size());
    for (const DeviceId& id : ids) {
      ASSERT_FALSE(on.reservations.Held(need.resource).contains(id));
    }
  }
  if (plan.alignment == nullptr || !plan.alignment->admitted) return;
  // Under these scopes a preferred hint is kept to, of devices with a node.
  if (on.rules.options.scope == topology::Scope::kPod) return;
  for (const device::Reservation& one : plan.plan.reservations) {
    for (const auto& container : plan.alignment->containers) {
      if (container.container != one.container || !container.merged.preferred ||
          !container.merged.nodes) {
        continue;
      }
      for (const device::HeldDevice& held : one.devices) {
        ASSERT_TRUE(held.numa_nodes.empty() ||
                    container.merged.nodes->Contains(held.numa_nodes.front()))
            << held.id.value;
      }
    }
  }
}

TEST(AlignedPlanPropertyTest, NeverMoreThanAskedForAndOnPreferredNodes) {
  int admitted = 0;
  int refused = 0;
  LiveEach({1, 600}, [&](Luck& luck) {
    const Case on = RandomCase(luck);
    const AlignedPlan plan = on.Planned();
    CheckPlan(on, plan);
    if (plan.alignment != nullptr) {
      ++(plan.alignment->admitted ? admitted : refused);
    }
  });
  EXPECT_GT(admitted, 0);
  EXPECT_GT(refused, 0);
}

TEST(AlignedPlanPropertyTest, TheOrderOfProvidersAndHintsDoesNotCount) {
  LiveEach({5'000, 400}, [](Luck& luck) {
    Case on = RandomCase(luck);
    std::vector<ResourceHints> lists;
    const int count = luck.Below(4);
    for (int i = 0; i < count; ++i) {
      ResourceHints list{"p" + std::to_string(i % 2), std::to_string(i), {}};
      if (luck.Chance(90)) {
        list.hints.emplace();
        const int hints = luck.Below(4);
        for (int j = 0; j < hints; ++j) {
          const auto all = on.rules.machine.nodes.bits();
          list.hints->push_back(
              {NumaMask(1 + luck.Below(all)), luck.Chance(50)});
        }
      }
      lists.push_back(std::move(list));
    }
    on.providers = [&](const ContainerName&) { return lists; };
    const AlignedPlan first = on.Planned();
    for (ResourceHints& list : lists) {
      if (list.hints) {
        std::shuffle(list.hints->begin(), list.hints->end(), luck);
      }
    }
    std::shuffle(lists.begin(), lists.end(), luck);
    const AlignedPlan second = on.Planned();
    ASSERT_EQ(first.plan.reservations, second.plan.reservations);
    ASSERT_EQ(first.plan.shortages.size(), second.plan.shortages.size());
    for (std::size_t i = 0; i < first.plan.shortages.size(); ++i) {
      ASSERT_EQ(first.plan.shortages[i].kind, second.plan.shortages[i].kind);
      ASSERT_EQ(first.plan.shortages[i].holders,
                second.plan.shortages[i].holders);
    }
    ASSERT_EQ(first.provider_refusal.empty(), second.provider_refusal.empty());
  });
}

}  // namespace
}  // namespace devmgr::admission
