// SPDX-License-Identifier: Apache-2.0
#include "view/slice_views.h"

#include <map>
#include <utility>

namespace devmgr::view {
namespace {

/// What is here of the newest generation of a pool. Slices for other nodes
/// count: whether a pool is complete is a question of all of it.
struct PoolSlices {
  std::int64_t newest = 0;
  std::int64_t known = 0;
};
using Pools = std::map<std::pair<std::string, std::string>, PoolSlices>;

Pools PoolsOf(const ObjectSnapshot& objects) {
  Pools pools;
  for (const auto& [name, slice] : objects.resource_slices) {
    PoolSlices& pool = pools[{slice->driver, slice->pool}];
    if (slice->pool_generation < pool.newest) continue;
    if (slice->pool_generation > pool.newest) {
      pool = {slice->pool_generation, 0};
    }
    ++pool.known;
  }
  return pools;
}

}  // namespace

std::vector<SliceInfo> SlicesOf(
    const ObjectSnapshot& objects, const std::string& node_name,
    const std::function<bool(std::string_view driver)>& is_hidden,
    const PoolProblems& problems) {
  const Pools pools = PoolsOf(objects);
  std::vector<SliceInfo> slices;
  for (const auto& [name, slice] : objects.resource_slices) {
    if (!node_name.empty() && !slice->node_name.empty() &&
        slice->node_name != node_name) {
      continue;
    }
    const PoolSlices& pool = pools.at({slice->driver, slice->pool});
    SliceInfo info;
    info.name = name.name;
    info.driver = slice->driver;
    info.pool = slice->pool;
    info.generation = slice->pool_generation;
    info.pool_slices = slice->pool_slice_count;
    info.known_slices = pool.known;
    info.node = slice->node_name;
    for (const SliceDevice& device : slice->devices) {
      info.devices.push_back(device.name);
    }
    info.obsolete = slice->pool_generation < pool.newest;
    // Slices of old versions do not say how many there are.
    info.complete =
        slice->pool_slice_count == 0 || pool.known >= slice->pool_slice_count;
    info.hidden = is_hidden(slice->driver);
    if (const auto found = problems.find({slice->driver, slice->pool});
        found != problems.end() && !info.obsolete) {
      info.problem = found->second;
    }
    slices.push_back(std::move(info));
  }
  return slices;
}

}  // namespace devmgr::view
