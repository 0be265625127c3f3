// SPDX-License-Identifier: Apache-2.0
#include "testing/claim_manifests.h"

#include <devmgr/manifests.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

#include "common/status.h"
#include "testing/files.h"

namespace devmgr::testing {
namespace {

constexpr std::size_t kMaxManifestBytes = 16 * 1024 * 1024;

/// Names of manifests in `directory`, sorted. Dot files are skipped: so are
/// the data folders of a mounted ConfigMap, whose links are followed.
std::vector<std::filesystem::path> ManifestFiles(
    const std::filesystem::path& directory,
    std::vector<std::string>* problems) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const std::filesystem::path& path = entry->path();
    const std::string extension = path.extension().string();
    if (!path.filename().string().starts_with(".") &&
        (extension == ".yaml" || extension == ".yml" || extension == ".json")) {
      files.push_back(path);
    }
    entry.increment(error);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    problems->push_back(fmt::format("cannot read directory '{}': {}",
                                    directory.string(), error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::Status CheckAllocated(const ResourceClaim& claim, const ObjectName& name,
                            const std::string& uid) {
  if (!claim.metadata.uid.empty() && claim.metadata.uid != uid) {
    return NotFoundError("claim '{}': asked for uid '{}', there is '{}'",
                         name.ToString(), uid, claim.metadata.uid);
  }
  if (!claim.status.allocation.has_value()) {
    return FailedPreconditionError("claim '{}' with uid '{}': not allocated",
                                   name.ToString(), uid);
  }
  return absl::OkStatus();
}

ClaimManifests ClaimManifests::Read(const std::filesystem::path& directory) {
  ClaimManifests manifests;
  manifests.directory_ = directory;
  manifests.Add(directory);
  return manifests;
}

void ClaimManifests::Add(const std::filesystem::path& directory) {
  for (const auto& file : ManifestFiles(directory, &problems_)) {
    const absl::StatusOr<std::string> text = ReadFile(file, kMaxManifestBytes);
    if (!text.ok()) {
      problems_.push_back(MessageOf(text.status()));
      continue;
    }
    DecodedManifest decoded = DecodeManifest(*text, file.string());
    if (!decoded.errors.empty()) {
      problems_.push_back(decoded.errors.front().ToString());
      continue;
    }
    for (DecodedObject& object : decoded.objects) {
      if (auto* claim = std::get_if<ResourceClaim>(&object.object)) {
        claims_.emplace(claim->metadata.FullName(), std::move(*claim));
      }
    }
  }
}

absl::StatusOr<ResourceClaim> ClaimManifests::FindAllocated(
    const ObjectName& name, const std::string& uid) const {
  const auto found = claims_.find(name);
  if (found == claims_.end()) {
    std::string text = fmt::format("claim '{}': not found in '{}'",
                                   name.ToString(), directory_.string());
    if (!problems_.empty()) {
      text += fmt::format(" ({} unusable, first: {})", problems_.size(),
                          problems_.front());
    }
    return MakeStatus(absl::StatusCode::kNotFound, text);
  }
  DEVMGR_RETURN_IF_ERROR(CheckAllocated(found->second, name, uid));
  return found->second;
}

}  // namespace devmgr::testing
