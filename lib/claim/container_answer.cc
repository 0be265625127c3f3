// SPDX-License-Identifier: Apache-2.0
#include "claim/container_answer.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/names.h"
#include "common/status.h"
#include "device/merge_edits.h"

namespace devmgr::claim {
namespace {

using state::ClaimRecord;
using state::ContainerNeed;
using state::PreparedDevice;
using state::Want;

/// The container's wants of each claim, claims in order of first mention.
std::vector<std::vector<const Want*>> GroupByClaim(const ContainerNeed& need) {
  std::vector<std::vector<const Want*>> groups;
  for (const Want& want : need.wants) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return g.front()->claim == want.claim;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {{}});
    group->push_back(&want);
  }
  return groups;
}

DeviceOrigin OriginOf(const ClaimRecord& claim, const std::string& driver,
                      const PreparedDevice& device, const Want& want) {
  std::string request = want.request;
  if (request.empty() && !device.request_names.empty()) {
    request = device.request_names.front();
  }
  return {claim.name.name, std::string(api::BaseRequestName(request)),
          driver,          device.pool,
          device.device,   want.resource};
}

void AddClaim(const ClaimRecord& claim, const std::vector<const Want*>& wants,
              std::set<std::string>* seen, ContainerDevices* container) {
  for (const auto& [driver, record] : claim.drivers) {
    for (const PreparedDevice& device : record.devices) {
      const auto want = std::find_if(
          wants.begin(), wants.end(),
          [&](const Want* w) { return Serves(device, w->request); });
      if (want == wants.end()) continue;
      const DeviceOrigin origin = OriginOf(claim, driver, device, **want);
      for (const std::string& id : device.cdi_device_ids) {
        if (seen->insert(id).second) {
          container->cdi_devices.push_back({id, origin});
        }
      }
    }
  }
}

/// Each part with the name of its resource.
template <typename T>
std::vector<T> Named(const std::vector<device::FromResource<T>>& merged) {
  std::vector<T> named;
  for (const auto& [value, resource] : merged) {
    named.push_back(value);
    named.back().resource = resource;
  }
  return named;
}

/// The devices that its plugins' answers name, unless a claim gave them.
void AddHolds(const std::vector<state::DeviceHold>& holds,
              std::set<std::string>* seen, ContainerDevices* container) {
  std::vector<device::ResourceEdits> edits;
  for (const state::DeviceHold& hold : holds) {
    if (hold.container != container->name) continue;
    if (!hold.Holds()) {
      container->devices_released = true;
      continue;
    }
    edits.push_back({hold.resource, hold.edits});
    HeldResource& held = container->resources.emplace_back();
    held.name = hold.resource;
    for (const auto& device : hold.devices) held.devices.push_back(device.id);
  }
  std::sort(container->resources.begin(), container->resources.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const device::MergedEdits merged = device::MergeEdits(std::move(edits));
  for (const auto& [name, resource] : merged.cdi_devices) {
    if (!seen->insert(name).second) continue;
    DeviceOrigin origin;
    origin.resource = resource;
    container->cdi_devices.push_back({name, std::move(origin)});
  }
  container->env = Named(merged.env);
  container->mounts = Named(merged.mounts);
  container->devices = Named(merged.devices);
  container->annotations = Named(merged.annotations);
}

}  // namespace

bool Serves(const PreparedDevice& device, const std::string& request) {
  if (request.empty() || device.request_names.empty()) return true;
  return std::any_of(device.request_names.begin(), device.request_names.end(),
                     [&](const std::string& name) {
                       return api::BaseRequestName(name) ==
                              api::BaseRequestName(request);
                     });
}

absl::StatusOr<std::shared_ptr<const PodDevices>> AnswerFor(
    const state::PodRecord& pod, const ClaimLookup& claims) {
  auto answer = std::make_shared<PodDevices>();
  answer->name = pod.name;
  answer->uid = pod.uid;
  for (const ContainerNeed& need : pod.needs) {
    ContainerDevices container;
    container.name = need.name;
    container.init = need.init;
    std::set<std::string> seen;
    for (const std::vector<const Want*>& wants : GroupByClaim(need)) {
      const ClaimUid& uid = wants.front()->claim;
      const ClaimRecord* claim = claims(uid);
      if (claim == nullptr) {
        return InternalError(
            "internal error: unable to get claim info for ResourceClaim {} in "
            "namespace {}",
            uid.value, pod.name.ns);
      }
      AddClaim(*claim, wants, &seen, &container);
    }
    AddHolds(pod.holds, &seen, &container);
    answer->containers.push_back(std::move(container));
  }
  return std::shared_ptr<const PodDevices>(std::move(answer));
}

}  // namespace devmgr::claim
