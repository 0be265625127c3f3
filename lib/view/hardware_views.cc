// SPDX-License-Identifier: Apache-2.0
#include "view/hardware_views.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "claim/published_hardware.h"
#include "device/hardware.h"

namespace devmgr::view {
namespace {

constexpr std::size_t kMostSame = 8;

/// Owner, pool (empty of a plugin) and device.
using Names = state::DeviceKey;

Names NamesOf(const DeviceInfo& info) {
  return {info.resource.empty() ? info.driver : info.resource.value, info.pool,
          info.device};
}

std::string TextOf(const DeviceInfo& info) {
  const auto& [owner, pool, device] = NamesOf(info);
  return pool.empty() ? owner + '/' + device
                      : owner + '/' + pool + '/' + device;
}

void Add(const device::Hardware& more, device::Hardware* hardware) {
  for (const device::PhysicalIdentity& identity : more.identities) {
    hardware->Add(identity);
  }
  hardware->part = hardware->part || more.part;
}

std::map<Names, device::Hardware> KnownOf(const Moment& moment) {
  std::map<Names, device::Hardware> known;
  for (const auto& [uid, pod] : moment.state.pods) {
    for (const state::DeviceHold& hold : pod->holds) {
      if (hold.hardware.empty() || hold.devices.size() != 1) continue;
      Add(hold.hardware,
          &known[{hold.resource.value, "", hold.devices.front().id.value}]);
    }
  }
  for (const auto& [uid, claim] : moment.state.claims) {
    for (const auto& [driver, part] : claim->drivers) {
      for (const state::AllocatedDevice& device : part.allocated) {
        if (device.hardware.empty()) continue;
        Add(device.hardware, &known[{driver, device.pool, device.device}]);
      }
      for (const state::PreparedDevice& device : part.devices) {
        if (device.hardware.empty()) continue;
        Add(device.hardware, &known[{driver, device.pool, device.device}]);
      }
    }
  }
  return known;
}

}  // namespace

void AddHardware(const Moment& moment, std::vector<DeviceInfo>* devices) {
  if (moment.terms == nullptr || !moment.terms->hardware.one_holder) return;
  claim::PublishedHardware published(moment.terms->hardware,
                                     moment.terms->node_name);
  if (moment.objects != nullptr) {
    published.Follow(moment.objects->resource_slices);
  }
  const std::map<Names, device::Hardware> known = KnownOf(moment);
  std::map<std::size_t, device::Hardware> all;  // By place in `devices`.
  std::map<device::PhysicalIdentity, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const DeviceInfo& info = (*devices)[i];
    device::Hardware hardware = info.resource.empty()
                                    ? published.Find(NamesOf(info))
                                    : device::HardwareOf(DeviceId(info.device));
    if (const auto more = known.find(NamesOf(info)); more != known.end()) {
      Add(more->second, &hardware);
    }
    for (const device::PhysicalIdentity& identity : hardware.identities) {
      places[identity].push_back(i);
      (*devices)[i].hardware.push_back(device::IdentityText(identity));
    }
    if (!hardware.empty()) all.emplace(i, std::move(hardware));
  }
  for (const auto& [i, hardware] : all) {
    std::set<std::string> same;
    for (const device::PhysicalIdentity& identity : hardware.identities) {
      for (const std::size_t j : places[identity]) {
        if (std::get<0>(NamesOf((*devices)[i])) ==
            std::get<0>(NamesOf((*devices)[j]))) {
          continue;
        }
        if (device::FindClash(hardware, all.at(j)) == nullptr) continue;
        if (same.size() < kMostSame) same.insert(TextOf((*devices)[j]));
      }
    }
    (*devices)[i].same_hardware.assign(same.begin(), same.end());
  }
}

}  // namespace devmgr::view
