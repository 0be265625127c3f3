// SPDX-License-Identifier: Apache-2.0
//
// Allocating devices: one claim on a node with ten devices, beside the pools of
// 500 nodes, and claims for which there is no solution, or one only after going
// back far; what claims hold; and many claims that wait for one device.
#include <fmt/core.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/bed.h"
#include "allocator/inventory.h"
#include "allocator/selector_table.h"
#include "bench/support.h"

namespace devmgr::bench {
namespace {

using allocator::AllocatedState;
using allocator::Ask;
using allocator::Bed;
using allocator::Dev;
using allocator::Outcome;
using allocator::Result;
using allocator::Want;

/// A world that stays, and searches in it.
class Node {
 public:
  explicit Node(Bed bed) : bed_(std::move(bed)) {
    for (const DeviceClass& each : bed_.classes) classes_.push_back(&each);
    inventory_ = allocator::TakeInventory(bed_.MakeWorld(), bed_.features);
  }

  Outcome Solve(const std::vector<Want>& claims) const {
    std::vector<const ResourceClaim*> all;
    for (const Want& claim : claims) all.push_back(&claim);
    return allocator::Allocate(*inventory_, classes_, bed_.held, all,
                               bed_.options);
  }
  /// A claim comes, gets its device, and goes.
  void SolveAndRelease(const ResourceClaim& claim) {
    const ResourceClaim* const claims[] = {&claim};
    const Outcome outcome = allocator::Allocate(
        *inventory_, classes_, bed_.held, claims, bed_.options);
    if (outcome.result != Result::kSolved) Fail(outcome.message);
    const auto& allocation = outcome.allocations[0];
    bed_.held.Add(claim.metadata, allocation.allocation, &allocation.charges);
    bed_.held.Remove(claim.metadata, allocation.allocation);
  }

