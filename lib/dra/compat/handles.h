// SPDX-License-Identifier: Apache-2.0
//
// What drivers before Kubernetes 1.31 are sent of a claim's allocation.
#pragma once

#include <absl/status/status.h>

#include "dra/api_version.h"

namespace devmgr::dra {

/// Can a call in this version say what was allocated for the claim?
///   FailedPrecondition  it cannot; the message names claim, version and reason
absl::Status CheckSayable(const ApiVersion& version,
                          const ClaimReference& claim);

/// What the driver answered for `claim`, with a hint where its error may come
/// from: drivers from before Kubernetes 1.30 overlook structured handles.
absl::Status WithHint(const ApiVersion& version, const ClaimReference& claim,
                      const absl::Status& status);

}  // namespace devmgr::dra
