// SPDX-License-Identifier: Apache-2.0
//
// What a scheduler and the controllers of a control plane show of claims and of
// pods that wait, counted when it is asked for.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "devmgrd/gauge.h"
#include "devmgrd/gauges.h"
#include "devmgrd/name_limit.h"

namespace devmgrd {
namespace {

using devmgr::WaitingFor;

constexpr char kPodClaimName[] = "resource.kubernetes.io/pod-claim-name";
constexpr char kExtendedResourceClaim[] =
    "resource.kubernetes.io/extended-resource-claim";

/// For what the claim was made; empty: a user made it.
const char* SourceOf(const devmgr::ResourceClaim& claim) {
  const auto& notes = claim.metadata.annotations;
  if (notes.contains(kExtendedResourceClaim)) return "extended_resource";
  return notes.contains(kPodClaimName) ? "resource_claim_template" : "";
}

bool WantsAdmin(const devmgr::ResourceClaim& claim) {
  const auto& requests = claim.spec.requests;
  return std::any_of(requests.begin(), requests.end(),
                     [](const auto& request) { return request.admin_access; });
}

void AddClaim(const devmgr::ResourceClaim& claim, Gauge* gauge) {
  gauge->Add(
      {{"admin_access", WantsAdmin(claim) ? "true" : "false"},
       {"allocated", claim.status.allocation.has_value() ? "true" : "false"},
       {"source", SourceOf(claim)}},
      1);
}

enum class Queue { kNone, kBackoff, kUnschedulable, kGated };

Queue QueueOf(const devmgr::PodInfo& pod) {
  if (pod.state != devmgr::PodState::kWaiting) return Queue::kNone;
  for (const WaitingFor& what : pod.waiting_for) {
    if (what.kind == WaitingFor::Kind::kAuthority) return Queue::kGated;
  }
  return pod.waiting_for.empty() ? Queue::kBackoff : Queue::kUnschedulable;
}

/// Whose want of something it is, in a scheduler's terms.
const char* CulpritOf(const devmgr::PodInfo& pod) {
  for (const WaitingFor& what : pod.waiting_for) {
    if (what.kind == WaitingFor::Kind::kResource) return "NodeResourcesFit";
  }
  return "DynamicResources";
}

Gauge PendingGauge(const std::vector<devmgr::PodInfo>& pods) {
  Gauge gauge("scheduler_pending_pods",
              "Pods that wait: after an error (backoff), for something that "
              "is named (unschedulable), for the end of a hand-over of the "
              "authority (gated)");
  for (const char* queue : {"active", "backoff", "unschedulable", "gated"}) {
    gauge.Add({{"queue", queue}}, 0);
  }
  for (const devmgr::PodInfo& pod : pods) {
    switch (QueueOf(pod)) {
      case Queue::kBackoff:
        gauge.Add({{"queue", "backoff"}}, 1);
        break;
      case Queue::kUnschedulable:
        gauge.Add({{"queue", "unschedulable"}}, 1);
        break;
      case Queue::kGated:
        gauge.Add({{"queue", "gated"}}, 1);
        break;
      case Queue::kNone:
        break;
    }
  }
  return gauge;
}

Gauge UnschedulableGauge(const std::vector<devmgr::PodInfo>& pods) {
  Gauge gauge("scheduler_unschedulable_pods",
              "Pods that wait for something that is named, by what it is of");
  for (const char* plugin : {"DynamicResources", "NodeResourcesFit"}) {
    gauge.Add({{"plugin", plugin}, {"profile", "devmgr"}}, 0);
  }
  for (const devmgr::PodInfo& pod : pods) {
    if (QueueOf(pod) != Queue::kUnschedulable) continue;
    gauge.Add({{"plugin", CulpritOf(pod)}, {"profile", "devmgr"}}, 1);
  }
  return gauge;
}

/// By driver; a pool counts once for each of its generations that are there.
Gauge PoolsGauge(const std::vector<devmgr::SliceInfo>& slices) {
  Gauge gauge(
      "devmgr_allocator_pools",
      "Pools of devices: with all their slices, with some missing, with "
      "slices that contradict each other, and generations that a newer "
      "one has replaced");
  std::map<std::tuple<std::string, std::string, std::int64_t>, const char*>
      pools;
  for (const devmgr::SliceInfo& slice : slices) {
    pools[{slice.driver, slice.pool, slice.generation}] =
        slice.obsolete           ? "obsolete"
        : !slice.complete        ? "incomplete"
        : !slice.problem.empty() ? "invalid"
                                 : "complete";
  }
  NameLimit drivers;
  for (const auto& [pool, state] : pools) {
    gauge.Add({{"driver", drivers.Of(std::get<0>(pool))}, {"state", state}}, 1);
  }
  return gauge;
}

/// Slices with devices that share counters, and that several claims may have.
void AddSlices(const devmgr::ObjectSnapshot& objects, Gauge* gauge) {
  double shared = 0;
  double consumable = 0;
  for (const auto& [name, slice] : objects.resource_slices) {
    const auto& devices = slice->devices;
    const auto any = [&](auto uses) {
      return std::any_of(devices.begin(), devices.end(), uses);
    };
    if (any([](const auto& d) { return !d.consumes_counters.empty(); })) {
      ++shared;
    }
    if (any([](const auto& d) { return d.allow_multiple_allocations; })) {
      ++consumable;
    }
  }
  gauge->Add({{"feature", "DRAPartitionableDevices"}}, shared);
  gauge->Add({{"feature", "DRAConsumableCapacity"}}, consumable);
}

Gauge FeatureGauge(const devmgr::ObjectSnapshot& objects) {
  Gauge gauge("devmgr_feature_in_use",
              "Claims, slices and rules that use a feature, by its gate");
  const auto add = [&](const char* feature, double count) {
    gauge.Add({{"feature", feature}}, count);
  };
  add("DRAExtendedResource", 0);
  add("DRAAdminAccess", 0);
  add("DRAPrioritizedList", 0);
  AddSlices(objects, &gauge);
  add("DRADeviceTaints",
      static_cast<double>(objects.device_taint_rules.size()));
  for (const auto& [name, claim] : objects.claims) {
    if (std::string(SourceOf(*claim)) == "extended_resource") {
      add("DRAExtendedResource", 1);
    }
    if (WantsAdmin(*claim)) add("DRAAdminAccess", 1);
    const auto& requests = claim->spec.requests;
    if (std::any_of(requests.begin(), requests.end(), [](const auto& request) {
          return !request.first_available.empty();
        })) {
      add("DRAPrioritizedList", 1);
    }
  }
  return gauge;
}

}  // namespace

Families FamiliesOfControl(const devmgr::NodeView& view,
                           const devmgr::ObjectSnapshot& objects,
                           MetricNames names) {
  if (view.Node().authority == devmgr::Authority::kScheduler) return {};
  const std::vector<devmgr::PodInfo> pods = view.Pods();
  Families families = {
      PendingGauge(pods).Family(), UnschedulableGauge(pods).Family(),
      FeatureGauge(objects).Family(), PoolsGauge(view.Slices()).Family()};
  Gauge claims("dynamic_resource_allocation_resource_claims",
               "Claims, by what they were made for");
  Gauge old("resourceclaim_controller_resource_claims",
            "Claims, by what they were made for");
  for (const auto& [name, claim] : objects.claims) {
    AddClaim(*claim, &claims);
    AddClaim(*claim, &old);
  }
  if (names.current) families.push_back(claims.Family());
  if (names.before) families.push_back(old.Family());
  return families;
}

}  // namespace devmgrd
