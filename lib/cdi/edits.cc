// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi.h>
#include <fmt/ranges.h>

#include <set>

#include "api/quote.h"
#include "common/status.h"

namespace devmgr {
namespace {

/// Bytes of the reasons of all.
constexpr std::size_t kMaxReasonsBytes = 4'000;

/// Why each of them is unresolvable; OK when there are none.
absl::Status Unresolvable(const CdiRegistry& registry,
                          const std::vector<std::string>& names) {
  if (names.empty()) return absl::OkStatus();
  std::vector<std::string> reasons;
  for (const std::string& name : names) {
    reasons.push_back(registry.ExplainFailedLookup(name));
  }
  return MakeStatus(absl::StatusCode::kNotFound,
                    api::Readable(fmt::format("unresolvable CDI devices {}: {}",
                                              fmt::join(names, ", "),
                                              fmt::join(reasons, "; ")),
                                  kMaxReasonsBytes));
}

}  // namespace

absl::StatusOr<CdiEdits> CdiEditsOf(const CdiRegistry& registry,
                                    const std::vector<std::string>& names) {
  CdiEdits parts;
  std::vector<std::string> missing;
  std::set<std::string_view> seen;
  std::set<const CdiSpecFile*> files;
  std::size_t count = 0;
  const auto add = [&](const CdiRegistryDevice& device, bool of_spec,
                       const CdiContainerEdits& edits) {
    if (edits.Count() == 0) return;
    count += edits.Count();
    // Shares the spec's life.
    parts.push_back(
        {device.name, device.file->path, of_spec,
         std::shared_ptr<const CdiContainerEdits>(device.file->spec, &edits)});
  };
  for (const std::string& name : names) {
    if (!seen.insert(name).second) continue;
    const CdiRegistryDevice* device = registry.Find(name);
    if (device == nullptr) {
      missing.push_back(name);
      continue;
    }
    if (files.insert(device->file).second) {
      add(*device, true, device->file->spec->edits);
    }
    add(*device, false, device->device->edits);
  }
  DEVMGR_RETURN_IF_ERROR(Unresolvable(registry, missing));
  if (count > kMaxCdiEdits) {
    return ResourceExhaustedError(
        "{} CDI devices have {} edits, at most {} "
        "are made",
        seen.size(), count, kMaxCdiEdits);
  }
  return parts;
}

}  // namespace devmgr
