// SPDX-License-Identifier: Apache-2.0
#include "admission/claim_steering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "allocator/refusals.h"
#include "api/quote.h"
#include "common/status.h"
#include "control/local_objects.h"
#include "control/outlook.h"
#include "device/pod_needs.h"
#include "topology/claim_hints.h"
#include "topology/provider_hints.h"

namespace devmgr::admission {
namespace {

using control::Provision;
using topology::AlignedContainer;
using topology::ClaimFit;

/// Of the holders that are in the way.
constexpr std::size_t kMostHolders = 4;

/// The nodes of the machine that a device is on.
NumaMask NodesOf(const SliceDevice& device, NumaMask machine) {
  const auto mask = NumaMask::OfNodes(topology::NumaNodesOf(device));
  return mask.has_value() ? *mask & machine : NumaMask();
}

/// The allocations that `changes` make on `state`.
std::vector<const AllocationResult*> NewAllocations(
    const std::vector<state::Change>& changes, const state::State& state) {
  std::vector<const AllocationResult*> made;
  for (const state::Change& change : changes) {
    const auto* put = std::get_if<state::PutLocalClaim>(&change);
    if (put == nullptr) continue;
    const auto& allocation = put->claim->object->status.allocation;
    const auto* before = state.FindLocalClaim(put->claim->uid);
    const bool was_allocated =
        before != nullptr && before->object->status.allocation.has_value();
    if (allocation.has_value() && !was_allocated) made.push_back(&*allocation);
  }
  return made;
}

/// `claim 'default/c' (pod 'p')`.
std::string HolderText(const ResourceClaim& claim) {
  std::vector<std::string> pods;
  for (const auto& consumer : claim.status.reserved_for) {
    if (pods.size() == kMostHolders) break;
    pods.push_back(fmt::format("pod {}", api::Quoted(consumer.name)));
  }
  return fmt::format(
      "claim {}{}{}{}", api::Quoted(claim.metadata.FullName().ToString()),
      pods.empty() ? "" : " (", fmt::join(pods, ", "), pods.empty() ? "" : ")");
}

}  // namespace

class ClaimSteering::Attempt {
 public:
  /// All are borrowed.
  Attempt(ClaimSteering& steering, const Pod& pod,
          const control::ProvideInput& input, const Provision& plain)
      : steering_(steering), pod_(pod), input_(input), plain_(plain) {
    for (const auto& [name, slice] : input.objects.resource_slices) {
      for (const SliceDevice& device : slice->devices) {
        const NumaMask nodes = NodesOf(device, steering.machine_);
        if (nodes.empty()) continue;
        drivers_.insert(slice->driver);
        all_ = all_ | nodes;
      }
    }
  }

  /// No driver says on which nodes its devices are.
  bool HasNoNodes() const { return drivers_.empty(); }

  ClaimHints Hints() {
    const auto on = [this](bool none_held) {
      return [this, none_held](const ContainerName& container,
                               const std::vector<AlignedContainer>& before) {
        return HintsFor(container, before, none_held);
      };
    };
    return {on(false), on(true)};
  }

  absl::StatusOr<Provision> Provide(const ClaimMasks& masks, bool none_held) {
    control::ProvideInput input = input_;
    input.none_held = none_held;
    std::uint64_t& spent = steering_.last_steps_;
    if (input.steps) *input.steps -= std::min(*input.steps, spent);
    input.admits = [this, &masks](const ContainerName& container,
                                  const ResourceSlice& slice,
                                  const SliceDevice& device) {
      auto mask = masks.find(container);
      if (mask == masks.end()) mask = masks.find(ContainerName());
      return mask == masks.end() || IsNear(slice, device, mask->second);
    };
    auto provision = steering_.provider_.Provide(pod_, input);
    spent += steering_.provider_.last_steps();
    if (provision.ok()) NameNodes(&provision->refusals);
    return provision;
  }

  /// Adds to a refusal why devices of claims do not do.
  absl::Status Explain(const ClaimAlignment& refused, Provision* provision);

  /// Adds to a wait the holders of devices that are in the way.
  void NameHolders(const ClaimAlignment& refused, Verdict* verdict) const;

