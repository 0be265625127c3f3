// SPDX-License-Identifier: Apache-2.0
//
// The public face of the room: devmgr/allocate.h.
#include <devmgr/allocate.h>

#include <utility>

#include "allocator/allocator.h"
#include "common/enum_names.h"

namespace devmgr {
namespace {

using allocator::Result;

AllocationOutcome PublicOf(Result result) {
  switch (result) {
    case Result::kSolved:
      return AllocationOutcome::kSolved;
    case Result::kNoSolution:
      return AllocationOutcome::kNoSolution;
    case Result::kHereNotNow:
      return AllocationOutcome::kHereNotNow;
    case Result::kBadInput:
      return AllocationOutcome::kBadInput;
    case Result::kInterrupted:
      break;
  }
  return AllocationOutcome::kInterrupted;
}

RefusedRequest PublicOf(allocator::RequestRefusals from) {
  RefusedRequest to;
  to.claim = std::move(from.claim);
  to.request = std::move(from.request);
  to.wanted = from.wanted;
  to.found = from.found;
  for (allocator::DeviceRefusal& each : from.devices) {
    to.devices.push_back({std::move(each.device.driver),
                          std::move(each.device.pool),
                          std::move(each.device.device),
                          std::string(allocator::RefusalName(each.reason)),
                          std::move(each.detail)});
  }
  for (const auto& [reason, count] : from.counts) {
    to.counts.emplace_back(allocator::RefusalName(reason), count);
  }
  return to;
}

template <typename T>
std::vector<const T*> Pointers(const std::vector<T>& objects) {
  std::vector<const T*> pointers;
  for (const T& object : objects) pointers.push_back(&object);
  return pointers;
}

/// The claim under a UID: those from files may have none, and holders are
/// distinguished by it.
ResourceClaim WithUid(const ResourceClaim& claim) {
  ResourceClaim named = claim;
  if (named.metadata.uid.empty()) {
    named.metadata.uid = claim.metadata.FullName().ToString();
  }
  return named;
}

}  // namespace

std::string_view AllocationOutcomeName(AllocationOutcome outcome) {
  static constexpr auto kNames = EnumTable<AllocationOutcome>({
      {AllocationOutcome::kSolved, "Solved"},
      {AllocationOutcome::kNoSolution, "NoSolution"},
      {AllocationOutcome::kHereNotNow, "HereNotNow"},
      {AllocationOutcome::kBadInput, "BadInput"},
      {AllocationOutcome::kInterrupted, "Interrupted"},
  });
  return kNames.Of(outcome);
}

AllocatedClaims AllocateClaims(const AllocationInput& input,
                               const AllocationLimits& limits) {
  allocator::AllocatedState held;
  std::vector<ResourceClaim> open;
  std::vector<const ResourceClaim*> asked;
  for (const ResourceClaim& claim : input.claims) {
    if (claim.status.allocation.has_value()) {
      held.Add(WithUid(claim));
    } else {
      open.push_back(WithUid(claim));
      asked.push_back(&claim);
    }
  }
  const auto inventory = allocator::TakeInventory(
      {&input.node, Pointers(input.slices), Pointers(input.taint_rules)});
  allocator::Options options;
  options.limits.steps = limits.steps;
  options.limits.interrupted = limits.interrupted;
  options.explain = true;
  const auto classes = Pointers(input.classes);
  const auto claims = Pointers(open);
  allocator::Outcome outcome =
      allocator::Allocate(*inventory, classes, held, claims, options);
  AllocatedClaims result;
  result.outcome = PublicOf(outcome.result);
  result.message = std::move(outcome.message);
  result.steps = outcome.steps;
  for (std::size_t i = 0; i < outcome.allocations.size(); ++i) {
    ResourceClaim& claim = result.claims.emplace_back(*asked[i]);
    claim.status.allocation = std::move(outcome.allocations[i].allocation);
  }
  for (allocator::RequestRefusals& each : outcome.refusals) {
    result.refusals.push_back(PublicOf(std::move(each)));
  }
  return result;
}

}  // namespace devmgr
