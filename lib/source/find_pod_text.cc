// SPDX-License-Identifier: Apache-2.0
#include <devmgr/pod_texts.h>

#include <optional>
#include <utility>

#include "common/status.h"
#include "source/file_source.h"
#include "source/manifest_reader.h"

namespace devmgr {

absl::StatusOr<PodText> FindPodText(const std::filesystem::path& directory,
                                    const ObjectName& pod) {
  const source::FileSourceOptions limits;
  auto listing = source::ListManifests(directory, limits.max_files);
  if (!listing.ok()) {
    return WithContext(listing.status(), "directory '{}'", directory.string());
  }
  for (const std::string& name : listing->names) {
    const source::FileReading file = source::ReadManifest(
        listing->directory.get(), name, std::nullopt, limits.max_file_bytes);
    if (file.kind != source::FileReading::Kind::kText) continue;
    auto pods = PodTextsOf(file.text, (directory / name).string());
    if (!pods.ok()) continue;
    for (PodText& found : *pods) {
      if (found.name == pod) return std::move(found);
    }
  }
  return NotFoundError("no manifest in '{}' has pod '{}'", directory.string(),
                       pod.ToString());
}

}  // namespace devmgr
