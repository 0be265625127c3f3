// SPDX-License-Identifier: Apache-2.0
//
// Search and pools, scenario by scenario.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "allocator/bed.h"

namespace devmgr::allocator {
namespace {

std::string InvalidPools(const std::string& why) {
  return "here-not-now: invalid resource pools were encountered: " + why;
}

// AL-001
TEST(AllocatorSearch, TakesTheFirstDevice) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
  const AllocationResult& allocation = bed.outcome.allocations[0].allocation;
  EXPECT_EQ(NodesText(allocation), "metadata.name In n1");
  EXPECT_FALSE(allocation.many_nodes);
  EXPECT_EQ(ConfigText(allocation), "");
}

// AL-002
TEST(AllocatorSearch, TakesDevicesOfTheClassOnly) {
  Bed bed;
  bed.node.metadata.name = "n2";
  bed.Slice("n1", "p1", {Dev("d1")}, "b");
  bed.Slice("n2", "p2", {Dev("d1")}, "a");
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p2/d1");
}

// AL-003
TEST(AllocatorSearch, GivesALargeDeviceBackForALaterRequest) {
  Bed bed;
  bed.Slice(
      "n1", "p1",
      {Dev("big").Cap("memory", "2Gi"), Dev("small").Cap("memory", "1Gi")});
  EXPECT_EQ(bed.Solve({Want()
                           .One(Ask("A").If(AtLeast("1Gi")))
                           .One(Ask("A").If(AtLeast("2Gi")))}),
            "q0=p1/small q1=p1/big");
}

// AL-004
TEST(AllocatorSearch, TakesDevicesOfOneNameFromTwoPools) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Slice("n1", "p2", {Dev("d1")});
  EXPECT_EQ(bed.Solve(Ask("A", 2)), "q0=p1/d1 q0=p2/d1");
}

// AL-005
TEST(AllocatorSearch, TakesNothingFromAPoolBetweenGenerations) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Slice("n1", "p1", {Dev("d2")}).pool_generation = 2;
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

// AL-006
TEST(AllocatorSearch, CallsAPoolWithADeviceTwiceInvalid) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Slice("n1", "p1", {Dev("d1")});
  EXPECT_EQ(bed.Solve(Ask("A")),
            InvalidPools("a/p1: duplicate device name 'd1'"));
}

TEST(AllocatorSearch, FindsDevicesBesideAnInvalidPool) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d1")});
  bed.Slice("n1", "p2", {Dev("d1")});
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p2/d1");
}

// AL-007
TEST(AllocatorSearch, TakesNothingFromAnIncompletePool) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")}).pool_slice_count = 2;
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

// AL-008
TEST(AllocatorSearch, NamesAClassThatIsMissing) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  EXPECT_EQ(
      bed.Solve(Ask("C")),
      "bad-input: claim ns/claim, request q0: device class 'C' is missing");
  EXPECT_EQ(bed.Verdict(Ask("")), "bad-input");
  EXPECT_EQ(
      bed.Solve({Want().First({Ask("A"), Ask("C")})}),
      "bad-input: claim ns/claim, request q0/s1: device class 'C' is missing");
}

// AL-009
TEST(AllocatorSearch, GivesAClaimThirtyTwoDevicesAndNoMore) {
  Bed bed;
  bed.Slice("n1", "p1", Devices(32));
  EXPECT_EQ(bed.Run({Want().One(Ask("A", 32))})
                .allocations[0]
                .allocation.results.size(),
            32U);
  EXPECT_EQ(bed.Solve(Ask("A", 500)),
            "bad-input: claim ns/claim, request q0: adding 500 devices exceeds "
            "the claim limit of 32, with 0 already accounted for");
  bed.slices.clear();
  EXPECT_EQ(bed.Verdict(Ask("A", 500)), "bad-input");
  EXPECT_EQ(bed.Verdict({Want().One(Ask("A", 20)).One(Ask("A", 20))}),
            "bad-input");
}

