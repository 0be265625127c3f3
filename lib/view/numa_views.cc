// SPDX-License-Identifier: Apache-2.0
#include "view/numa_views.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "topology/claim_hints.h"
#include "view/device_views.h"

namespace devmgr::view {
namespace {

/// Counts devices by the nodes that they are on.
class Counter {
 public:
  explicit Counter(NumaInfo& info) : info_(info) {
    for (std::size_t i = 0; i < info.nodes.size(); ++i) {
      places_[info.nodes[i].id] = i;
    }
    counts_.resize(info.nodes.size() + 1);
  }

  void Add(const std::string& name, bool is_driver,
           const std::vector<std::int64_t>& nodes, bool used, bool healthy) {
    std::set<std::size_t> at;
    for (const std::int64_t node : nodes) {
      const auto place = places_.find(node);
      if (place != places_.end()) at.insert(place->second);
    }
    if (at.empty()) at.insert(info_.nodes.size() == 1 ? 0 : info_.nodes.size());
    for (const std::size_t place : at) {
      NumaDevicesInfo& count = counts_[place][{name, is_driver}];
      ++count.devices;
      if (used) ++count.used;
      if (healthy) ++count.healthy;
    }
  }

  void Finish() {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      auto& to =
          i < info_.nodes.size() ? info_.nodes[i].devices : info_.nowhere;
      for (auto& [key, count] : counts_[i]) {
        std::tie(count.name, count.is_driver) = key;
        to.push_back(std::move(count));
      }
    }
  }

 private:
  NumaInfo& info_;
  std::map<std::int64_t, std::size_t> places_;
  /// The last are those on no node.
  std::vector<std::map<std::pair<std::string, bool>, NumaDevicesInfo>> counts_;
};

using DeviceName = std::tuple<std::string, std::string, std::string>;

/// Devices that claims have been allocated: their drivers may say no more of
/// them than CDI names.
void AddAllocated(const ObjectSnapshot& objects, std::set<DeviceName>* used) {
  for (const auto& [name, claim] : objects.claims) {
    if (!claim->status.allocation) continue;
    for (const auto& result : claim->status.allocation->results) {
      if (result.admin_access) continue;
      used->insert({result.driver, result.pool, result.device});
    }
  }
}

void AddPublishedDevices(const Moment& moment, const std::set<DeviceName>& used,
                         Counter& counter) {
  const std::string& node_name = moment.terms->node_name;
  std::set<DeviceName> seen;
  for (const auto& [name, slice] : moment.objects->resource_slices) {
    for (const SliceDevice& device : slice->devices) {
      const std::string_view node = NodeOf(*slice, device);
      if (!node_name.empty() && !node.empty() && node != node_name) continue;
      DeviceName key{slice->driver, slice->pool, device.name};
      if (!seen.insert(key).second) continue;
      counter.Add(slice->driver, true, topology::NumaNodesOf(device),
                  used.contains(key), true);
    }
  }
}

}  // namespace

NumaInfo NumaOf(const Moment& moment) {
  NumaInfo info;
  if (moment.numa != nullptr) info = *moment.numa;
  Counter counter(info);
  std::set<DeviceName> used;
  for (const DeviceInfo& device : DevicesOf(moment)) {
    if (device.resource.empty()) {
      if (!device.used_by.empty()) {
        used.insert({device.driver, device.pool, device.device});
      }
      continue;
    }
    counter.Add(device.resource, false, device.numa_nodes,
                !device.used_by.empty(),
                device.health == DeviceHealth::kHealthy);
  }
  if (moment.objects != nullptr && moment.terms != nullptr) {
    AddAllocated(*moment.objects, &used);
    AddPublishedDevices(moment, used, counter);
  }
  counter.Finish();
  return info;
}

}  // namespace devmgr::view
