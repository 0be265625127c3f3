// SPDX-License-Identifier: Apache-2.0
#include "dra/compat/handles.h"

#include <utility>

#include "api/old_handles.h"
#include "common/peer_status.h"
#include "common/status.h"

namespace devmgr::dra {

absl::Status CheckSayable(const ApiVersion& version,
                          const ClaimReference& claim) {
  if (version.handles == Handles::kNone) return absl::OkStatus();
  if (const auto why = api::WhyNotSayable(claim.handle); !why.empty()) {
    return FailedPreconditionError(
        "claim '{}' has {}, which API {} cannot express", claim.name.ToString(),
        why, version.name);
  }
  if (version.handles == Handles::kText &&
      claim.handle.structured.has_value()) {
    return FailedPreconditionError(
        "claim '{}' was allocated by structured parameters, which API {} "
        "cannot express",
        claim.name.ToString(), version.name);
  }
  return absl::OkStatus();
}

absl::Status WithHint(const ApiVersion& version, const ClaimReference& claim,
                      const absl::Status& status) {
  if (version.handles != Handles::kStructured ||
      !claim.handle.structured.has_value()) {
    return status;
  }
  absl::Status hinted = MakeStatus(
      status.code(), MessageOf(status) +
                         " (a driver older than structured parameters sees an "
                         "empty handle)");
  return IsFromPeer(status) ? FromPeer(std::move(hinted)) : std::move(hinted);
}

}  // namespace devmgr::dra
