// SPDX-License-Identifier: Apache-2.0
//
// The public face of the room: devmgr/allocate.h.
#include <devmgr/allocate.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocator.h"
#include "allocator/features.h"
#include "allocator/named_resources.h"
#include "common/enum_names.h"
#include "common/status.h"

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

/// Keeps a claim that is allocated from being removed.
void AddFinalizer(ResourceClaim& claim) {
  const std::string name = claim.spec.old
                               ? "dra.k8s.io/delete-protection"
                               : "resource.kubernetes.io/delete-protection";
  auto& all = claim.metadata.finalizers;
  if (std::find(all.begin(), all.end(), name) == all.end()) {
    all.push_back(name);
  }
}

/// The claims of an input, as the search knows them. Borrows the input.
class AskedClaims {
 public:
  explicit AskedClaims(const AllocationInput& input) : input_(input) {}

  /// Once. Errors are those of MakeNamedResourceClaim(), with the claim.
  absl::Status Take() {
    for (const ResourceClaim& claim : input_.claims) {
      if (claim.status.allocation.has_value()) {
        held_.Add(WithUid(claim));
        continue;
      }
      Asked& asked = asked_.emplace_back(Asked{&claim, WithUid(claim), {}});
      if (!claim.spec.old) continue;
      auto named = allocator::MakeNamedResourceClaim(
          asked.claim, *claim.spec.old,
          {input_.resource_classes, input_.resource_class_parameters,
           input_.resource_claim_parameters});
      if (!named.ok()) {
        return absl::Status(
            named.status().code(),
            fmt::format("claim {}: {}", claim.metadata.FullName().ToString(),
                        MessageOf(named.status())));
      }
      asked.named = *std::move(named);
    }
    return absl::OkStatus();
  }

  const allocator::AllocatedState& held() const { return held_; }
  std::vector<const ResourceClaim*> Open() const {
    std::vector<const ResourceClaim*> open;
    for (const Asked& each : asked_) {
      open.push_back(each.named ? &each.named->claim : &each.claim);
    }
    return open;
  }
  std::vector<const DeviceClass*> Classes() const {
    auto classes = Pointers(input_.classes);
    for (const Asked& each : asked_) {
      if (each.named) classes.push_back(&each.named->device_class);
    }
    return classes;
  }

  /// The claim `i` of those that were asked for.
  ResourceClaim Allocated(std::size_t i, AllocationResult allocation) const {
    const Asked& asked = asked_[i];
    ResourceClaim claim = *asked.source;
    if (asked.named) {
      allocator::AddOldForm(*asked.named, input_.node.metadata.name,
                            allocation);
      claim.status.driver = asked.named->driver;
    }
    AddFinalizer(claim);
    claim.status.allocation = std::move(allocation);
    return claim;
  }

 private:
  struct Asked {
    const ResourceClaim* source;
    ResourceClaim claim;
    std::optional<allocator::NamedResourceClaim> named;
  };

  const AllocationInput& input_;
  allocator::AllocatedState held_;
  std::vector<Asked> asked_;
};

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
  AllocatedClaims result;
  AskedClaims asked(input);
  if (absl::Status status = asked.Take(); !status.ok()) {
    result.outcome = absl::IsUnavailable(status)
                         ? AllocationOutcome::kNoSolution
                         : AllocationOutcome::kBadInput;
    result.message = MessageOf(status);
    return result;
  }
  const auto rules = input.feature_gates.find("DRADeviceTaintRules");
  const bool has_rules = rules == input.feature_gates.end() || rules->second;
  allocator::World world{&input.node, Pointers(input.slices), {}};
  if (has_rules) world.taint_rules = Pointers(input.taint_rules);
  const auto inventory = allocator::TakeInventory(
      world, allocator::FeaturesOf(input.feature_gates));
  allocator::Options options;
  options.limits.steps = limits.steps;
  options.limits.interrupted = limits.interrupted;
  options.explain = true;
  const auto classes = asked.Classes();
  const auto claims = asked.Open();
  allocator::Outcome outcome =
      allocator::Allocate(*inventory, classes, asked.held(), claims, options);
  result.outcome = PublicOf(outcome.result);
  result.message = std::move(outcome.message);
  result.steps = outcome.steps;
  for (std::size_t i = 0; i < outcome.allocations.size(); ++i) {
    result.claims.push_back(
        asked.Allocated(i, std::move(outcome.allocations[i].allocation)));
  }
  for (allocator::RequestRefusals& each : outcome.refusals) {
    result.refusals.push_back(PublicOf(std::move(each)));
  }
  return result;
}

}  // namespace devmgr
