// SPDX-License-Identifier: Apache-2.0
#include "admission/changed_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "claim/claim_names.h"

namespace devmgr::admission {
namespace {

using device::Shortage;
using state::PodPhase;
using state::PodRecord;
using state::Want;

const state::ContainerNeed* FindNeed(const PodRecord& record,
                                     const ContainerName& container) {
  const auto found =
      std::find_if(record.needs.begin(), record.needs.end(),
                   [&](const auto& need) { return need.name == container; });
  return found == record.needs.end() ? nullptr : &*found;
}

template <typename Predicate>
bool Wants(const PodRecord& record, const ContainerName& container,
           const Predicate& predicate) {
  const state::ContainerNeed* need = FindNeed(record, container);
  return need != nullptr &&
         std::any_of(need->wants.begin(), need->wants.end(), predicate);
}

const state::DeviceHold* FindHold(const PodRecord& record,
                                  const ContainerName& container,
                                  const ResourceName& resource) {
  const auto found = std::find_if(
      record.holds.begin(), record.holds.end(), [&](const auto& hold) {
        return hold.container == container && hold.resource == resource;
      });
  return found == record.holds.end() ? nullptr : &*found;
}

/// Needs of another number of devices than the container was given, those that
/// an init container has given back included.
std::vector<Shortage> ChangedNeeds(const PodRecord& record,
                                   const std::vector<device::DeviceNeed>& needs,
                                   Profile profile) {
  std::vector<Shortage> changed;
  for (const device::DeviceNeed& need : needs) {
    const auto* hold = FindHold(record, need.container, need.resource);
    const auto given =
        hold == nullptr ? 0 : static_cast<std::int64_t>(hold->devices.size());
    if (given == need.count) continue;
    if (hold == nullptr) {
      // The kubelet gives nothing of what it had not heard of at admission.
      if (profile == Profile::kStrictKubelet) continue;
      if (Wants(record, need.container, [&](const Want& want) {
            return want.resource == need.resource;
          })) {
        continue;
      }
    }
    Shortage shortage{.kind = Shortage::Kind::kChangedRequest,
                      .requested = need.count,
                      .available = given};
    shortage.container = need.container;
    shortage.resource = need.resource;
    shortage.pod = record.uid;
    changed.push_back(std::move(shortage));
  }
  return changed;
}

Verdict Changed(const PodRecord& record, const ContainerName& container,
                const std::string& what) {
  return {Verdict::Kind::kReject,
          kUnexpectedAdmissionError,
          fmt::format("Allocate failed due to pod \"{}\" container \"{}\" "
                      "changed request for {}, which the pod was not prepared "
                      "with, which is unexpected",
                      record.uid.value, container, what),
          {}};
}

/// Of a container's `resources.claims`: was it prepared with this claim?
bool IsKept(const PodRecord& record, const state::State& state,
            const ContainerName& container, const PodResourceClaim& entry,
            const std::string& request) {
  return Wants(record, container, [&](const Want& want) {
    if (!want.resource.empty() || want.request != request) return false;
    // Pods that were prepared before entries were kept.
    if (want.pod_claim.empty()) return true;
    if (want.pod_claim != entry.name) return false;
    // The name of a claim that is made for the pod is not the pod's choice.
    const state::ClaimRecord* claim = state.FindClaim(want.claim);
    return !entry.resource_claim_name.has_value() || claim == nullptr ||
           claim->name.name == *entry.resource_claim_name;
  });
}

Verdict CheckClaims(const Pod& pod, const Container& container,
                    const PodRecord& record, const state::State& state,
                    const ObjectSnapshot& objects,
                    const claim::PlanOptions& options) {
  for (const ContainerClaimReference& reference : container.resources.claims) {
    for (const PodResourceClaim& entry : pod.spec.resource_claims) {
      if (entry.name != reference.name) continue;
      // None is needed, or it is not known yet which.
      if (!claim::NameClaim(pod, entry, objects, options).claim.has_value() ||
          IsKept(record, state, container.name, entry, reference.request)) {
        continue;
      }
      return Changed(
          record, container.name,
          fmt::format("resource claim \"{}\"{}", reference.name,
                      reference.request.empty()
                          ? ""
                          : fmt::format(" request \"{}\"", reference.request)));
    }
  }
  for (const auto& mapping : claim::MappedRequests(pod, container, options)) {
    if (FindHold(record, container.name, mapping.resource_name) != nullptr ||
        Wants(record, container.name, [&](const Want& want) {
          return want.resource == mapping.resource_name &&
                 want.request == mapping.request_name;
        })) {
      continue;
    }
    return Changed(record, container.name,
                   fmt::format(R"(resource "{}" to claim request "{}")",
                               mapping.resource_name, mapping.request_name));
  }
  return {};
}

}  // namespace

Verdict CheckUnchanged(const Pod& pod, const PodRecord& record,
                       const std::vector<device::DeviceNeed>& needs,
                       const state::State& state, const ObjectSnapshot& objects,
                       const claim::PlanOptions& options,
                       const DevicePolicy& policy) {
  // What a record lacks after the recovery of a damaged ledger is planned anew.
  if (!state::IsLive(record) || record.needs.empty()) return {};
  const auto changed = ChangedNeeds(record, needs, policy.profile);
  if (!changed.empty()) {
    return JudgeShortages(changed, policy, std::chrono::milliseconds(0))
        .verdict;
  }
  // What is being prepared takes over the plan of now.
  if (record.phase != PodPhase::kReady) return {};
  for (const auto* containers :
       {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const Container& container : *containers) {
      Verdict verdict =
          CheckClaims(pod, container, record, state, objects, options);
      if (verdict.kind != Verdict::Kind::kAdmit) return verdict;
    }
  }
  return {};
}

}  // namespace devmgr::admission
