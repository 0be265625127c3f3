// SPDX-License-Identifier: Apache-2.0
//
// devmgr/allocate.h, as an embedder calls it.
#include <devmgr/allocate.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/bed.h"
#include "allocator/features.h"

namespace devmgr::allocator {
namespace {

/// Node n1, class A for driver a, a slice with d0 and d1 in the pool p.
AllocationInput SmallInput() {
  AllocationInput input;
  input.node.metadata.name = "n1";
  DeviceClass& device_class = input.classes.emplace_back();
  device_class.metadata.name = "A";
  device_class.selectors = {"device.driver == 'a'"};
  ResourceSlice& slice = input.slices.emplace_back();
  slice.metadata.name = "slice";
  slice.driver = "a";
  slice.pool = "p";
  slice.pool_generation = 1;
  slice.pool_slice_count = 1;
  slice.node_name = "n1";
  slice.devices = Devices(2);
  return input;
}

AllocationInput SmallInput(std::vector<ResourceClaim> claims) {
  AllocationInput input = SmallInput();
  input.claims = std::move(claims);
  return input;
}

/// Of `claims`: `name=d0 d1`, each followed by a semicolon.
std::string DevicesOf(const std::vector<ResourceClaim>& claims) {
  std::string text;
  for (const ResourceClaim& claim : claims) {
    text += claim.metadata.name + '=';
    for (const auto& result : claim.status.allocation->results) {
      text += result.device + ' ';
    }
    text.back() = ';';
  }
  return text;
}

/// `Solved: name=d0;`, or the name of the outcome and the message.
std::string TextOf(const AllocatedClaims& result) {
  return std::string(AllocationOutcomeName(result.outcome)) + ": " +
         (result.outcome == AllocationOutcome::kSolved
              ? DevicesOf(result.claims)
              : result.message);
}

std::string Solve(const AllocationInput& input) {
  return TextOf(AllocateClaims(input));
}

ResourceClaim Allocated(const ResourceClaim& claim, const std::string& device) {
  ResourceClaim allocated = claim;
  allocated.status.allocation.emplace().results.push_back(
      {.request = "q0", .driver = "a", .pool = "p", .device = device});
  return allocated;
}

TEST(AllocateClaims, AllocatesWhatIsNotAllocated) {
  const Want first = Want("first").One(Ask("A"));
  const Want held = Want("held").One(Ask("A"));
  const Want last = Want("last").One(Ask("A"));
  const auto result =
      AllocateClaims(SmallInput({first, Allocated(held, "d1"), last}));
  EXPECT_EQ(TextOf(result), "NoSolution: ");
  EXPECT_EQ(result.claims.size(), 0);

  AllocationInput input = SmallInput({first, Allocated(held, "d1"), last});
  input.slices[0].devices = Devices(3);
  const auto solved = AllocateClaims(input);
  EXPECT_EQ(TextOf(solved), "Solved: first=d0;last=d2;");
  EXPECT_EQ(solved.message, "");
  EXPECT_EQ(solved.refusals.size(), 0);
  EXPECT_GT(solved.steps, 0);
}

TEST(AllocateClaims, LeavesTheRestOfAClaimAsItIs) {
  Want claim = Want("claim").One(Ask("A")).Config("a");
  claim.metadata.labels["x"] = "y";
  claim.metadata.finalizers = {"example.com/f"};
  claim.status.reserved_for.push_back({"", "pods", "pod", "uid"});
  const auto result = AllocateClaims(SmallInput({claim}));
  ASSERT_EQ(result.claims.size(), 1);
  ResourceClaim without = result.claims[0];
  EXPECT_EQ(without.status.allocation->results[0].pool, "p");
  EXPECT_EQ(ConfigText(*without.status.allocation), "FromClaim[]:a");
  EXPECT_EQ(NodesText(*without.status.allocation), "metadata.name In n1");
  const std::vector<std::string> finalizers = {
      "example.com/f", "resource.kubernetes.io/delete-protection"};
  EXPECT_EQ(without.metadata.finalizers, finalizers);
  without.metadata.finalizers.pop_back();
  without.status.allocation.reset();
  EXPECT_EQ(without, claim);
  // Allocated again, as when the claim was given up before.
  claim.metadata.finalizers = finalizers;
  EXPECT_EQ(AllocateClaims(SmallInput({claim})).claims.at(0).metadata,
            claim.metadata);
}

TEST(AllocateClaims, IsSolvedWithNothingToAllocate) {
  EXPECT_EQ(Solve({}), "Solved: ");
  const Want claim = Want("held").One(Ask("A"));
  EXPECT_EQ(Solve(SmallInput({Allocated(claim, "gone")})), "Solved: ");
}

// As of claims from files, which have none.
TEST(AllocateClaims, KeepsClaimsWithoutUidsApart) {
  Want one = Want("one").One(Ask("A"));
  Want two = Want("two").One(Ask("A"));
  one.metadata.uid.clear();
  two.metadata.uid.clear();
  AllocationInput input = SmallInput({Allocated(one, "d0"), two});
  const auto result = AllocateClaims(input);
  EXPECT_EQ(TextOf(result), "Solved: two=d1;");
  EXPECT_EQ(result.claims[0].metadata.uid, "");

  input.slices[0].devices = {Dev("d0").Shared()};
  input.claims = {one, two};
  const auto shared = AllocateClaims(input);
  ASSERT_EQ(TextOf(shared), "Solved: one=d0;two=d0;");
  EXPECT_NE(shared.claims[0].status.allocation->results[0].share_id,
            shared.claims[1].status.allocation->results[0].share_id);
}

TEST(AllocateClaims, ChargesHoldersWhatTheirSlicesSay) {
  const Want held = Want("held").One(Ask("A"));
  AllocationInput input =
      SmallInput({Allocated(held, "d0"), Want("more").One(Ask("A"))});
  for (SliceDevice& device : input.slices[0].devices) {
    device = Dev(device.name).Uses("set", {{"slots", "2"}});
  }
  ResourceSlice counters = input.slices[0];
  counters.metadata.name = "counters";
  counters.devices.clear();
  counters.shared_counters.push_back({"set", {{"slots", Q("3")}}});
  input.slices.push_back(counters);
  for (ResourceSlice& slice : input.slices) slice.pool_slice_count = 2;
  const auto result = AllocateClaims(input);
  ASSERT_EQ(result.refusals.size(), 1);
  EXPECT_EQ(result.refusals[0].devices[1].reason, "counter");
  input.slices[1].shared_counters[0].counters["slots"] = Q("4");
  EXPECT_EQ(Solve(input), "Solved: more=d1;");
}

TEST(AllocateClaims, SaysOfEachDeviceWhyItIsRefused) {
  const Want held = Want("held").One(Ask("A"));
  AllocationInput input = SmallInput(
      {Allocated(held, "d0"), Want("many").First({Ask("A", 3), Ask("A", 2)})});
  const auto result = AllocateClaims(input);
  EXPECT_EQ(result.outcome, AllocationOutcome::kNoSolution);
  ASSERT_EQ(result.refusals.size(), 2);
  EXPECT_EQ(result.refusals[0].claim, "ns/many");
  EXPECT_EQ(result.refusals[0].request, "q0/s0");
  EXPECT_EQ(result.refusals[0].wanted, 3);
  EXPECT_EQ(result.refusals[1].request, "q0/s1");
  EXPECT_EQ(result.refusals[1].wanted, 2);
  EXPECT_EQ(result.refusals[0].found, 1);
  // The second device is the one found.
  const std::vector<RefusedDevice> devices = {
      {"a", "p", "d0", "busy", "ns/held"}};
  EXPECT_EQ(result.refusals[0].devices, devices);
  const std::vector<std::pair<std::string, std::size_t>> counts = {{"busy", 1}};
  EXPECT_EQ(result.refusals[0].counts, counts);
}

TEST(AllocateClaims, ListsAThousandDevicesAndCountsAll) {
  AllocationInput input = SmallInput({Want().One(Ask("A").If("false"))});
  const ResourceSlice slice = input.slices[0];
  input.slices.clear();
  for (int i = 0; i < 12; ++i) {
    ResourceSlice& each = input.slices.emplace_back(slice);
    each.metadata.name = "slice-" + std::to_string(i);
    each.pool = each.metadata.name;
    each.devices = Devices(100);
  }
  const auto result = AllocateClaims(input);
  ASSERT_EQ(result.refusals.size(), 1);
  EXPECT_EQ(result.refusals[0].devices.size(), 1000);
  const std::vector<std::pair<std::string, std::size_t>> counts = {
      {"request-selector", 1200}};
  EXPECT_EQ(result.refusals[0].counts, counts);
}

TEST(AllocateClaims, WaitsForSlices) {
  AllocationInput input = SmallInput({Want("claim").One(Ask::All("A"))});
  input.slices[0].pool_slice_count = 2;
  EXPECT_EQ(AllocateClaims(input).outcome, AllocationOutcome::kHereNotNow);
  input = SmallInput({Want("claim").One(Ask("A"))});
  input.slices[0].devices.push_back(Dev("d0"));
  const auto result = AllocateClaims(input);
  EXPECT_EQ(result.outcome, AllocationOutcome::kHereNotNow);
  EXPECT_NE(result.message.find("a/p"), std::string::npos) << result.message;
  EXPECT_EQ(result.claims.size(), 0);
}

TEST(AllocateClaims, LooksAtTheNodeAndAtTaintRules) {
  AllocationInput input = SmallInput({Want("claim").One(Ask("A"))});
  input.slices[0].node_name.clear();
  input.slices[0].node_selector.emplace().terms = {
      {.match_expressions = {{"region", "In", {"r1"}}}, .match_fields = {}}};
  EXPECT_EQ(Solve(input), "NoSolution: ");
  input.node.metadata.labels["region"] = "r1";
  EXPECT_EQ(Solve(input), "Solved: claim=d0;");

  DeviceTaintRule& rule = input.taint_rules.emplace_back();
  rule.metadata.name = "rule";
  rule.taint = {"broken", "", "NoSchedule", ""};
  rule.device_selector.emplace().device = "d0";
  EXPECT_EQ(Solve(input), "Solved: claim=d1;");

  input.slices[0].skip_node_operations = {"*"};
  EXPECT_EQ(Solve(input), "NoSolution: ");
  input.node.declared_features = {"DRAOptionalNodeOperations"};
  EXPECT_EQ(Solve(input), "Solved: claim=d1;");
}

TEST(AllocateClaims, HasFeatureGates) {
  Want derived = Want("claim").One(Ask("A", 2)).Match("derived/x");
  derived.spec.requests[0].exactly->derived_attributes.push_back(
      {"derived/x", "device.driver"});
  AllocationInput input = SmallInput({derived});
  EXPECT_EQ(Solve(input),
            "BadInput: claim ns/claim, request q0: has derived attributes, "
            "but the feature DRADerivedAttributes is disabled");
  input.feature_gates["DRADerivedAttributes"] = true;
  EXPECT_EQ(Solve(input), "Solved: claim=d0 d1;");
  input.feature_gates["NodeSwap"] = false;
  EXPECT_EQ(Solve(input), "Solved: claim=d0 d1;");

  input = SmallInput({Want("claim").One(Ask("A"))});
  DeviceTaintRule& rule = input.taint_rules.emplace_back();
  rule.taint = {"broken", "", "NoSchedule", ""};
  rule.device_selector.emplace().device = "d0";
  EXPECT_EQ(Solve(input), "Solved: claim=d1;");
  input.feature_gates["DRADeviceTaintRules"] = false;
  EXPECT_EQ(Solve(input), "Solved: claim=d0;");
}

TEST(AllocateClaims, EachGateTurnsOneFeature) {
  EXPECT_EQ(FeaturesOf({}), Features());
  const std::pair<const char*, bool Features::*> gates[] = {
      {"DRAAdminAccess", &Features::admin_access},
      {"DRADeviceCompatibilityGroups", &Features::compatibility_groups},
      {"DRAConsumableCapacity", &Features::consumable_capacity},
      {"DRADerivedAttributes", &Features::derived_attributes},
      {"DRADeviceBindingConditions", &Features::device_binding_and_status},
      {"DRAResourceClaimDeviceStatus", &Features::device_binding_and_status},
      {"DRADeviceTaints", &Features::device_taints},
      {"DRAListTypeAttributes", &Features::list_type_attributes},
      {"DRAOptionalNodeOperations", &Features::optional_node_operations},
      {"DRAPartitionableDevices", &Features::partitionable_devices},
      {"DRAPrioritizedList", &Features::prioritized_list}};
  for (const auto& [gate, feature] : gates) {
    Features expected;
    expected.*feature = !(expected.*feature);
    EXPECT_EQ(FeaturesOf({{gate, expected.*feature}}), expected) << gate;
  }
}

TEST(AllocateClaims, SaysWhatIsWrong) {
  const auto bad = [](const Want& claim) {
    const auto result = AllocateClaims(SmallInput({claim}));
    EXPECT_EQ(result.outcome, AllocationOutcome::kBadInput);
    EXPECT_EQ(result.claims.size(), 0);
    return result.message;
  };
  EXPECT_EQ(bad(Want().One(Ask("Z"))),
            "claim ns/claim, request q0: device class 'Z' is missing");
  EXPECT_TRUE(bad(Want().One(Ask("A").If("device.driver")))
                  .starts_with("claim ns/claim: selector #0 on"));
  EXPECT_EQ(bad(Want().One(Ask("A", 33))),
            "claim ns/claim, request q0: adding 33 devices exceeds the claim "
            "limit of 32, with 0 already accounted for");
}

// What no validation lets through, and an embedder may have all the same.
TEST(AllocateClaims, TakesAnyInput) {
  const auto lowest = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, lowest}) {
    const auto result = AllocateClaims(
        SmallInput({Want().One(Ask("A", count)).One(Ask("A", count))}));
    EXPECT_EQ(TextOf(result),
              "BadInput: claim ns/claim, request q0: " + std::to_string(count) +
                  " devices are wanted, which is less than 1");
  }
  Want empty;
  empty.spec.requests.emplace_back();
  EXPECT_EQ(AllocateClaims(SmallInput({empty})).outcome,
            AllocationOutcome::kBadInput);
  Want loose = Want().One(Ask("A"));
  loose.spec.constraints.emplace_back();
  EXPECT_EQ(AllocateClaims(SmallInput({loose})).outcome,
            AllocationOutcome::kBadInput);
  AllocationInput input = SmallInput({Want().One(Ask("A"))});
  input.slices.emplace_back();
  input.slices.emplace_back(input.slices[0]).pool_slice_count = -1;
  input.classes.emplace_back();
  input.taint_rules.emplace_back();
  input.node = Node();
  EXPECT_NE(AllocateClaims(input).outcome, AllocationOutcome::kSolved);
}

