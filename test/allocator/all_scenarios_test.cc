// SPDX-License-Identifier: Apache-2.0
//
// All devices, admin access and alternatives, scenario by scenario.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "allocator/bed.h"

namespace devmgr::allocator {
namespace {

std::string Generation(const std::string& version) {
  return "device.attributes['a'].generation == semver('" + version + "')";
}

// AL-022
TEST(AllocatorAll, TakesAllDevices) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Slice("n1", "p2", {Dev("d1")});
  bed.Slice("n1", "p3", {Dev("d1")}, "b");
  EXPECT_EQ(bed.Solve(Ask::All("A")), "q0=p1/d1 q0=p2/d1");
  const Want all = Want("all").One(Ask::All("A"));
  const Want one = Want("one").One(Ask("B"));
  EXPECT_EQ(bed.Solve({all, one}), "q0=p1/d1 q0=p2/d1 | q0=p3/d1");
  EXPECT_EQ(bed.Solve({one, all}), "q0=p3/d1 | q0=p1/d1 q0=p2/d1");
}

// AL-023
TEST(AllocatorAll, HasNoSolutionWithoutADevice) {
  Bed bed;
  EXPECT_EQ(bed.Solve(Ask::All("A")), "no-solution");
  bed.Slice("n1", "p1", {});
  EXPECT_EQ(bed.Solve(Ask::All("A")), "no-solution");
  bed.Slice("n1", "p1", {Dev("d1")}, "b");
  EXPECT_EQ(bed.Solve({Want().First({Ask::All("A"), Ask("B")})}),
            "q0/s1=p1/d1");
}

// AL-024
TEST(AllocatorAll, WantsTheDevicesThatAreHeldToo) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d2")});
  bed.Held("d1");
  EXPECT_EQ(bed.Solve(Ask::All("A")), "no-solution");
  EXPECT_EQ(bed.Solve({Want().First({Ask::All("A"), Ask("A")})}),
            "q0/s1=p1/d2");
}

// AL-025
TEST(AllocatorAll, WaitsForAnIncompletePool) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")}).pool_slice_count = 2;
  EXPECT_EQ(bed.Solve(Ask::All("A")),
            "here-not-now: claim ns/claim, request q0: asks for all devices, "
            "but resource pool a/p1 is currently being updated: 1 of 2 slices "
            "of generation 1 are there");
  bed.slices.front().pool_slice_count = 1;
  bed.slices.front().devices = {Dev("d1"), Dev("d1")};
  EXPECT_EQ(bed.Solve(Ask::All("A")),
            "here-not-now: claim ns/claim, request q0: asks for all devices, "
            "but resource pool a/p1 is currently invalid: duplicate device "
            "name 'd1'");
}

TEST(AllocatorAll, WaitsForNoPoolWhenTheClaimIsWrong) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")}).pool_slice_count = 2;
  EXPECT_EQ(bed.Verdict({Want().One(Ask::All("A")).One(Ask("B", 33))}),
            "bad-input");
  bed.Slice("n1", "p2", {Dev("d1")});
  EXPECT_EQ(bed.Solve(Ask::All("A").If("device.attributes[\"a\"].x == 1"))
                .substr(0, 10),
            "bad-input:");
}

// AL-026, and Δ3 where it is not clear that no device would match.
TEST(AllocatorAll, DoesNotWaitForAPoolThatCannotHaveAny) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  bed.Slice("n1", "p1", {Dev("d1")}, "b").pool_slice_count = 2;
  EXPECT_EQ(bed.Solve(Ask::All("A")), "q0=p1/d1");

  bed.Class("either", {"device.driver in ['a', 'b']"});
  EXPECT_EQ(bed.Verdict(Ask::All("either")), "here-not-now");
  EXPECT_EQ(bed.Solve(Ask::All("either").If("device.driver != 'b'")),
            "q0=p1/d1");
  bed.Class("small", {"!('large' in device.attributes['b'])"});
  EXPECT_EQ(bed.Verdict(Ask::All("small")), "here-not-now");
}