// AL-010
TEST(AllocatorSearch, RefusesPartsThatItDoesNotKnow) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  EXPECT_EQ(bed.Verdict(Ask("A").If("")), "bad-input");
  Ask future("A");
  future.allocation_mode = "future-mode";
  EXPECT_EQ(bed.Verdict(future), "bad-input");
  Want empty;
  empty.One(Ask("A"));
  empty.spec.constraints.emplace_back();
  EXPECT_EQ(bed.Verdict({empty}), "bad-input");
}

// AL-011
TEST(AllocatorSearch, TriesPoolsAndSlicesByName) {
  Bed bed;
  for (const char* pool : {"p3", "p2", "p1"})
    bed.Slice("n1", pool, {Dev("d1")});
  EXPECT_EQ(bed.Solve(Ask("A", 2)), "q0=p1/d1 q0=p2/d1");

  Bed slices;
  for (const char* name : {"s3", "s2", "s1"}) {
    slices.Slice("n1", "p1", {Dev(std::string("of-") + name)}).metadata.name =
        name;
  }
  EXPECT_EQ(slices.Solve(Ask("A", 2)), "q0=p1/of-s1 q0=p1/of-s2");
}

// AL-012
TEST(AllocatorSearch, TriesPoolsWithBindingConditionsLast) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Binds("IsPrepared", "BindingFailed")});
  bed.Slice("n1", "p2", {Dev("d1")});
  bed.Slice("n1", "p3", {Dev("d1")});
  EXPECT_EQ(bed.Solve(Ask("A", 2)), "q0=p2/d1 q0=p3/d1");
  EXPECT_EQ(bed.Solve(Ask("A", 3)), "q0=p2/d1 q0=p3/d1 q0=p1/d1");
}

NodeSelector Label(const std::string& key, const std::string& value) {
  return {{{.match_expressions = {{key, "In", {value}}}, .match_fields = {}}}};
}

// AL-013
TEST(AllocatorSearch, UnitesTheNodesOfAllDevices) {
  Bed bed;
  bed.node.metadata.labels["planet"] = "earth";
  bed.Slice("", "p1", {Dev("d1")}).node_selector = Label("region", "r1");
  bed.Slice("", "p2", {Dev("d1")}).all_nodes = true;
  bed.Slice("", "p3", {Dev("d1")}).node_selector = Label("planet", "earth");
  bed.Slice("", "p4", {Dev("d1")}).node_selector = {
      {{.match_expressions = {},
        .match_fields = {{"metadata.name", "In", {"n1"}}}}}};
  EXPECT_EQ(bed.Solve(Ask("A", 4)), "q0=p1/d1 q0=p2/d1 q0=p3/d1 q0=p4/d1");
  const AllocationResult& allocation = bed.outcome.allocations[0].allocation;
  EXPECT_EQ(NodesText(allocation),
            "metadata.name In n1, region In r1, planet In earth");
  EXPECT_TRUE(allocation.many_nodes);
}

TEST(AllocatorSearch, SaysNothingOfNodesWhenAllReachTheDevice) {
  Bed bed;
  bed.Slice("", "p1", {Dev("d1")}).all_nodes = true;
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
  EXPECT_EQ(NodesText(bed.outcome.allocations[0].allocation), "-");
}

// AL-014
TEST(AllocatorSearch, TakesNothingOfAnotherRegion) {
  Bed bed;
  bed.node.metadata.labels["region"] = "r2";
  bed.Slice("", "p1", {Dev("d1")}).node_selector = Label("region", "r1");
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

// AL-015
TEST(AllocatorSearch, TakesOfAPoolOnTwoNodesWhatIsHere) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Slice("n2", "p1", {Dev("d2")});
  EXPECT_EQ(bed.Solve(Ask::All("A")), "q0=p1/d1");
}

// AL-016
TEST(AllocatorSearch, IgnoresAnOldGenerationOnAnotherNode) {
  Bed bed;
  for (const char* device : {"d1", "d2"}) {
    bed.Slice("n2", "p1", {Dev(device)}).pool_slice_count = 2;
  }
  ResourceSlice& slice = bed.Slice("n1", "p1", {Dev("d3")});
  slice.pool_generation = 2;
  slice.pool_slice_count = 1;
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d3");
}

