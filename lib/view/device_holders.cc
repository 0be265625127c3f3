// SPDX-License-Identifier: Apache-2.0
#include "view/device_holders.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "claim/container_answer.h"
#include "device/hardware.h"
#include "state/views.h"

namespace devmgr::view {
namespace {

using state::ClaimRecord;
using state::ContainerNeed;
using state::DeviceHold;
using state::PodPhase;
using state::PodRecord;
using state::PreparedDevice;
using state::Want;

/// What drivers have published of devices, of the newest generation of a pool.
class PublishedNames {
 public:
  explicit PublishedNames(const Moment& moment)
      : options_(moment.terms != nullptr ? moment.terms->hardware
                                         : HardwareOptions()) {
    if (moment.objects == nullptr) return;
    for (const auto& [name, slice] : moment.objects->resource_slices) {
      for (const SliceDevice& device : slice->devices) {
        Published& known = devices_[{slice->driver, slice->pool, device.name}];
        if (known.device != nullptr &&
            slice->pool_generation < known.generation) {
          continue;
        }
        known = {&device, slice->pool_generation};
      }
    }
  }

  device::HardwareNames Find(const state::DeviceKey& key) const {
    const auto found = devices_.find(key);
    if (found == devices_.end()) return {};
    return device::NamesOf(*found->second.device, options_);
  }

 private:
  struct Published {
    const SliceDevice* device = nullptr;
    std::int64_t generation = 0;
  };
  const HardwareOptions options_;
  std::map<state::DeviceKey, Published> devices_;
};

/// `names` where they say something, else `more`.
void PutNames(const device::HardwareNames& names,
              const device::HardwareNames& more, ContainerDevice* device) {
  device->uuid = names.uuid.empty() ? more.uuid : names.uuid;
  device->pci_address =
      names.pci_address.empty() ? more.pci_address : names.pci_address;
}

/// What follows the `=` of a qualified name.
std::string_view DevicePart(std::string_view cdi_name) {
  const std::size_t equals = cdi_name.find('=');
  return equals == std::string_view::npos ? std::string_view()
                                          : cdi_name.substr(equals + 1);
}

/// A plugin answers for all devices of a container at once: a name is the
/// device's that it ends in, or that of the only one.
void AddPluginDevices(const DeviceHold& hold, DeviceHolderInfo* holder) {
  const std::size_t first = holder->devices.size();
  const bool alone = hold.devices.size() == 1;
  for (const device::HeldDevice& held : hold.devices) {
    ContainerDevice& device = holder->devices.emplace_back();
    device.resource = hold.resource;
    device.device = held.id.value;
    PutNames(device::NamesOf(held.id),
             alone ? device::NamesOf(hold.hardware) : device::HardwareNames(),
             &device);
  }
  for (const std::string& name : hold.edits.cdi_devices) {
    const auto own = std::find_if(
        holder->devices.begin() + static_cast<std::ptrdiff_t>(first),
        holder->devices.end(), [&](const ContainerDevice& device) {
          return alone || device.device == DevicePart(name);
        });
    (own != holder->devices.end() ? own->cdi_devices : holder->cdi_devices)
        .push_back(name);
  }
}

/// By the first of the container's requests that it serves.
const Want* FindWant(const ContainerNeed& need, const ClaimUid& claim,
                     const PreparedDevice& device) {
  const auto found =
      std::find_if(need.wants.begin(), need.wants.end(), [&](const Want& want) {
        return want.claim == claim && claim::Serves(device, want.request);
      });
  return found == need.wants.end() ? nullptr : &*found;
}

void AddClaimDevices(const Moment& moment, const PublishedNames& published,
                     const ContainerNeed& need, DeviceHolderInfo* holder) {
  std::vector<ClaimUid> seen;
  for (const Want& wanted : need.wants) {
    if (std::find(seen.begin(), seen.end(), wanted.claim) != seen.end()) {
      continue;
    }
    seen.push_back(wanted.claim);
    const ClaimRecord* const claim = moment.state.FindClaim(wanted.claim);
    if (claim == nullptr) continue;
    for (const auto& [driver, part] : claim->drivers) {
      for (const PreparedDevice& prepared : part.devices) {
        const Want* const want = FindWant(need, wanted.claim, prepared);
        if (want == nullptr) continue;
        ContainerDevice& device = holder->devices.emplace_back();
        device.resource = want->resource;
        device.claim = claim->name;
        device.driver = driver;
        device.pool = prepared.pool;
        device.device = prepared.device;
        device.cdi_devices = prepared.cdi_device_ids;
        PutNames(published.Find({driver, prepared.pool, prepared.device}),
                 device::NamesOf(prepared.hardware), &device);
      }
    }
  }
}

/// Its containers with devices, in the order of the pod where that is known.
std::vector<ContainerName> ContainerNamesOf(const PodRecord& pod) {
  std::vector<ContainerName> names;
  const auto add = [&](const ContainerName& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  };
  if (pod.answer != nullptr) {
    for (const auto& container : pod.answer->containers) add(container.name);
  }
  for (const ContainerNeed& need : pod.needs) add(need.name);
  for (const DeviceHold& hold : pod.holds) add(hold.container);
  return names;
}

bool Holds(const PodRecord& pod) {
  return pod.phase != PodPhase::kWaiting && pod.phase != PodPhase::kRejected &&
         pod.phase != PodPhase::kAllocating;
}

/// The newest of its name.
void PutRun(const PodRun& pod, DeviceHolderInfo* holder) {
  for (const ContainerRun& run : pod.containers) {
    if (run.name != holder->container.value) continue;
    holder->container_id = run.id;
    holder->state = std::string(RuntimeContainerStateName(run.state));
    holder->created_at = run.created_at;
    return;
  }
}

}  // namespace

std::vector<DeviceHolderInfo> DeviceHoldersOf(const Moment& moment,
                                              const RuntimeSnapshot* runs) {
  std::vector<const PodRecord*> pods;
  for (const auto& [uid, pod] : moment.state.pods) {
    if (Holds(*pod)) pods.push_back(pod.get());
  }
  std::sort(pods.begin(), pods.end(), [](const auto* a, const auto* b) {
    return std::tie(a->name, a->uid) < std::tie(b->name, b->uid);
  });
  const PublishedNames published(moment);
  std::vector<DeviceHolderInfo> holders;
  for (const PodRecord* const pod : pods) {
    const PodRun* run = nullptr;
    if (runs != nullptr) {
      const auto found = runs->pods.find(pod->uid);
      if (found != runs->pods.end()) run = found->second.get();
    }
    for (const ContainerName& name : ContainerNamesOf(*pod)) {
      DeviceHolderInfo holder;
      holder.pod = pod->name;
      holder.pod_uid = pod->uid;
      holder.container = name;
      for (const DeviceHold& hold : pod->holds) {
        if (hold.container != name || !hold.Holds()) continue;
        AddPluginDevices(hold, &holder);
      }
      for (const ContainerNeed& need : pod->needs) {
        if (need.name != name) continue;
        AddClaimDevices(moment, published, need, &holder);
      }
      if (holder.devices.empty()) continue;
      if (run != nullptr) PutRun(*run, &holder);
      holders.push_back(std::move(holder));
    }
  }
  return holders;
}

}  // namespace devmgr::view
