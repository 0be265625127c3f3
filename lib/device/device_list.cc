// SPDX-License-Identifier: Apache-2.0
#include "device/device_list.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/quote.h"
#include "common/ascii.h"
#include "device/id_order.h"

namespace devmgr::device {
namespace {

using api::Quoted;

bool IdCanBeUsed(const DeviceId& id, ListProblems& problems) {
  if (const std::string problem = CheckDeviceId(id); !problem.empty()) {
    problems.Add("{}", problem);
    return false;
  }
  if (id.value.size() > kDefinedIdLength) {
    problems.Add(
        "device {}: ID has {} bytes, the definition says {} at "
        "most",
        Quoted(id), id.value.size(), kDefinedIdLength);
  }
  return true;
}

/// A device while the list is sorted: moving and comparing these is much
/// cheaper than moving and comparing devices.
struct Place {
  std::string_view id;  ///< Without what all IDs begin with.
  std::size_t index;
  std::uint64_t key;  ///< IDs with different keys are in the order of these.
};

/// For an ID that begins behind something that is no digit: its first
/// character, with all digits alike, then the number that begins there.
std::uint64_t KeyOf(std::string_view id) {
  constexpr std::uint64_t kMaxNumber = (std::uint64_t{1} << 56) - 1;
  if (id.empty()) return 0;
  if (!IsDigit(id[0]))
    return std::uint64_t{static_cast<std::uint8_t>(id[0])} << 56;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < id.size() && IsDigit(id[i]); ++i) {
    number = std::min(number * 10 + static_cast<std::uint64_t>(id[i] - '0'),
                      kMaxNumber);
  }
  return (std::uint64_t{'0'} << 56) | number;
}

/// Length of what all IDs begin with, up to the last character of it that is no
/// digit, so that the rest is in the same order as the whole.
std::size_t CommonLength(const std::vector<Place>& places) {
  if (places.empty()) return 0;
  std::string_view common = places.front().id;
  for (const Place& place : places) {
    const auto end = std::mismatch(common.begin(), common.end(),
                                   place.id.begin(), place.id.end());
    common =
        common.substr(0, static_cast<std::size_t>(end.first - common.begin()));
  }
  while (!common.empty() && IsDigit(common.back())) common.remove_suffix(1);
  return common.size();
}

bool Before(const Place& a, const Place& b) {
  if (a.key != b.key) return a.key < b.key;
  if (a.id == b.id) return a.index < b.index;
  return IdLess(a.id, b.id);
}

/// The devices whose IDs can be used, in natural order.
std::vector<Place> SortedPlaces(const std::vector<Device>& devices,
                                ListProblems& problems) {
  std::vector<Place> places;
  places.reserve(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!IdCanBeUsed(devices[i].id, problems)) continue;
    places.push_back({.id = devices[i].id, .index = i});
  }
  const std::size_t common = CommonLength(places);
  for (Place& place : places) {
    place.id.remove_prefix(common);
    place.key = KeyOf(place.id);
  }
  if (!std::is_sorted(places.begin(), places.end(), Before)) {
    std::sort(places.begin(), places.end(), Before);
  }
  return places;
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

std::string CheckDeviceId(std::string_view id) {
  if (id.empty()) return "a device has an empty ID";
  if (id.size() > kMaxIdLength) {
    return fmt::format("device ID {} has {} bytes, at most {} are allowed",
                       Quoted(id), id.size(), kMaxIdLength);
  }
  if (api::FindInvalidUtf8(id) != std::string::npos) {
    return fmt::format("device ID {} is not UTF-8", Quoted(id));
  }
  if (api::HasControlCharacters(id)) {
    return fmt::format("device ID {} has control characters in it", Quoted(id));
  }
  return "";
}

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
  const std::vector<Place> places = SortedPlaces(devices, checked.problems);
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
