// SPDX-License-Identifier: Apache-2.0
#include "device/device_list.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/quote.h"
#include "device/id_order.h"

namespace devmgr::device {
namespace {

using api::Quoted;

bool IdCanBeUsed(const std::string& id, ListProblems& problems) {
  if (id.empty()) {
    problems.Add("device without an ID");
    return false;
  }
  if (id.size() > kMaxIdLength) {
    problems.Add("device {}: ID has {} bytes, the limit is {}; dropped",
                 Quoted(id), id.size(), kMaxIdLength);
    return false;
  }
  if (api::FindInvalidUtf8(id) != std::string::npos) {
    problems.Add("device {}: ID is not UTF-8", Quoted(id));
    return false;
  }
  if (id.size() > kDefinedIdLength) {
    problems.Add(
        "device {}: ID has {} bytes, the definition says {} at "
        "most",
        Quoted(id), id.size(), kDefinedIdLength);
  }
  return true;
}

/// One entry of sorting: moving these is cheaper than moving devices.
struct Place {
  std::string_view id;
  std::size_t index;
};

bool Before(const Place& a, const Place& b) {
  if (IdLess(a.id, b.id)) return true;
  return a.id == b.id && a.index < b.index;
}

/// Adds `device`, or makes one of it and the last, which has its ID.
void Append(Device device, std::vector<Device>& devices,
            ListProblems& problems) {
  if (devices.empty() || devices.back().id != device.id) {
    devices.push_back(std::move(device));
    return;
  }
  problems.Add("device {} is listed twice", Quoted(device.id));
  if (devices.back().health != Health::kHealthy) {
    device.health = devices.back().health;
  }
  devices.back() = std::move(device);
}

}  // namespace

void CheckNodes(Device& device, const std::vector<std::int64_t>& machine_nodes,
                ListProblems& problems) {
  std::vector<std::int64_t>& nodes = device.numa_nodes;
  if (nodes.empty()) return;
  if (nodes.size() > 1) {
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }
  const auto missing = [&](std::int64_t node) {
    return node < 0 || (!machine_nodes.empty() &&
                        !std::binary_search(machine_nodes.begin(),
                                            machine_nodes.end(), node));
  };
  const auto first = std::find_if(nodes.begin(), nodes.end(), missing);
  if (first == nodes.end()) return;
  problems.Add("device {}: there is no NUMA node {}", Quoted(device.id),
               *first);
  nodes.erase(std::remove_if(first, nodes.end(), missing), nodes.end());
}

CheckedList CheckList(std::vector<Device> devices,
                      const std::vector<std::int64_t>& machine_nodes) {
  CheckedList checked;
  std::vector<Place> places;
  places.reserve(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!IdCanBeUsed(devices[i].id, checked.problems)) continue;
    places.push_back({devices[i].id, i});
  }
  if (!std::is_sorted(places.begin(), places.end(), Before)) {
    std::sort(places.begin(), places.end(), Before);
  }
  checked.devices.reserve(places.size());
  checked.places.resize(devices.size());
  for (const Place& place : places) {
    Device& device = devices[place.index];
    CheckNodes(device, machine_nodes, checked.problems);
    Append(std::move(device), checked.devices, checked.problems);
    checked.places[place.index] =
        static_cast<std::uint32_t>(checked.devices.size() - 1);
  }
  if (checked.devices.size() != devices.size()) checked.places.clear();
  return checked;
}

}  // namespace devmgr::device