 private:
  Bed bed_;
  std::vector<const DeviceClass*> classes_;
  std::shared_ptr<const allocator::Inventory> inventory_;
};

Bed TenDevices(int held, int other_pools) {
  Bed bed;
  bed.Slice("n1", "p1", allocator::Devices(10));
  for (int i = 0; i < held; ++i) bed.Held(fmt::format("d{}", i));
  for (int i = 0; i < other_pools; ++i) {
    bed.Slice(fmt::format("other-{}", i), fmt::format("other-{}", i),
              allocator::Devices(10));
  }
  return bed;
}

double OneClaim(Report& report, const std::string& name, Bed bed,
                std::optional<double> goal, double limit) {
  Node node(std::move(bed));
  const Want claim = Want().One(Ask("A"));
  Samples samples;
  Rounds rounds(report.brief() ? 10 : 20'000, std::chrono::seconds(5));
  while (rounds.Next()) {
    samples.Add(Microseconds([&] { node.SolveAndRelease(claim); }));
  }
  report.Add({name, "us", samples.Median(),
              limit > 0 ? std::optional(limit) : std::nullopt,
              limit > 0 ? "without the other pools" : "", goal});
  report.Add({name + ", p99", "us", samples.Quantile(0.99), std::nullopt, "",
              std::nullopt});
  return samples.Median();
}

void Hard(Report& report, const std::string& name, Bed bed,
          const std::vector<Want>& claims, Result result, double goal_ms) {
  const Node node(std::move(bed));
  Samples samples;
  std::uint64_t steps = 0;
  Rounds rounds(report.brief() ? 2 : 100, std::chrono::seconds(5));
  while (rounds.Next()) {
    samples.Add(Microseconds([&] {
                  const Outcome outcome = node.Solve(claims);
                  if (outcome.result != result) Fail(TextOf(outcome));
                  steps = outcome.steps;
                }) /
                1'000);
  }
  report.Add({name, "ms", samples.Median(), std::nullopt, "", goal_ms});
  report.Add({name + ": steps", "", static_cast<double>(steps), std::nullopt,
              "", std::nullopt});
}

Bed EqualDevices(int count) {
  Bed bed;
  bed.Slice("n1", "p1", allocator::Devices(count));
  return bed;
}

/// Claims of as many pods that are to be served together.
std::vector<Want> Gang(int pods) {
  std::vector<Want> claims;
  for (int i = 0; i < pods; ++i) {
    claims.push_back(Want(fmt::format("pod-{}", i)).One(Ask("A", 2)));
  }
  return claims;
}

/// Claims that hold a device each of a pool.
std::vector<ResourceClaim> Holders(int count) {
  std::vector<ResourceClaim> claims;
  for (int i = 0; i < count; ++i) {
    Want claim(fmt::format("claim-{}", i));
    auto& result = claim.status.allocation.emplace().results.emplace_back();
    result.request = "q0";
    result.driver = "a";
    result.pool = "p1";
    result.device = fmt::format("d{}", i);
    claims.push_back(claim);
  }
  return claims;
}

/// What claims hold: counted from the first claim on, and with one more.
void State(Report& report, int count) {
  const std::vector<ResourceClaim> claims = Holders(count + 1);
  Samples built;
  Samples changed;
  Rounds rounds(report.brief() ? 2 : 200, std::chrono::seconds(5));
  while (rounds.Next()) {
    AllocatedState state;
    built.Add(Microseconds([&] {
                for (int i = 0; i < count; ++i) state.Add(claims[i]);
              }) /
              count);
    const AllocatedState copy = state;
    const ResourceClaim& more = claims.back();
    changed.Add(Microseconds([&] {
      state.Add(more);
      state.Remove(more.metadata, *more.status.allocation);
    }));
    if (state != copy) Fail("a claim has left a trace");
  }
  report.Add({fmt::format("allocated state of {} claims, per claim", count),
              "us", built.Median(), std::nullopt, "", std::nullopt});
  report.Add({fmt::format("one claim more beside {}, and gone", count), "us",
              changed.Median(), std::nullopt, "", std::nullopt});
}

/// A device has come, all others are held, and all claims that wait are judged.
void Waiting(Report& report, int count) {
  Bed bed;
  bed.Slice("n1", "p1", allocator::Devices(128));
  for (const ResourceClaim& claim : Holders(128)) bed.held.Add(claim);
  bed.Slice("n1", "p2", {Dev("new").Text("model", "m7")});
  std::vector<Want> claims;
  for (int i = 0; i < count; ++i) {
    claims.push_back(Want(fmt::format("waiting-{}", i))
                         .One(Ask("A").If(fmt::format(
                             "device.attributes['a'].model == 'm{}'", i % 8))));
  }
  std::vector<const DeviceClass*> classes;
  for (const DeviceClass& each : bed.classes) classes.push_back(&each);
  Samples samples;
  Rounds rounds(report.brief() ? 2 : 100, std::chrono::seconds(5));
  while (rounds.Next()) {
    AllocatedState held = bed.held;
    int solved = 0;
    samples.Add(Microseconds([&] {
                  allocator::Judge judge(
                      allocator::TakeInventory(bed.MakeWorld(), bed.features),
                      classes, bed.options);
                  for (const Want& claim : claims) {
                    const std::vector<const ResourceClaim*> one = {&claim};
                    const Outcome outcome = judge.Allocate(held, one);
                    if (outcome.result != Result::kSolved) continue;
                    ++solved;
                    const auto& allocation = outcome.allocations[0];
                    held.Add(claim.metadata, allocation.allocation,
                             &allocation.charges);
                  }
                }) /
                1'000);
    if (solved != 1) Fail(fmt::format("{} claims got the device", solved));
  }
  report.Add({fmt::format("{} waiting claims, one new device of 129", count),
              "ms", samples.Median(), std::nullopt, "", 20});
}

/// What 32 selectors say of each of 128 devices, when they are asked and when
/// that is known. Devices were converted before.
void Verdicts(Report& report) {
  constexpr int kDevices = 128;
  constexpr int kSelectors = 32;
  std::vector<SliceDevice> devices;
  for (int i = 0; i < kDevices; ++i) {
    devices.push_back(
        Dev(fmt::format("d{}", i)).Text("model", fmt::format("m{}", i % 8)));
  }
  Bed bed;
  bed.Slice("n1", "p1", devices);
  const auto inventory = allocator::TakeInventory(bed.MakeWorld());
  cel::SelectorCache cache(kSelectors);
  Samples asked;
  Samples known;
  Rounds rounds(report.brief() ? 2 : 200, std::chrono::seconds(5));
  while (rounds.Next()) {
    allocator::SelectorTable table(*inventory, &cache, nullptr);
    std::vector<allocator::SelectorNumber> selectors;
    for (int i = 0; i < kSelectors; ++i) {
      selectors.push_back(
          table.Add(fmt::format("device.attributes['a'].model == 'm{}'", i)));
    }
    for (Samples* samples : {&asked, &known}) {
      int matches = 0;
      samples->Add(Microseconds([&] {
                     for (const auto selector : selectors) {
                       for (int device = 0; device < kDevices; ++device) {
                         matches += table.Of(selector, device) ==
                                    allocator::SelectorTable::Verdict::kMatch;
                       }
                     }
                   }) *
                   1'000 / (kDevices * kSelectors));
      if (matches != kDevices) Fail(fmt::format("{} matches", matches));
    }
  }
  const auto add = [&](const char* how, const Samples& samples,
                       std::optional<double> goal) {
    report.Add(
        {fmt::format("a verdict of 32 selectors on 128 devices, {}", how), "ns",
         samples.Median(), std::nullopt, "", goal});
  };
  add("asked", asked, std::nullopt);
  add("known", known, 1'000);
}

/// Each device takes a counter of its own, and the first one twice the memory
/// of the others: it has to be given back.
Bed Partitions(int count) {
  std::map<std::string, std::string> counters = {
      {"memory", fmt::format("{}Gi", 10 * (count - 1))}};
  std::vector<SliceDevice> devices;
  for (int i = 0; i < count; ++i) {
    const std::string own = fmt::format("cpu{}", i);
    counters[own] = "1";
    devices.push_back(
        Dev(fmt::format("d{}", i))
            .Uses("set", {{"memory", i == 0 ? "20Gi" : "10Gi"}, {own, "1"}}));
  }
  Bed bed;
  bed.Counters("p1", "set", counters);
  bed.Slice("n1", "p1", devices);
  return bed;
}

}  // namespace
}  // namespace devmgr::bench

int main(int argc, char** argv) {
  using namespace devmgr::bench;  // NOLINT(google-build-using-namespace)
  Report report(argc, argv);
  const double alone = OneClaim(report, "a claim on 10 devices, none held",
                                TenDevices(0, 0), std::nullopt, 0);
  OneClaim(report, "a claim on 10 devices, half held", TenDevices(5, 0),
           std::nullopt, 0);
  OneClaim(report, "a claim on 10 devices, one left", TenDevices(9, 0),
           std::nullopt, 0);
  OneClaim(report, "a claim on 10 devices beside 500 pools", TenDevices(0, 500),
           1.2 * alone, alone);
  Hard(report, "21 of 20 equal devices", EqualDevices(20),
       {Want().One(Ask("A", 21))}, Result::kNoSolution, 10);
  Hard(report, "16 of 64 equal devices, then an impossible request",
       EqualDevices(64), {Want().One(Ask("A", 16)).One(Ask("B"))},
       Result::kNoSolution, 10);
  Hard(report, "31 of 32 partitions, without the first", Partitions(32),
       {Want().One(Ask("A", 31))}, Result::kSolved, 50);
  Hard(report, "16 claims for 2 of 32 equal devices", EqualDevices(32),
       Gang(16), Result::kSolved, 100);
  Hard(report, "16 claims for 2 of 31 equal devices", EqualDevices(31),
       Gang(16), Result::kNoSolution, 100);
  Verdicts(report);
  State(report, 1'000);
  State(report, 10'000);
  Waiting(report, 1'000);
}