// AL-027
TEST(AllocatorAdmin, SharesADeviceThatIsHeld) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d2")});
  bed.Held("d1");
  EXPECT_EQ(bed.Solve(Ask("A", 2).Admin()), "q0=p1/d1! q0=p1/d2!");
  EXPECT_EQ(bed.Solve(Ask::All("A").Admin()), "q0=p1/d1! q0=p1/d2!");
  EXPECT_EQ(bed.Solve(Ask("A", 3).Admin()), "no-solution");
}

// AL-028
TEST(AllocatorAdmin, GivesEachClaimTheFirstDevice) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d2")});
  const Want one = Want("one").One(Ask("A").Admin());
  const Want two = Want("two").One(Ask("A").Admin());
  EXPECT_EQ(bed.Solve({one, two}), "q0=p1/d1! | q0=p1/d1!");
}

// Δ2: the order of claims makes no difference.
TEST(AllocatorAdmin, KeepsNoDeviceFromAnotherClaim) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  const Want admin = Want("admin").One(Ask("A").Admin());
  const Want other = Want("other").One(Ask("A"));
  EXPECT_EQ(bed.Solve({admin, other}), "q0=p1/d1! | q0=p1/d1");
  EXPECT_EQ(bed.Solve({other, admin}), "q0=p1/d1 | q0=p1/d1!");
}

TEST(AllocatorAdmin, GivesAClaimNoDeviceTwice) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1"), Dev("d2")});
  EXPECT_EQ(bed.Solve({Want().One(Ask("A").Admin()).One(Ask("A"))}),
            "q0=p1/d1! q1=p1/d2");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A")).One(Ask("A").Admin())}),
            "q0=p1/d1 q1=p1/d2!");
  EXPECT_EQ(bed.Solve({Want().One(Ask("A", 2).Admin()).One(Ask("A"))}),
            "no-solution");
}

/// Ten devices of which no two are alike, all of one NUMA node.
void AddUnlikeDevices(Bed& bed) {
  std::map<std::string, std::string> counters;
  std::vector<SliceDevice> devices;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "d" + std::to_string(i);
    counters[name] = "1";
    devices.push_back(Dev(name).Int("numa", 1).Uses("set", {{name, "1"}}));
  }
  bed.Counters("p1", "set", counters);
  bed.Slice("n1", "p1", devices);
}

// Another device for admin access does not help what comes after it.
TEST(AllocatorAdmin, DoesNotMultiplyASearchWithoutSolution) {
  Bed bed;
  AddUnlikeDevices(bed);
  const Want without = Want().One(Ask("A", 2)).Distinct("a/numa");
  ASSERT_EQ(bed.Solve({without}), "no-solution");
  const std::uint64_t alone = bed.outcome.steps;
  Want claim;
  for (int i = 0; i < 3; ++i) claim.One(Ask("A").Admin());
  claim.One(Ask("A", 2)).Distinct("a/numa", {"q3"});
  EXPECT_EQ(bed.Solve({claim}), "no-solution");
  EXPECT_LE(bed.outcome.steps, 8 * alone);
  Want many;
  many.One(Ask("A", 5).Admin());
  many.One(Ask("A", 2)).Distinct("a/numa", {"q1"});
  EXPECT_EQ(bed.Solve({many, without}), "no-solution");
  EXPECT_LE(bed.outcome.steps, 12 * alone);
  bed.options.reduce_symmetry = false;
  EXPECT_EQ(bed.Solve({claim}), "no-solution");
  EXPECT_GT(bed.outcome.steps, 500 * alone);
}

// Unless it is the one of its claim that another request needs.
TEST(AllocatorAdmin, LeavesItsClaimTheDeviceThatItNeeds) {
  Bed bed;
  AddUnlikeDevices(bed);
  const auto only = [](const std::string& name) {
    return Ask("A").If("device.attributes['a'].?name.orValue('') == '" + name +
                       "'");
  };
  for (SliceDevice& device : bed.slices.back().devices) {
    device.attributes["name"] = SharedText(device.name);
  }
  const Want claim =
      Want().One(Ask("A", 2).Admin()).One(only("d1")).One(only("d0"));
  EXPECT_EQ(bed.Solve({claim}), "q0=p1/d2! q0=p1/d3! q1=p1/d1 q2=p1/d0");
}

