// SPDX-License-Identifier: Apache-2.0
#include "device/merge_edits.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "api/quote.h"

namespace devmgr::device {
namespace {

const std::string& KeyOf(const NamedValue& value) { return value.name; }
const std::string& KeyOf(const DeviceMount& mount) {
  return mount.container_path;
}
const std::string& KeyOf(const DeviceNode& node) { return node.container_path; }
const std::string& KeyOf(const std::string& name) { return name; }

/// Merges the parts of one sort, `part` being the member of ContainerEdits.
template <typename T>
std::vector<FromResource<T>> Merge(const std::vector<ResourceEdits>& all,
                                   std::vector<T> ContainerEdits::*part,
                                   const char* what,
                                   std::vector<EditConflict>& conflicts) {
  std::map<std::string, FromResource<T>> merged;
  for (const ResourceEdits& one : all) {
    for (const T& value : one.edits.*part) {
      const auto [kept, added] = merged.try_emplace(
          KeyOf(value), FromResource<T>{value, one.resource});
      if (added || kept->second.value == value) continue;
      conflicts.push_back(
          {what, KeyOf(value), kept->second.resource, one.resource});
    }
  }
  std::vector<FromResource<T>> sorted;
  for (auto& [key, value] : merged) sorted.push_back(std::move(value));
  return sorted;
}

}  // namespace

std::string ConflictText(const EditConflict& conflict) {
  return fmt::format(
      "{} {}: the plugin of {} wants it otherwise than that of "
      "{}, which wins",
      conflict.what, api::Quoted(conflict.key),
      api::Quoted(conflict.dropped_from), api::Quoted(conflict.kept_from));
}

MergedEdits MergeEdits(std::vector<ResourceEdits> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const ResourceEdits& a, const ResourceEdits& b) {
                     return a.resource < b.resource;
                   });
  MergedEdits merged;
  std::vector<EditConflict>& conflicts = merged.conflicts;
  merged.env = Merge(edits, &ContainerEdits::env, "env", conflicts);
  merged.mounts = Merge(edits, &ContainerEdits::mounts, "mount", conflicts);
  merged.devices = Merge(edits, &ContainerEdits::devices, "device", conflicts);
  merged.annotations =
      Merge(edits, &ContainerEdits::annotations, "annotation", conflicts);
  merged.cdi_devices =
      Merge(edits, &ContainerEdits::cdi_devices, "CDI device", conflicts);
  std::stable_sort(conflicts.begin(), conflicts.end(),
                   [](const EditConflict& a, const EditConflict& b) {
                     return std::tie(a.what, a.key) < std::tie(b.what, b.key);
                   });
  return merged;
}

}  // namespace devmgr::device
