// SPDX-License-Identifier: Apache-2.0
#include "view/pod_resources.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "claim/held_claims.h"
#include "state/views.h"
#include "view/pod_views.h"

namespace devmgr::view {
namespace {

using state::PodPhase;
using state::PodRecord;

/// A pod, by what the source has of it and what the ledger has. One of them is
/// there.
struct KnownPod {
  ObjectName name;
  PodUid uid;
  std::shared_ptr<const Pod> object;
  std::shared_ptr<const PodRecord> record;
};

/// A container that is listed.
struct ListedContainer {
  ContainerName name;
  bool sidecar = false;
  const Container* object = nullptr;  ///< Null: the source has no such pod.
};

bool HasEnded(const Pod& pod) {
  return pod.status.phase == "Succeeded" || pod.status.phase == "Failed";
}

bool IsActive(const Moment& moment, const KnownPod& pod) {
  const PodRecord* const record = pod.record.get();
  if (record != nullptr && (record->phase == PodPhase::kRejected ||
                            record->phase == PodPhase::kReleasing)) {
    return false;
  }
  const bool holds = record != nullptr && record->phase != PodPhase::kWaiting;
  if (pod.object == nullptr) return holds;
  if (HasEnded(*pod.object)) {
    const Verdict* const note = moment.pods.notes.Find(pod.uid);
    return holds && note != nullptr && IsHeldByRuntime(*note);
  }
  return holds || pod.object->metadata.deletion_timestamp.empty();
}

KnownPod OfObject(const Moment& moment,
                  const std::shared_ptr<const Pod>& object) {
  KnownPod pod{object->metadata.FullName(), {object->metadata.uid}, object, {}};
  if (const auto* record = moment.state.pods.Find(pod.uid)) {
    pod.record = *record;
  }
  return pod;
}

/// The source has another pod of its name, or none.
bool IsWithoutObject(const Moment& moment, const PodRecord& record) {
  if (moment.objects == nullptr) return true;
  const auto* object = moment.objects->pods.Find(record.name);
  return object == nullptr || (*object)->metadata.uid != record.uid.value;
}

std::vector<KnownPod> ActivePods(const Moment& moment) {
  std::vector<KnownPod> active;
  const auto add = [&](KnownPod pod) {
    if (IsActive(moment, pod)) active.push_back(std::move(pod));
  };
  if (moment.objects != nullptr) {
    for (const auto& [name, object] : moment.objects->pods) {
      add(OfObject(moment, object));
    }
  }
  for (const auto& [uid, record] : moment.state.pods) {
    // An imported pod has no name by which a client could know it; once the
    // source shows it, it is there by its object.
    if (!record->imported && IsWithoutObject(moment, *record)) {
      add({record->name, uid, nullptr, record});
    }
  }
  std::sort(active.begin(), active.end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.uid) < std::tie(b.name, b.uid);
  });
  return active;
}

std::vector<ListedContainer> ContainersOf(const Pod& pod) {
  std::vector<ListedContainer> listed;
  for (const Container& container : pod.spec.init_containers) {
    if (container.restart_policy != "Always") continue;
    listed.push_back({container.name, true, &container});
  }
  for (const Container& container : pod.spec.containers) {
    listed.push_back({container.name, false, &container});
  }
  return listed;
}

/// The same as far as the ledger knows: an init container is known for a
/// sidecar by its devices of plugins only.
std::vector<ListedContainer> ContainersOf(const PodRecord& record) {
  std::vector<ListedContainer> listed;
  const auto add = [&](const ContainerName& name, bool sidecar) {
    const bool is_there =
        std::any_of(listed.begin(), listed.end(),
                    [&](const auto& other) { return other.name == name; });
    if (!is_there) listed.push_back({name, sidecar, nullptr});
  };
  for (const state::DeviceHold& hold : record.holds) {
    if (hold.kind == device::ContainerKind::kSidecar) add(hold.container, true);
  }
  if (record.answer != nullptr) {
    for (const ContainerDevices& container : record.answer->containers) {
      if (!container.init) add(container.name, false);
    }
    return listed;
  }
  for (const state::ContainerNeed& need : record.needs) {
    if (!need.init) add(need.name, false);
  }
  for (const state::DeviceHold& hold : record.holds) {
    if (hold.kind == device::ContainerKind::kApp) add(hold.container, false);
  }
  return listed;
}

/// The claim that the entry names is needed, as far as its pod says.
bool IsNeeded(const Pod& pod, const PodResourceClaim& entry) {
  const auto& statuses = pod.status.resource_claim_statuses;
  return std::none_of(
      statuses.begin(), statuses.end(), [&](const auto& status) {
        return status.name == entry.name && !status.resource_claim_name;
      });
}

