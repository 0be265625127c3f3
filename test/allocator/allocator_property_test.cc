// SPDX-License-Identifier: Apache-2.0
//
// What holds of every world and every claim.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/constraints.h"
#include "allocator/eligibility.h"
#include "allocator/holdings.h"
#include "allocator/inventory.h"
#include "allocator/random_bed.h"
#include "allocator/requests.h"
#include "allocator/selector_table.h"
#include "allocator/trial.h"
#include "support/random_lives.h"

namespace devmgr::allocator {
namespace {

// Nothing is handed out twice or overdrawn, and what is released leaves no
// trace.
TEST(AllocatorProperty, AllocationsBreakNoRule) {
  int solved = 0;
  const bool is_whole = LiveEach({.seed = 7, .lives = 400}, [&](Luck& luck) {
    Bed bed = RandomBed(luck);
    std::vector<std::pair<ResourceClaim, AllocationResult>> held;
    for (int round = 0; round < 6; ++round) {
      const auto claims = RandomClaims(luck);
      if (bed.Run(claims).result == Result::kSolved) {
        ++solved;
        ASSERT_EQ(Broken(bed, claims), "") << TextOf(bed.outcome);
        Commit(bed, claims);
        for (std::size_t i = 0; i < claims.size(); ++i) {
          held.emplace_back(claims[i], bed.outcome.allocations[i].allocation);
        }
      } else if (!held.empty() && luck.Chance(50)) {
        const auto place =
            held.begin() + luck.Below(static_cast<int>(held.size()));
        bed.held.Remove(place->first.metadata, place->second);
        held.erase(place);
      }
    }
    for (const auto& [claim, allocation] : held) {
      bed.held.Remove(claim.metadata, allocation);
    }
    EXPECT_EQ(bed.held, AllocatedState());
  });
  if (is_whole) {
    EXPECT_GT(solved, 100);
  }
}

// The order in which objects come, and devices that no class selects, make no
// difference; nor do the short cuts of the search.
TEST(AllocatorProperty, TheFirstFitIsAlwaysTheSame) {
  std::map<Result, int> results;
  const bool is_whole = LiveEach({.seed = 11, .lives = 600}, [&](Luck& luck) {
    Bed bed = RandomBed(luck);
    const auto before = RandomClaims(luck);
    if (bed.Run(before).result == Result::kSolved) Commit(bed, before);
    const auto claims = RandomClaims(luck, true, true);
    const std::string first = bed.Solve(claims);
    const std::uint64_t steps = bed.outcome.steps;

    Bed shuffled = bed;
    std::shuffle(shuffled.slices.begin(), shuffled.slices.end(), luck);
    std::shuffle(shuffled.classes.begin(), shuffled.classes.end(), luck);
    shuffled.Slice("n1", "p0", {Dev("d0"), Dev("d1")}, "0");
    EXPECT_EQ(shuffled.Solve(claims), first);

    bed.options.reduce_symmetry = false;
    bed.options.limits.steps = 100'000;
    const std::string plain = bed.Solve(claims);
    if (bed.outcome.result != Result::kInterrupted) {
      EXPECT_EQ(plain, first);
      EXPECT_LE(steps, 5 * bed.outcome.steps + 1'000);
    }
    ++results[bed.outcome.result];
  });
  if (is_whole) {
    EXPECT_GT(results[Result::kSolved], 20);
    EXPECT_GT(results[Result::kNoSolution], 20);
    EXPECT_GT(results[Result::kBadInput], 5);
  }
}

// More devices are never fewer, unless all are wanted.
TEST(AllocatorProperty, AFreeDeviceMoreTakesNoSolutionAway) {
  LiveEach({.seed = 13, .lives = 300}, [](Luck& luck) {
    Bed bed = RandomBed(luck);
    const auto before = RandomClaims(luck, false);
    if (bed.Run(before).result == Result::kSolved) Commit(bed, before);
    const auto claims = RandomClaims(luck, false);
    if (bed.Run(claims).result != Result::kSolved) return;
    bed.Slice("n1", luck.Chance(50) ? "o1" : "q1",
              {Dev("more").Int("numa", luck.Below(2)).Cap("memory", "2")});
    EXPECT_EQ(bed.Verdict(claims), "solved");
  });
}

/// All that a trial needs.
struct TrialBed {
  TrialBed(Bed& bed, const std::vector<ResourceClaim>& claims)
      : inventory(bed.MakeWorld(), bed.features),
        selectors(inventory, nullptr, nullptr),
        attributes(inventory),
        holdings(inventory, bed.held) {
    std::vector<const ResourceClaim*> wanted;
    for (const ResourceClaim& claim : claims) wanted.push_back(&claim);
    std::vector<const DeviceClass*> classes;
    for (const DeviceClass& each : bed.classes) classes.push_back(&each);
    EXPECT_TRUE(ReadRequests(wanted, classes, bed.features, selectors,
                             attributes, requests)
                    .ok());
    eligibility.emplace(inventory, holdings, requests, selectors, attributes,
                        options);
    trial.emplace(inventory, requests, *eligibility, attributes,
                  holdings.counters);
  }

  Inventory inventory;
  SelectorTable selectors;
  AttributeTable attributes;
  Holdings holdings;
  Requests requests;
  const Options options;
  std::optional<Eligibility> eligibility;
  std::optional<Trial> trial;
};

// Whatever is taken and given back, in whatever depth, and whatever is refused.
TEST(AllocatorProperty, ATrialLeavesNoTrace) {
  int taken = 0;
  int refused = 0;
  const bool is_whole = LiveEach({.seed = 17, .lives = 300}, [&](Luck& luck) {
    Bed bed = RandomBed(luck);
    const auto before = RandomClaims(luck);
    if (bed.Run(before).result == Result::kSolved) Commit(bed, before);
    const auto claims = RandomClaims(luck);
    TrialBed world(bed, claims);
    std::vector<Trial> states = {*world.trial};
    const auto devices =
        static_cast<DeviceNumber>(world.inventory.devices().size());
    if (devices == 0) return;
    for (int step = 0; step < 60; ++step) {
      if (states.size() > 1 && luck.Chance(40)) {
        world.trial->GiveBackLast();
        states.pop_back();
        ASSERT_EQ(*world.trial, states.back());
        continue;
      }
      const auto request = luck.Below(
          static_cast<RequestNumber>(world.requests.requests.size()));
      const DeviceNumber device = luck.Below(devices);
      if (world.trial->IsTaken(world.requests.requests[request], device) ||
          world.eligibility->Of(request, device) !=
              Eligibility::Verdict::kYes ||
          world.trial->Test(request, device) != Refusal::kNone) {
        ++refused;
        ASSERT_EQ(*world.trial, states.back());
        continue;
      }
      world.trial->Take(request, device);
      ++taken;
      ASSERT_FALSE(*world.trial == states.back());
      states.push_back(*world.trial);
    }
  });
  if (is_whole) {
    EXPECT_GT(taken, 100);
    EXPECT_GT(refused, 100);
  }
}

// One claim after the other, with some released, and an inventory of its own
// for each judge.
TEST(AllocatorProperty, AJudgeKeepsNothingThatChangesAnOutcome) {
  std::map<Result, int> results;
  const bool is_whole = LiveEach({.seed = 23, .lives = 300}, [&](Luck& luck) {
    Bed bed = RandomBed(luck);
    bed.options.explain = true;
    std::vector<const DeviceClass*> classes;
    for (const DeviceClass& each : bed.classes) classes.push_back(&each);
    Judge judge(TakeInventory(bed.MakeWorld(), bed.features), classes,
                bed.options);
    std::vector<std::pair<ResourceClaim, AllocationResult>> held;
    for (int round = 0; round < 12; ++round) {
      const auto claims = RandomClaims(luck, true, true);
      std::vector<const ResourceClaim*> wanted;
      for (const ResourceClaim& claim : claims) wanted.push_back(&claim);
      const Outcome judged = judge.Allocate(bed.held, wanted);
      const Outcome& alone = bed.Run(claims);
      ++results[alone.result];
      ASSERT_EQ(TextOf(judged), TextOf(alone));
      ASSERT_EQ(judged.steps, alone.steps);
      ASSERT_EQ(judged.refusals.size(), alone.refusals.size());
      for (std::size_t i = 0; i < alone.refusals.size(); ++i) {
        ASSERT_EQ(judged.refusals[i].counts, alone.refusals[i].counts);
      }
      if (alone.result == Result::kSolved) {
        Commit(bed, claims);
        for (std::size_t i = 0; i < claims.size(); ++i) {
          held.emplace_back(claims[i], alone.allocations[i].allocation);
        }
      } else if (!held.empty()) {
        bed.held.Remove(held.back().first.metadata, held.back().second);
        held.pop_back();
      }
    }
  });
  if (is_whole) {
    EXPECT_GT(results[Result::kSolved], 100);
    EXPECT_GT(results[Result::kNoSolution], 100);
    EXPECT_GT(results[Result::kBadInput], 10);
  }
}

// A state that claims came to and left in any order is the one of those that
// are left, and a copy stays what it was.
TEST(AllocatorProperty, AStateIsThatOfItsClaims) {
  LiveEach({.seed = 19, .lives = 200}, [](Luck& luck) {
    struct Held {
      Want claim;
      std::vector<DeviceCharge> charges;
      bool is_recorded;
    };
    std::vector<Held> held;
    AllocatedState state;
    AllocatedState anew;
    for (int step = 0; step < 40; ++step) {
      const AllocatedState copy = state;
      const AllocatedState before = anew;
      if (!held.empty() && luck.Chance(40)) {
        const auto place =
            held.begin() + luck.Below(static_cast<int>(held.size()));
        state.Remove(place->claim.metadata, *place->claim.status.allocation);
        held.erase(place);
      } else {
        Held each{Want(std::to_string(step)), {}, luck.Chance(70)};
        auto& result =
            each.claim.status.allocation.emplace().results.emplace_back();
        result.driver = luck.Chance(50) ? "a" : "b";
        result.pool = "p";
        result.device = std::to_string(luck.Below(3));
        if (luck.Chance(70)) result.share_id = std::to_string(step);
        result.admin_access = luck.Chance(10);
        result.consumed_capacity.emplace("memory",
                                         Q(luck.Chance(50) ? "300m" : "1"));
        each.charges.push_back(
            {{result.driver, "p", result.device},
             {{{"set", "slots"}, Q(luck.Chance(50) ? "1" : "2")}}});
        if (luck.Chance(20)) {
          auto& results = each.claim.status.allocation->results;
          results.push_back(results.front());
        }
        state.Add(each.claim, each.is_recorded ? &each.charges : nullptr);
        held.push_back(each);
      }
      anew = {};
      std::shuffle(held.begin(), held.end(), luck);
      for (const Held& each : held) {
        anew.Add(each.claim, each.is_recorded ? &each.charges : nullptr);
      }
      ASSERT_EQ(state, anew);
      ASSERT_EQ(copy, before);
      ASSERT_EQ(state.Charged({"a", "p"}), anew.Charged({"a", "p"}));
    }
  });
}

}  // namespace
}  // namespace devmgr::allocator