 private:
  /// Where a driver says nothing of any device, none of them counts.
  bool IsNear(const ResourceSlice& slice, const SliceDevice& device,
              NumaMask nodes) const {
    if (!drivers_.contains(slice.driver)) return true;
    return !(NodesOf(device, steering_.machine_) & nodes).empty();
  }

  /// Says where devices are that are on the wrong nodes.
  void NameNodes(std::vector<allocator::RequestRefusals>* refusals) const;

  bool UsesClaims(const ContainerName& container) const {
    if (container.empty()) return true;
    const auto uses = [&](const Container& one) {
      return one.name == container.value && !one.resources.claims.empty();
    };
    const auto& spec = pod_.spec;
    if (std::any_of(spec.containers.begin(), spec.containers.end(), uses) ||
        std::any_of(spec.init_containers.begin(), spec.init_containers.end(),
                    uses)) {
      return true;
    }
    for (const state::Change& change : plain_.changes) {
      const auto* put = std::get_if<state::PutLocalClaim>(&change);
      if (put == nullptr) continue;
      for (const auto& mapping : put->claim->mappings) {
        if (mapping.container_name == container.value) return true;
      }
    }
    return false;
  }

  absl::StatusOr<ClaimFit> Try(const ClaimMasks& masks, bool none_held) {
    const auto provision = Provide(masks, none_held);
    if (!provision.ok()) return provision.status();
    if (provision->verdict.kind != Verdict::Kind::kAdmit) {
      return ClaimFit::kNone;
    }
    for (const auto* made : NewAllocations(provision->changes, input_.state)) {
      for (const auto& result : made->results) {
        if (drivers_.contains(result.driver)) return ClaimFit::kOnNodes;
      }
    }
    return ClaimFit::kNowhere;
  }

  absl::StatusOr<std::vector<topology::ResourceHints>> HintsFor(
      const ContainerName& container,
      const std::vector<AlignedContainer>& before, bool none_held) {
    std::vector<topology::ResourceHints> lists;
    const auto made = NewAllocations(plain_.changes, input_.state);
    if (made.empty() || !UsesClaims(container)) return lists;
    ClaimMasks masks;
    for (const AlignedContainer& one : before) {
      if (one.merged.hint.nodes) masks[one.container] = *one.merged.hint.nodes;
    }
    const auto on = [&](bool none) {
      return [&, none](NumaMask nodes) {
        masks[container] = nodes;
        return Try(masks, none);
      };
    };
    auto hints = topology::HintsOfChoice({on(none_held), on(true), all_});
    if (!hints.ok()) return hints.status();
    lists.push_back(topology::ToResourceHints(
        topology::kClaimProvider, "claims to be allocated", *hints));
    return lists;
  }