TEST(AllocateClaims, EndsWithinItsLimits) {
  const AllocationInput input = SmallInput({Want("claim").One(Ask("A", 2))});
  const auto all = AllocateClaims(input);
  ASSERT_EQ(all.outcome, AllocationOutcome::kSolved);
  const auto enough = AllocateClaims(input, {.steps = all.steps});
  EXPECT_EQ(enough.outcome, AllocationOutcome::kSolved);
  const auto few = AllocateClaims(input, {.steps = all.steps - 1});
  EXPECT_EQ(few.outcome, AllocationOutcome::kInterrupted);
  EXPECT_EQ(few.claims.size(), 0);
  EXPECT_LE(few.steps, all.steps);
  const std::atomic<bool> interrupted(true);
  EXPECT_EQ(AllocateClaims(input, {.interrupted = &interrupted}).outcome,
            AllocationOutcome::kInterrupted);
}

TEST(AllocateClaims, IsThatOfAnyOrderOfWhatThereIs) {
  AllocationInput input = SmallInput({Want("claim").One(Ask("A", 3))});
  input.slices.push_back(input.slices[0]);
  input.slices[1].pool = "o";
  input.classes.emplace_back().metadata.name = "B";
  const std::string first = Solve(input);
  EXPECT_EQ(first, "Solved: claim=d0 d1 d0;");
  std::reverse(input.slices.begin(), input.slices.end());
  std::reverse(input.classes.begin(), input.classes.end());
  EXPECT_EQ(Solve(input), first);
}

