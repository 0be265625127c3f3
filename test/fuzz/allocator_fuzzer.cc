// SPDX-License-Identifier: Apache-2.0
//
// Whole worlds: slices, classes, a node, claims that hold devices and claims
// that want some, made of bytes. Whatever they are, the allocator ends within
// its steps, breaks no rule, and says the same each time.
#include <devmgr/allocate.h>
#include <devmgr/manifests.h>

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "allocator/random_bed.h"
#include "fuzz/allocator_world.h"
#include "fuzz/fuzz.h"

namespace devmgr::allocator {
namespace {

using fuzz::Require;
using fuzz::RequireReadable;

constexpr std::uint64_t kSteps = 500;  // So that an input takes milliseconds.
constexpr std::size_t kMostDevices = 32;

void CheckRefusals(const Outcome& outcome) {
  for (const RequestRefusals& each : outcome.refusals) {
    Require(each.devices.size() <= RequestRefusals::kMostListed,
            "refusals are bounded");
    std::size_t count = 0;
    for (const auto& [reason, devices] : each.counts) count += devices;
    Require(count >= each.devices.size(), "each refusal is counted");
    for (const DeviceRefusal& device : each.devices) {
      if (!device.detail.empty()) RequireReadable(device.detail);
    }
  }
}

void CheckShape(const Outcome& outcome, std::size_t claims) {
  Require(outcome.steps <= kSteps, "a search ends within its steps");
  const bool is_solved = outcome.result == Result::kSolved;
  Require(outcome.allocations.size() == (is_solved ? claims : 0),
          "all claims are allocated, or none is");
  Require(!is_solved || outcome.message.empty(), "a solution has no message");
  Require(outcome.result != Result::kBadInput || !outcome.message.empty(),
          "what is wrong is said");
  if (!outcome.message.empty()) RequireReadable(outcome.message);
  for (const std::string& warning : outcome.warnings) RequireReadable(warning);
  for (const Allocation& each : outcome.allocations) {
    Require(each.allocation.results.size() <= kMostDevices,
            "a claim has 32 devices at most");
  }
  CheckRefusals(outcome);
}

bool IsSame(const Outcome& one, const Outcome& other) {
  if (one.result != other.result || one.message != other.message ||
      one.allocations.size() != other.allocations.size()) {
    return false;
  }
  for (std::size_t i = 0; i < one.allocations.size(); ++i) {
    if (!(one.allocations[i].allocation == other.allocations[i].allocation) ||
        one.allocations[i].charges != other.allocations[i].charges) {
      return false;
    }
  }
  return true;
}

/// The claim as its own text is read; nothing when that is refused.
std::optional<ResourceClaim> ReadAgain(const ResourceClaim& claim) {
  DecodedManifest manifest =
      DecodeManifest(EncodeResourceClaim(claim), "claim.json", "n1");
  if (manifest.objects.size() != 1) return std::nullopt;
  return std::get<ResourceClaim>(manifest.objects.front().object);
}

/// What is written can be read, if the claim could be read before.
void CheckWritten(const ResourceClaim& claim, const Allocation& allocation) {
  if (!ReadAgain(claim)) return;
  ResourceClaim allocated = claim;
  allocated.status.allocation = allocation.allocation;
  auto again = ReadAgain(allocated);
  Require(again.has_value(), "an allocated claim can be read");
  // Handles for old drivers follow from the rest.
  again->status.allocation->resource_handles.clear();
  Require(again->status.allocation == allocation.allocation,
          "an allocation is read as it was written");
}

/// The state with what was given, and without it again.
void CheckState(const Bed& bed, const std::vector<ResourceClaim>& claims) {
  AllocatedState state = bed.held;
  const auto& allocations = bed.outcome.allocations;
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    state.Add(claims[i].metadata, allocations[i].allocation,
              &allocations[i].charges);
  }
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    state.Remove(claims[i].metadata, allocations[i].allocation);
  }
  Require(state == bed.held, "what comes and goes leaves no trace");
}

/// The same search once more, and once without its short cuts.
void CheckSame(Bed& bed, const std::vector<ResourceClaim>& claims) {
  const Outcome first = bed.outcome;
  Require(IsSame(bed.Run(claims), first) && bed.outcome.steps == first.steps,
          "the same world has the same outcome");
  bed.options.reduce_symmetry = false;
  bed.Run(claims);
  bed.options.reduce_symmetry = true;
  if (first.result != Result::kInterrupted &&
      bed.outcome.result != Result::kInterrupted) {
    Require(IsSame(bed.outcome, first), "short cuts change nothing");
  }
  bed.outcome = first;
}

/// The public function over the same objects, where each holder is charged what
/// its slice says.
void CheckPublic(Bed& bed, const std::vector<ResourceClaim>& held,
                 const std::vector<ResourceClaim>& claims) {
  AllocationInput input;
  input.node = bed.node;
  input.slices.assign(bed.slices.begin(), bed.slices.end());
  input.classes.assign(bed.classes.begin(), bed.classes.end());
  input.taint_rules.assign(bed.rules.begin(), bed.rules.end());
  input.claims = held;
  input.claims.insert(input.claims.end(), claims.begin(), claims.end());
  const AllocatedClaims result = AllocateClaims(input, {.steps = kSteps});
  Require(result.steps == bed.outcome.steps &&
              result.message == bed.outcome.message &&
              result.claims.size() == bed.outcome.allocations.size(),
          "the public function has the same outcome");
  for (std::size_t i = 0; i < result.claims.size(); ++i) {
    Require(result.claims[i].status.allocation ==
                bed.outcome.allocations[i].allocation,
            "the public function allocates the same");
  }
}

void Live(FuzzedWorld world) {
  Bed& bed = world.bed;
  bed.options.limits.steps = kSteps;
  bed.options.explain = true;
  // Of this input alone: what outlives it is taken for a leak.
  cel::SelectorCache selectors(64);
  bed.options.selectors = &selectors;
  std::vector<ResourceClaim> held;
  for (const std::vector<ResourceClaim>& claims : world.rounds) {
    CheckShape(bed.Run(claims), claims.size());
    CheckState(bed, claims);
    CheckSame(bed, claims);
    if (world.is_sound && bed.features == Features()) {
      CheckPublic(bed, held, claims);
    }
    if (bed.outcome.result != Result::kSolved) continue;
    if (world.is_sound) {
      const std::string broken = Broken(bed, claims);
      Require(broken.empty(), broken.c_str());
    }
    for (std::size_t i = 0; i < claims.size(); ++i) {
      CheckWritten(claims[i], bed.outcome.allocations[i]);
      held.push_back(claims[i]);
      held.back().status.allocation = bed.outcome.allocations[i].allocation;
    }
    Commit(bed, claims);
  }
}

}  // namespace
}  // namespace devmgr::allocator

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  devmgr::Luck luck(std::span(data, size));
  devmgr::allocator::Live(devmgr::allocator::MakeFuzzedWorld(luck));
  return 0;
}
