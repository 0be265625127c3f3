// SPDX-License-Identifier: Apache-2.0
#include "testing/slice_plan.h"

#include <devmgr/manifests.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

namespace devmgr::testing {
namespace {

using apiserver::StoredObject;
using SliceJson = nlohmann::ordered_json;

SliceJson DevicesFrom(const PublishedPool& pool, std::size_t first) {
  SliceJson devices = SliceJson::array();
  const std::size_t end = std::min(pool.devices, first + kMaxSliceDevices);
  for (std::size_t i = first; i < end; ++i) {
    devices.push_back({{"name", fmt::format("gpu-{}", i)},
                       {"attributes",
                        {{"type", {{"string", "gpu"}}},
                         {"index", {{"int", i}}},
                         {"uuid", {{"string", fmt::format("GPU-{:08x}", i)}}}}},
                       {"capacity", {{"memory", {{"value", "16Gi"}}}}}});
  }
  return devices;
}

/// The specs of all slices, without their generation.
std::vector<SliceJson> SpecsOf(const PublishedPool& pool) {
  const std::size_t count =
      (pool.devices + kMaxSliceDevices - 1) / kMaxSliceDevices;
  std::vector<SliceJson> specs;
  for (std::size_t i = 0; i < count; ++i) {
    specs.push_back({{"driver", pool.driver},
                     {"nodeName", pool.node_name},
                     {"pool",
                      {{"name", pool.node_name},
                       {"generation", 1},
                       {"resourceSliceCount", count}}},
                     {"devices", DevicesFrom(pool, i * kMaxSliceDevices)}});
  }
  return specs;
}

SliceJson SliceWith(const SliceJson& metadata, const SliceJson& spec) {
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata", metadata},
          {"spec", spec}};
}

/// As it reads once the server has it.
ResourceSlice DecodedSlice(const SliceJson& spec) {
  const DecodedManifest decoded =
      DecodeManifest(SliceWith({{"name", "any"}}, spec).dump(), "slice");
  const auto* slice =
      decoded.objects.empty()
          ? nullptr
          : std::get_if<ResourceSlice>(&decoded.objects[0].object);
  return slice == nullptr ? ResourceSlice() : *slice;
}

/// Null for an object that cannot be decoded.
const ResourceSlice* SliceOf(const StoredObject& stored) {
  return stored.object == nullptr
             ? nullptr
             : std::get_if<ResourceSlice>(stored.object.get());
}

using Stored = std::shared_ptr<const StoredObject>;

/// Slices by the devices that they are to have: null where there is none yet.
struct Matched {
  std::vector<Stored> of_specs;
  std::vector<Stored> surplus;
  bool is_up_to_date = true;
  std::int64_t newest = 0;
};

Matched Match(const PublishedPool& pool, const std::vector<SliceJson>& specs,
              const apiserver::ObjectStore::Objects& existing) {
  Matched matched;
  std::map<std::string, Stored> by_first;  // Name of their first device.
  for (const auto& [uid, stored] : existing) {
    const ResourceSlice* slice = SliceOf(*stored);
    const bool is_ours = slice != nullptr && slice->pool == pool.node_name;
    if (is_ours) {
      matched.newest = std::max(matched.newest, slice->pool_generation);
    }
    if (!is_ours || slice->devices.empty() ||
        !by_first.emplace(slice->devices[0].name, stored).second) {
      matched.surplus.push_back(stored);
    }
  }
  for (const SliceJson& spec : specs) {
    const auto found = by_first.find(spec["devices"][0]["name"]);
    const bool is_there = found != by_first.end();
    matched.of_specs.push_back(is_there ? found->second : nullptr);
    if (!is_there) {
      matched.is_up_to_date = false;
      continue;
    }
    ResourceSlice wanted = DecodedSlice(spec);
    const ResourceSlice& slice = *SliceOf(*found->second);
    matched.is_up_to_date = matched.is_up_to_date &&
                            slice.devices == wanted.devices &&
                            slice.pool_slice_count == wanted.pool_slice_count &&
                            slice.pool_generation == matched.newest;
    by_first.erase(found);
  }
  for (const auto& [name, stored] : by_first) matched.surplus.push_back(stored);
  matched.is_up_to_date = matched.is_up_to_date && matched.surplus.empty();
  return matched;
}

SliceWrite WriteOf(const PublishedPool& pool, const SliceJson& spec,
                   const Stored& stored) {
  SliceJson metadata;
  if (stored == nullptr) {
    metadata["generateName"] =
        fmt::format("{}-{}-", pool.node_name, pool.driver);
  } else {
    metadata["name"] = stored->name.name;
    metadata["uid"] = stored->uid;
    metadata["resourceVersion"] = stored->resource_version;
  }
  metadata["ownerReferences"] = SliceJson::array({{{"apiVersion", "v1"},
                                                   {"kind", "Node"},
                                                   {"name", pool.node_name},
                                                   {"uid", pool.node_uid},
                                                   {"controller", true}}});
  return {
      stored == nullptr ? SliceWrite::Kind::kCreate : SliceWrite::Kind::kUpdate,
      stored == nullptr ? "" : stored->name.name,
      SliceWith(metadata, spec).dump()};
}

SliceWrite DeletionOf(const Stored& stored) {
  const SliceJson options = {
      {"apiVersion", "v1"},
      {"kind", "DeleteOptions"},
      {"preconditions",
       {{"uid", stored->uid}, {"resourceVersion", stored->resource_version}}}};
  return {SliceWrite::Kind::kDelete, stored->name.name, options.dump()};
}

}  // namespace

SlicePlan PlanSlices(const PublishedPool& pool,
                     const apiserver::ObjectStore::Objects& existing) {
  std::vector<SliceJson> specs = SpecsOf(pool);
  const Matched matched = Match(pool, specs, existing);
  SlicePlan plan{{}, matched.newest, specs.size()};
  if (matched.is_up_to_date) return plan;
  ++plan.generation;
  for (const Stored& stored : matched.surplus) {
    plan.writes.push_back(DeletionOf(stored));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    specs[i]["pool"]["generation"] = plan.generation;
    plan.writes.push_back(WriteOf(pool, specs[i], matched.of_specs[i]));
  }
  return plan;
}

}  // namespace devmgr::testing