// AL-029
TEST(AllocatorAdmin, IsRefusedWhileItIsOff) {
  Bed bed;
  bed.features.admin_access = false;
  bed.Slice("n1", "p1", {Dev("d1")});
  Want claim;
  claim.One(Ask("A").Admin());
  EXPECT_EQ(bed.Solve({claim}),
            "bad-input: claim ns/claim, request q0: admin access is "
            "requested, but the feature DRAAdminAccess is disabled");
  claim.spec.requests[0].admin_access = false;
  EXPECT_EQ(bed.Verdict({claim}), "bad-input");
  claim.spec.requests[0].says_admin_access = false;
  EXPECT_EQ(bed.Verdict({claim}), "solved");
}

// AL-030
TEST(AllocatorAdmin, NeedsTolerationsLikeOthers) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Taint("broken", "NoSchedule")});
  EXPECT_EQ(bed.Solve(Ask("A").Admin()), "no-solution");
}

// AL-031
TEST(AllocatorAdmin, NeedsNoCounters) {
  Bed bed;
  bed.Counters("p1", "set", {{"memory", "8Gi"}});
  bed.Slice("n1", "p1",
            {Dev("d1").Uses("set", {{"memory", "8Gi"}}),
             Dev("d2").Uses("set", {{"memory", "8Gi"}})});
  bed.Held("d1");
  EXPECT_EQ(bed.Solve(Ask("A")), "no-solution");
  EXPECT_EQ(bed.Solve(Ask("A", 2).Admin()), "q0=p1/d1! q0=p1/d2!");
  EXPECT_TRUE(bed.outcome.allocations[0].charges.empty());
}

TEST(AllocatorAdmin, NeedsNoCapacityThatIsLeft) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Shared().Cap("memory", "2")});
  bed.HeldShare("d1", {{"memory", "2"}});
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "1")), "no-solution");
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "1").Admin()), "q0=p1/d1!");
  EXPECT_EQ(bed.Solve(Ask("A").Cap("memory", "3").Admin()), "no-solution");
}

// AL-032
TEST(AllocatorAlternatives, AreTriedInTheirOrder) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  EXPECT_EQ(bed.Solve({Want().First({Ask("B"), Ask("A")})}), "q0/s1=p1/d1");
  EXPECT_EQ(bed.Solve({Want().First({Ask("A"), Ask("A")})}), "q0/s0=p1/d1");
  EXPECT_EQ(bed.Solve({Want().First({Ask("B", 2), Ask("A", 2)})}),
            "no-solution");
}

TEST(AllocatorAlternatives, AreRefusedWhileTheyAreOff) {
  Bed bed;
  bed.features.prioritized_list = false;
  bed.Slice("n1", "p1", {Dev("d1")});
  EXPECT_EQ(bed.Solve({Want().First({Ask("A")})}),
            "bad-input: claim ns/claim, request q0: has subrequests, but the "
            "feature DRAPrioritizedList is disabled");
}

// AL-033
TEST(AllocatorAlternatives, AreGivenUpForALaterRequest) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Cap("memory", "8Gi")});
  bed.Slice("n1", "p2", {Dev("d2").Cap("memory", "4Gi")});
  EXPECT_EQ(bed.Solve({Want()
                           .First({Ask("A").If(AtLeast("8Gi")),
                                   Ask("A").If(AtLeast("4Gi"))})
                           .One(Ask("A").If(AtLeast("8Gi")))}),
            "q0/s1=p2/d2 q1=p1/d1");
}

// AL-034
TEST(AllocatorAlternatives, ShareTheThirtyTwoDevicesOfAClaim) {
  for (const bool reduces : {true, false}) {
    Bed bed;
    bed.options.reduce_symmetry = reduces;
    bed.Slice("n1", "p1", Devices(64));
    const Outcome& outcome =
        bed.Run({Want()
                     .First({Ask("A", 32), Ask("A", 16)})
                     .First({Ask("A", 32), Ask("A", 16)})});
    ASSERT_EQ(outcome.result, Result::kSolved);
    const auto& results = outcome.allocations[0].allocation.results;
    ASSERT_EQ(results.size(), 32U);
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(results[i].device, "d" + std::to_string(i));
      EXPECT_EQ(results[i].request, i < 16 ? "q0/s1" : "q1/s1");
    }
    EXPECT_LE(outcome.steps, 75U);
  }
}