TEST(AllocatorSearch, IgnoresAPoolThatAnotherNodeHasANewerGenerationOf) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")}).pool_slice_count = 2;
  ResourceSlice& newer = bed.Slice("n2", "p1", {Dev("d2")});
  newer.pool_generation = 2;
  newer.pool_slice_count = 1;
  EXPECT_EQ(bed.Solve(Ask::All("A")), "no-solution");
  // Unless the old one is complete by what is here alone.
  bed.slices.front().pool_slice_count = 1;
  EXPECT_EQ(bed.Solve(Ask::All("A")), "q0=p1/d1");
}

// AL-017
TEST(AllocatorSearch, ProvesWithinSixteenStepsThatFourAreNotFive) {
  for (const bool reduces : {true, false}) {
    for (const int split : {1, 2, 4}) {
      Bed bed;
      bed.options.reduce_symmetry = reduces;
      for (int i = 0; i < 4; ++i) {
        const std::string pool = "p" + std::to_string(i % split);
        bed.Slice("n1", pool, {Dev("d" + std::to_string(i))});
      }
      EXPECT_EQ(bed.Solve(Ask("A", 5)), "no-solution");
      EXPECT_LE(bed.outcome.steps, 16U);
    }
  }
}

// AL-018
TEST(AllocatorSearch, GivesTheOnlyDeviceOfAKindBackWithinTwelveSteps) {
  for (const bool reduces : {true, false}) {
    Bed bed;
    bed.options.reduce_symmetry = reduces;
    bed.Slice("n1", "p1",
              {Dev("d1").Text("type", "X"), Dev("d2").Text("type", "Y"),
               Dev("d3").Text("type", "Y")});
    EXPECT_EQ(
        bed.Solve(
            {Want()
                 .One(Ask("A", 2))
                 .One(Ask("A").If("device.attributes['a'].type == 'X'"))}),
        "q0=p1/d2 q0=p1/d3 q1=p1/d1");
    EXPECT_LE(bed.outcome.steps, 12U);
  }
}

// AL-019
TEST(AllocatorSearch, SaysThatItWasInterrupted) {
  Bed bed;
  bed.Slice("n1", "p1", Devices(5));
  EXPECT_EQ(bed.Solve(Ask("A", 6)), "no-solution");
  std::atomic<bool> interrupted = true;
  bed.options.limits.interrupted = &interrupted;
  EXPECT_EQ(bed.Solve(Ask("A", 6)),
            "interrupted: the caller ended the search after 0 steps");
  bed.options.limits = {.steps = 3};
  EXPECT_EQ(bed.Solve(Ask("A", 5)),
            "interrupted: the search took more than 3 steps");
}

// What a selector could not say is asked again.
TEST(AllocatorSearch, GoesOnAfterAnInterruption) {
  Bed bed;
  bed.Slice("n1", "p1", Devices(2));
  std::atomic<bool> interrupted = true;
  bed.options.limits.interrupted = &interrupted;
  const std::vector<const DeviceClass*> classes = {&bed.classes[0]};
  Judge judge(TakeInventory(bed.MakeWorld()), classes, bed.options);
  const Want claim = Want().One(Ask::All("A"));
  const std::vector<const ResourceClaim*> claims = {&claim};
  EXPECT_EQ(judge.Allocate(bed.held, claims).result, Result::kInterrupted);
  interrupted = false;
  EXPECT_EQ(TextOf(judge.Allocate(bed.held, claims)), "q0=p1/d0 q0=p1/d1");
}

// The first selectors that look at a device may do so at the same time.
TEST(AllocatorSearch, SharesAnInventoryWithOtherThreads) {
  Bed bed;
  bed.Slice("n1", "p1", Devices(32));
  const std::vector<const DeviceClass*> classes = {&bed.classes[0]};
  const Want claim = Want().One(Ask("A", 32).If("device.driver == 'a'"));
  const std::vector<const ResourceClaim*> claims = {&claim};
  const std::string expected = bed.Solve({claim});
  const auto inventory = TakeInventory(bed.MakeWorld());
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      text = TextOf(Allocate(*inventory, classes, AllocatedState(), claims));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(texts, std::vector<std::string>(4, expected));
}

// AL-020
TEST(AllocatorSearch, TakesNothingThatAnotherClaimHolds) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Held("d1");
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

