// SPDX-License-Identifier: Apache-2.0
#include "claim/held_claims.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "claim/claim_names.h"
#include "claim/container_answer.h"

namespace devmgr::claim {
namespace {

using state::ClaimRecord;
using state::ContainerNeed;
using state::PreparedDevice;
using state::Want;

std::string NoInformation(std::string_view claim) {
  return fmt::format("unable to get information for ResourceClaim {}", claim);
}

HeldClaim HeldClaimOf(const ClaimRecord& claim, const ContainerNeed& need) {
  HeldClaim held{claim.name, claim.uid, {}};
  for (const auto& [driver, part] : claim.drivers) {
    for (const PreparedDevice& device : part.devices) {
      const bool serves = std::any_of(
          need.wants.begin(), need.wants.end(), [&](const Want& want) {
            return want.claim == claim.uid && Serves(device, want.request);
          });
      if (!serves) continue;
      held.devices.push_back({driver, device.pool, device.device,
                              device.share_id, device.cdi_device_ids});
    }
  }
  return held;
}

const Container* FindContainer(const Pod& pod, std::string_view name) {
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const Container& container : *list) {
      if (container.name == name) return &container;
    }
  }
  return nullptr;
}

bool Uses(const Container& container, const std::string& pod_claim) {
  const auto& claims = container.resources.claims;
  return std::any_of(claims.begin(), claims.end(), [&](const auto& claim) {
    return claim.name == pod_claim;
  });
}

}  // namespace

ContainerClaims HeldClaimsOf(const state::State& state,
                             const state::PodRecord& pod,
                             const ContainerName& container) {
  ContainerClaims result;
  for (const ContainerNeed& need : pod.needs) {
    if (need.name != container) continue;
    std::set<ClaimUid> told;
    for (const Want& want : need.wants) {
      if (!told.insert(want.claim).second) continue;
      if (const ClaimRecord* claim = state.FindClaim(want.claim)) {
        result.claims.push_back(HeldClaimOf(*claim, need));
      } else {
        result.missing.push_back(NoInformation(want.claim.value));
      }
    }
  }
  return result;
}

ContainerClaims MissingClaimsOf(const Pod& pod, const ContainerName& container,
                                const ObjectSnapshot& objects,
                                const PlanOptions& options) {
  ContainerClaims result;
  const Container* found = FindContainer(pod, container);
  if (found == nullptr) return result;
  for (const PodResourceClaim& entry : pod.spec.resource_claims) {
    if (!Uses(*found, entry.name)) continue;
    const ClaimNaming naming = NameClaim(pod, entry, objects, options);
    if (naming.claim.has_value()) {
      result.missing.push_back(NoInformation(naming.claim->name));
    } else if (naming.problem.kind != Verdict::Kind::kAdmit) {
      result.missing.push_back(naming.problem.message);
    }
  }
  if (!MappedRequests(pod, *found, options).empty()) {
    result.missing.push_back(
        NoInformation(NameSpecialClaim(pod, options)->name));
  }
  return result;
}

}  // namespace devmgr::claim
