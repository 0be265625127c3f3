// SPDX-License-Identifier: Apache-2.0
#include "pods/claim_steering.h"

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

#include "api/quote.h"
#include "control/local_objects.h"
#include "control/outlook.h"
#include "device/pod_needs.h"
#include "topology/claim_hints.h"
#include "topology/provider_hints.h"

namespace devmgr::pods {
namespace {

using control::Provision;
using topology::AlignedContainer;
using topology::ClaimFit;

/// Of the holders that are in the way.
constexpr std::size_t kMostHolders = 4;

using Masks = std::map<ContainerName, NumaMask>;

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

  absl::StatusOr<Provision> Provide(const Masks& masks, bool none_held) {
    control::ProvideInput input = input_;
    input.none_held = none_held;
    input.admits = [this, &masks](const ContainerName& container,
                                  const ResourceSlice& slice,
                                  const SliceDevice& device) {
      auto mask = masks.find(container);
      if (mask == masks.end()) mask = masks.find(ContainerName());
      return mask == masks.end() || IsNear(slice, device, mask->second);
    };
    return steering_.provider_.Provide(pod_, input);
  }

  /// Adds to a wait the holders of devices that are in the way.
  void NameHolders(const ClaimAlignment& refused, Verdict* verdict) const;

 private:
  /// Where a driver says nothing of any device, none of them counts.
  bool IsNear(const ResourceSlice& slice, const SliceDevice& device,
              NumaMask nodes) const {
    if (!drivers_.contains(slice.driver)) return true;
    return !(NodesOf(device, steering_.machine_) & nodes).empty();
  }

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

  absl::StatusOr<ClaimFit> Try(const Masks& masks, bool none_held) {
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
    Masks masks;
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

absl::StatusOr<Provision> ClaimSteering::Steer(
    const Pod& pod, const control::ProvideInput& input, Provision plain,
    bool dry) {
  Attempt attempt(*this, pod, input, plain);
  if (attempt.HasNoNodes()) return plain;
  const control::Outlook outlook =
      control::OutlookWith(plain.changes, input.state, input.objects);
  auto provided =
      std::make_shared<const Pod>(control::WithLocalStatus(pod, outlook.state));
  DeviceRequest request{{PodUid{pod.metadata.uid}, pod.metadata.FullName()},
                        pod.spec.priority,
                        device::NeedsOf(*provided, input.extended_resources)};
  request.object = std::move(provided);
  auto aligned = align_(request, attempt.Hints(), dry);
  if (!aligned.ok()) return aligned.status();
  if (aligned->verdict.kind != Verdict::Kind::kAdmit) {
    Provision refused;
    refused.verdict = aligned->verdict;
    if (refused.verdict.kind == Verdict::Kind::kWait) {
      attempt.NameHolders(*aligned, &refused.verdict);
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

}  // namespace devmgr::pods