TEST(AllocateClaims, MayBeCalledByManyThreads) {
  const AllocationInput input = SmallInput(
      {Want("one").One(Ask("A").If("device.attributes['a'].?x.orValue(1) == "
                                   "1")),
       Want("two").One(Ask("A"))});
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) text = Solve(input);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) {
    EXPECT_EQ(text, "Solved: one=d0;two=d1;");
  }
}

// Sixteen devices with different values are wanted where there are fifteen
// values: too many ways to try them all.
TEST(AllocateClaims, EndsWhenAnotherThreadSaysSo) {
  AllocationInput input;
  Want claim = Want("claim").One(Ask("A", 16)).Distinct("a/x");
  input = SmallInput({claim});
  input.slices[0].devices.clear();
  for (int i = 0; i < 64; ++i) {
    input.slices[0].devices.push_back(
        Dev("d" + std::to_string(i)).Int("x", i % 15).Int("y", i));
  }
  std::atomic<bool> interrupted(false);
  AllocatedClaims result;
  std::thread search([&] {
    result = AllocateClaims(input,
                            {.steps = std::numeric_limits<std::uint64_t>::max(),
                             .interrupted = &interrupted});
  });
  interrupted = true;
  search.join();
  EXPECT_EQ(result.outcome, AllocationOutcome::kInterrupted);
}

TEST(AllocateClaims, NamesItsOutcomes) {
  EXPECT_EQ(AllocationOutcomeName(AllocationOutcome::kSolved), "Solved");
  EXPECT_EQ(AllocationOutcomeName(AllocationOutcome::kNoSolution),
            "NoSolution");
  EXPECT_EQ(AllocationOutcomeName(AllocationOutcome::kHereNotNow),
            "HereNotNow");
  EXPECT_EQ(AllocationOutcomeName(AllocationOutcome::kBadInput), "BadInput");
  EXPECT_EQ(AllocationOutcomeName(AllocationOutcome::kInterrupted),
            "Interrupted");
}

}  // namespace
}  // namespace devmgr::allocator
