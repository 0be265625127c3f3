// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace devmgr::testing {

/// Whether a claim can be prepared that a call names so.
///   NotFound            it has another UID; one without UID matches any
///   FailedPrecondition  it is not allocated
absl::Status CheckAllocated(const ResourceClaim& claim, const ObjectName& name,
                            const std::string& uid);

/// The claims in a directory of manifests, as they are right now: a driver's
/// stand-in for reading them from an API server.
class ClaimManifests {
 public:
  /// Reads `*.yaml`, `*.yml` and `*.json` in the order of their names. Of two
  /// objects with one name the first counts. A file that cannot be read or
  /// decoded is left out and named in later errors. A directory that is
  /// missing holds nothing.
  static ClaimManifests Read(const std::filesystem::path& directory);
  /// The same with a further directory.
  void Add(const std::filesystem::path& directory);

  /// The allocated claim of that name.
  ///   NotFound            no manifest has it, or has it with another UID; a
  ///                       manifest without UID matches any
  ///   FailedPrecondition  it is not allocated
  absl::StatusOr<ResourceClaim> FindAllocated(const ObjectName& name,
                                              const std::string& uid) const;

 private:
  std::filesystem::path directory_;
  std::map<ObjectName, ResourceClaim> claims_;
  std::vector<std::string> problems_;
};

}  // namespace devmgr::testing