  ClaimSteering& steering_;
  const Pod& pod_;
  const control::ProvideInput& input_;
  const Provision& plain_;
  std::set<std::string> drivers_;  ///< That say so of some device.
  NumaMask all_;                   ///< The nodes of their devices.
};

void ClaimSteering::Attempt::NameHolders(const ClaimAlignment& refused,
                                         Verdict* verdict) const {
  std::set<std::string> wanted;
  for (const auto* made : NewAllocations(plain_.changes, input_.state)) {
    for (const auto& result : made->results) wanted.insert(result.driver);
  }
  const NumaMask where = refused.possible.value_or(steering_.machine_);
  std::set<state::DeviceKey> there;
  for (const auto& [name, slice] : input_.objects.resource_slices) {
    if (!wanted.contains(slice->driver)) continue;
    for (const SliceDevice& device : slice->devices) {
      if ((NodesOf(device, steering_.machine_) & where).empty()) continue;
      there.emplace(slice->driver, slice->pool, device.name);
    }
  }
  std::vector<std::string> holders;
  for (const auto& [name, claim] : input_.objects.claims) {
    if (!claim->status.allocation.has_value()) continue;
    const auto& results = claim->status.allocation->results;
    const bool is_there =
        std::any_of(results.begin(), results.end(), [&](const auto& result) {
          return !result.admin_access &&
                 there.contains({result.driver, result.pool, result.device});
        });
    if (!is_there) continue;
    if (holders.size() == kMostHolders) break;
    holders.push_back(HolderText(*claim));
  }
  if (!holders.empty()) {
    verdict->message +=
        fmt::format("; devices of NUMA node{} {} are held by {}",
                    where.Count() == 1 ? "" : "s",
                    fmt::join(where.Nodes(), ","), fmt::join(holders, ", "));
  }
  for (const std::string& driver : wanted) {
    verdict->waiting_for.push_back({WaitingFor::Kind::kDevices, driver});
    verdict->waiting_for.push_back({WaitingFor::Kind::kFreeDevices, driver});
  }
  // What a claim of the pod's own holds that others share.
  if (wanted.empty()) {
    verdict->waiting_for.push_back(
        {WaitingFor::Kind::kFreeDevices, WaitingFor::kAnyDriver});
  }
}

void ClaimSteering::Attempt::NameNodes(
    std::vector<allocator::RequestRefusals>* refusals) const {
  std::map<state::DeviceKey, NumaMask> nodes;
  for (allocator::RequestRefusals& request : *refusals) {
    if (!request.counts.contains(allocator::Refusal::kNuma)) continue;
    if (nodes.empty()) {
      for (const auto& [name, slice] : input_.objects.resource_slices) {
        for (const SliceDevice& device : slice->devices) {
          nodes[{slice->driver, slice->pool, device.name}] =
              NodesOf(device, steering_.machine_);
        }
      }
    }
    for (allocator::DeviceRefusal& one : request.devices) {
      if (one.reason != allocator::Refusal::kNuma) continue;
      const NumaMask on =
          nodes[{one.device.driver, one.device.pool, one.device.device}];
      one.detail = on.empty() ? "on no NUMA node"
                              : fmt::format("on NUMA node {}",
                                            fmt::join(on.Nodes(), ","));
    }
  }
}

absl::Status ClaimSteering::Attempt::Explain(const ClaimAlignment& refused,
                                             Provision* provision) {
  ClaimMasks masks = refused.masks;
  // Of a pod that could never be aligned no node would do.
  const bool waits = refused.verdict.kind == Verdict::Kind::kWait;
  masks[refused.refused] =
      waits ? refused.possible.value_or(steering_.machine_) : NumaMask();
  auto tried = Provide(masks, /*none_held=*/false);
  if (!tried.ok()) return tried.status();
  provision->refusals = std::move(tried->refusals);
  provision->elsewhere = std::move(tried->elsewhere);
  return absl::OkStatus();
}

absl::StatusOr<Provision> ClaimSteering::Steer(
    const Pod& pod, const control::ProvideInput& input, Provision plain,
    const Align& align, bool explain) {
  last_steps_ = 0;
  Attempt attempt(*this, pod, input, plain);
  if (attempt.HasNoNodes()) return plain;
  const control::Outlook outlook =
      control::OutlookWith(plain.changes, input.state, input.objects);
  auto provided =
      std::make_shared<const Pod>(control::WithLocalStatus(pod, outlook.state));
  const auto aligned =
      align(provided, device::NeedsOf(*provided, input.extended_resources),
            attempt.Hints());
  if (!aligned.ok()) return aligned.status();
  if (aligned->verdict.kind != Verdict::Kind::kAdmit) {
    Provision refused;
    refused.verdict = aligned->verdict;
    if (refused.verdict.kind == Verdict::Kind::kWait) {
      attempt.NameHolders(*aligned, &refused.verdict);
    }
    if (explain) {
      DEVMGR_RETURN_IF_ERROR(attempt.Explain(*aligned, &refused));
    }
    return refused;
  }
  if (aligned->masks.empty()) return plain;
  auto steered = attempt.Provide(aligned->masks, /*none_held=*/false);
  const bool found =
      steered.ok() && steered->verdict.kind == Verdict::Kind::kAdmit;
  if (!found && aligned->is_best_effort) return plain;
  return steered;
}

absl::StatusOr<Provision> ClaimSteering::ProvideOn(
    const ClaimMasks& masks, const Pod& pod,
    const control::ProvideInput& input) {
  last_steps_ = 0;
  const Provision none;
  return Attempt(*this, pod, input, none).Provide(masks, /*none_held=*/false);
}

}  // namespace devmgr::admission