/// How many claims the container has to get, by what its pod says.
std::size_t ClaimsNamedBy(const Container& container, const Pod& pod) {
  const auto& uses = container.resources.claims;
  auto count = static_cast<std::size_t>(std::count_if(
      pod.spec.resource_claims.begin(), pod.spec.resource_claims.end(),
      [&](const PodResourceClaim& entry) {
        return IsNeeded(pod, entry) &&
               std::any_of(uses.begin(), uses.end(), [&](const auto& use) {
                 return use.name == entry.name;
               });
      }));
  const auto& special = pod.status.extended_resource_claim_status;
  if (!special.has_value()) return count;
  const auto& mappings = special->request_mappings;
  const bool is_mapped =
      std::any_of(mappings.begin(), mappings.end(), [&](const auto& mapping) {
        return mapping.container_name == container.name;
      });
  return is_mapped ? count + 1 : count;
}

ContainerResources ResourcesOf(const Moment& moment, const KnownPod& pod,
                               const ListedContainer& container,
                               std::size_t* missing) {
  ContainerResources resources{container.name, container.sidecar, {}, {}};
  const PodRecord* const record = pod.record.get();
  // While plugins are asked the devices are only reserved.
  if (record != nullptr && record->phase != PodPhase::kAllocating) {
    resources.devices = state::HeldDevicesOf(*record, container.name);
  }
  // The needs are booked with the claims.
  if (record != nullptr && !record->needs.empty()) {
    ContainerClaims held =
        claim::HeldClaimsOf(moment.state, *record, container.name);
    resources.claims = std::move(held.claims);
    *missing += held.missing.size();
  } else if (container.object != nullptr) {
    *missing += ClaimsNamedBy(*container.object, *pod.object);
  }
  return resources;
}

/// All that the pod's resources follow from.
std::vector<std::shared_ptr<const void>> OriginsOf(const Moment& moment,
                                                   const KnownPod& pod) {
  std::vector<std::shared_ptr<const void>> origins = {pod.object, pod.record};
  if (pod.record == nullptr) return origins;
  for (const state::ContainerNeed& need : pod.record->needs) {
    for (const state::Want& want : need.wants) {
      const auto* claim = moment.state.claims.Find(want.claim);
      origins.push_back(claim != nullptr ? *claim : nullptr);
    }
  }
  return origins;
}

std::shared_ptr<const PodResources> MakeResources(
    const Moment& moment, const KnownPod& pod,
    std::vector<std::shared_ptr<const void>> origins) {
  auto resources = std::make_shared<PodResources>();
  resources->name = pod.name;
  resources->uid = pod.uid;
  resources->made_of = std::move(origins);
  const std::vector<ListedContainer> containers =
      pod.object != nullptr ? ContainersOf(*pod.object)
                            : ContainersOf(*pod.record);
  for (const ListedContainer& container : containers) {
    resources->containers.push_back(
        ResourcesOf(moment, pod, container, &resources->missing_claims));
  }
  return resources;
}

bool IsBefore(const PodResources& a, const KnownPod& b) {
  return std::tie(a.name, a.uid) < std::tie(b.name, b.uid);
}

/// `b` is to be told of rather than `a`.
bool IsOlder(const KnownPod& a, const KnownPod& b) {
  if ((a.object == nullptr) != (b.object == nullptr)) {
    return a.object == nullptr;
  }
  const auto seen = [](const KnownPod& pod) {
    return pod.record != nullptr ? pod.record->first_seen_seq : 0;
  };
  return seen(a) < seen(b);
}

}  // namespace

std::shared_ptr<const PodResourcesList> PodResourcesOf(
    const Moment& moment,
    const std::shared_ptr<const PodResourcesList>& before) {
  std::span<const std::shared_ptr<const PodResources>> known;
  if (before != nullptr) known = before->pods;
  auto list = std::make_shared<PodResourcesList>();
  const std::vector<KnownPod> active = ActivePods(moment);
  list->pods.reserve(active.size());
  bool is_same = before != nullptr && active.size() == known.size();
  auto next = known.begin();  // Both are in one order.
  for (const KnownPod& pod : active) {
    while (next != known.end() && IsBefore(**next, pod)) ++next;
    auto origins = OriginsOf(moment, pod);
    if (next != known.end() && (*next)->uid == pod.uid &&
        (*next)->name == pod.name && (*next)->made_of == origins) {
      list->pods.push_back(*next);
      continue;
    }
    list->pods.push_back(MakeResources(moment, pod, std::move(origins)));
    is_same = false;
  }
  if (is_same) return before;
  return list;
}

std::shared_ptr<const PodResources> PodResourcesOf(const Moment& moment,
                                                   const ObjectName& name) {
  std::vector<KnownPod> named;
  if (moment.objects != nullptr) {
    if (const auto* object = moment.objects->pods.Find(name)) {
      named.push_back(OfObject(moment, *object));
    }
  }
  for (const PodUid& uid : moment.state.PodsNamed(name)) {
    const auto& record = moment.state.pods.at(uid);
    if (IsWithoutObject(moment, *record)) {
      named.push_back({name, uid, nullptr, record});
    }
  }
  std::erase_if(named,
                [&](const KnownPod& pod) { return !IsActive(moment, pod); });
  const auto newest = std::max_element(named.begin(), named.end(), IsOlder);
  if (newest == named.end()) return nullptr;
  return MakeResources(moment, *newest, {});
}

}  // namespace devmgr::view
