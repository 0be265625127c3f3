// SPDX-License-Identifier: Apache-2.0
//
// What a client may say about a pod that it wants: pure, no disk here.
#pragma once

#include <devmgr/manifests.h>
#include <devmgr/objects.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::source {

/// One pod with a UID, and its claims.
struct WantedManifest {
  std::shared_ptr<const Pod> pod;  ///< Null with a problem.
  std::vector<std::shared_ptr<const ResourceClaim>> claims;
  std::vector<ManifestProblem> warnings;
  /// Why it cannot be used, with its line.
  std::optional<ManifestProblem> problem;
};

/// Decoded as the manifests of a directory are. `file` is what problems name.
WantedManifest DecodeWanted(std::string_view text, const std::string& file,
                            std::string_view node_name);

/// Why a UID cannot be that of a wanted pod, of which a file is named; empty
/// when it can.
std::string ProblemOfUid(std::string_view uid);

/// Two manifests have the same claim: of one UID, with one allocation.
bool IsSameClaim(const ResourceClaim& a, const ResourceClaim& b);

/// The claim, reserved for those of `other` as well; the same object when it
/// is already.
std::shared_ptr<const ResourceClaim> WithConsumersOf(
    const std::shared_ptr<const ResourceClaim>& claim,
    const ResourceClaim& other);

}  // namespace devmgr::source