// §8.2, of which upstream needs as many steps.
TEST(AllocatorAlternatives, NeedNoMoreStepsThanUpstream) {
  for (const bool reduces : {true, false}) {
    Bed bed;
    bed.options.reduce_symmetry = reduces;
    bed.Slice("n1", "p1",
              {Dev("x").Text("type", "X"), Dev("y1").Text("type", "Y"),
               Dev("y2").Text("type", "Y")});
    const auto type = [](const std::string& value) {
      return "device.attributes['a'].type == '" + value + "'";
    };
    bed.Solve({Want()
                   .First({Ask("A", 3).If(type("Y")), Ask("A", 2)})
                   .First({Ask("A", 2), Ask("A").If(type("X"))})});
    EXPECT_EQ(TextOf(bed.outcome), "q0/s1=p1/y1 q0/s1=p1/y2 q1/s1=p1/x");
    EXPECT_LE(bed.outcome.steps, 26U);

    Bed many;
    many.options.reduce_symmetry = reduces;
    many.Slice("n1", "p1", Devices(31));
    many.Slice("n1", "p1", Devices(2), "b");
    EXPECT_EQ(
        many.Verdict(
            {Want().First({Ask::All("A"), Ask("A", 2)}).One(Ask("B", 2))}),
        "solved");
    EXPECT_EQ(many.outcome.allocations[0].allocation.results.size(), 4U);
    EXPECT_LE(many.outcome.steps, 42U);
  }
}

// AL-035
TEST(AllocatorAlternatives, MayWantAll) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Version("generation", "5.0.0")});
  EXPECT_EQ(bed.Solve({Want().First({Ask::All("A").If(Generation("6.0.0")),
                                     Ask::All("A").If(Generation("5.0.0"))})}),
            "q0/s1=p1/d1");
}

// AL-105
TEST(AllocatorAlternatives, MayBeLargerThanAClaimCanBe) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1")});
  EXPECT_EQ(bed.Solve({Want().First({Ask("B", 500), Ask("A")})}),
            "q0/s1=p1/d1");
}

// AL-106
TEST(AllocatorAll, WantsTaintedDevicesToo) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Taint("broken", "NoSchedule"), Dev("d2")});
  EXPECT_EQ(bed.Solve(Ask::All("A")), "no-solution");
}

// AL-107
TEST(AllocatorAll, MeansThoseOfTheClassOnThisNode) {
  Bed bed;
  bed.Class("selected", {"device.driver == 'a'",
                         "device.attributes['a'].?selected.orValue(false)"});
  const auto device = [](const std::string& name, const std::string& version,
                         bool selected) {
    return Dev(name).Version("generation", version).Attr("selected", selected);
  };
  bed.Slice("n1", "p1",
            {device("d1", "6.0.0", false), device("d2", "5.0.0", false),
             device("d3", "5.0.0", true)});
  bed.Slice("n2", "p2", {device("d4", "6.0.0", true)});
  EXPECT_EQ(
      bed.Solve({Want().First({Ask::All("selected").If(Generation("6.0.0")),
                               Ask::All("selected").If(Generation("5.0.0"))})}),
      "q0/s1=p1/d3");
}

// Δ4: upstream makes it an error.
TEST(AllocatorAll, HasNoSolutionWhenAConstraintIsViolated) {
  Bed bed;
  bed.Slice("n1", "p1", {Dev("d1").Int("numa", 1), Dev("d2").Int("numa", 2)});
  EXPECT_EQ(bed.Solve({Want().One(Ask::All("A")).Match("a/numa")}),
            "no-solution");
  EXPECT_EQ(
      bed.Solve({Want().First({Ask::All("A"), Ask("A")}).Match("a/numa")}),
      "q0/s1=p1/d1");
}

}  // namespace
}  // namespace devmgr::allocator