// AL-021
TEST(AllocatorSearch, ServesClaimsInTheirOrder) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d2")});
  bed.Slice("n1", "p1", {Dev("d1")}, "b");
  EXPECT_EQ(bed.Solve({Want("one").One(Ask("A")), Want("two").One(Ask("B"))}),
            "q0=p1/d1 | q0=p1/d1");
  EXPECT_EQ(
      bed.Verdict({Want("one").One(Ask("A", 2)), Want("two").One(Ask("A"))}),
      "no-solution");
  EXPECT_TRUE(bed.outcome.allocations.empty());
}

// AL-104
TEST(AllocatorSearch, PinsADeviceThatBindsToTheNode) {
  Bed bed;
  bed.node.metadata.labels["planet"] = "earth";
  Dev device("d1");
  device.binds_to_node = true;
  bed.Slice("", "p1", {device}).node_selector = Label("planet", "earth");
  EXPECT_EQ(bed.Solve(Ask("A")), "q0=p1/d1");
  EXPECT_EQ(NodesText(bed.outcome.allocations[0].allocation),
            "metadata.name In n1");
}

// The library fails closed where upstream takes some of them.
TEST(AllocatorSearch, ReachesNothingByAMalformedSelector) {
  Bed bed;
  NodeSelector two = Label("region", "r1");
  two.terms.push_back(two.terms[0]);
  bed.Slice("", "p1", {Dev("d1")}).node_selector = two;
  bed.Slice("", "p2", {Dev("d1")}).node_selector = NodeSelector();
  bed.Slice("", "p3", {Dev("d1")}).node_selector = {
      {{.match_expressions = {{"region", "Like", {"r1"}}},
        .match_fields = {}}}};
  bed.Slice("", "p4", {Dev("d1")});  // In a way that is not known here.
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
}

TEST(AllocatorSearch, FailsOnASelectorThatFailsOnADeviceItComesTo) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Int("numa", 1), Dev("d2")});
  const std::string numa = "device.attributes['a'].numa == ";
  EXPECT_EQ(bed.Solve(Ask("A").If(numa + "1")), "q0=p1/d1");
  const std::string failed = bed.Solve(Ask("A").If(numa + "2"));
  EXPECT_TRUE(
      failed.starts_with("bad-input: claim ns/claim: selector #0 on "
                         "device a/p1/d2: no such key: numa"))
      << failed;
  // Not asked of a device that is held.
  bed.Held("d2");
  EXPECT_EQ(bed.Solve(Ask("A").If(numa + "2")), "no-solution");
}

// AL-071
TEST(AllocatorSearch, NamesWhatIsUndeclaredInAClassOrARequest) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Class("X", {"noSuchVar == 1"});
  for (const Ask& ask : {Ask("X"), Ask::All("X"), Ask("A").If("noSuchVar == 1"),
                         Ask::All("A").If("noSuchVar == 1")}) {
    const std::string text = bed.Solve(ask);
    EXPECT_TRUE(text.starts_with("bad-input: ")) << text;
    EXPECT_NE(text.find("undeclared reference to 'noSuchVar'"), text.npos)
        << text;
  }
}

// AL-073
TEST(AllocatorSearch, AClassMayHaveNoDevicesThatAreShared) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Shared(), Dev("d2")});
  bed.Class("X", {"device.allowMultipleAllocations == false"});
  EXPECT_EQ(bed.Solve(Ask("X")), "q0=p1/d2");
}

TEST(AllocatorSearch, TakesASelectorThatFailsAsNoMatchWhereThatIsWanted) {
  Bed bed;
  bed.options.selector_errors = SelectorErrors::kNoMatch;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d2").Int("numa", 2)});
  EXPECT_EQ(bed.Solve(Ask("A").If("device.attributes['a'].numa == 2")),
            "q0=p1/d2");
  ASSERT_EQ(bed.outcome.warnings.size(), 1U);
  EXPECT_TRUE(bed.outcome.warnings[0].starts_with(
      "claim ns/claim: selector #0 on device a/p1/d1: no such key: numa"));
  EXPECT_EQ(bed.Verdict(Ask("A").If("device.")), "bad-input");
}

}  // namespace
}  // namespace devmgr::allocator
