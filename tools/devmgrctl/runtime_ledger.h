// SPDX-License-Identifier: Apache-2.0
//
// The ledger's side of containers that a runtime has.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/inspection.h>
#include <devmgr/runtime_inspection.h>

#include <vector>

#include "session.h"

namespace devmgr::ctl {

/// What the ledger says of the pods of `containers`. Of one whose name a newer
/// pod has: Unavailable.
absl::StatusOr<LedgerAnswers> AnswersFor(
    Inspector& inspector, const std::vector<RuntimeContainer>& containers);

/// fsck --runtime-endpoint: findings about the containers of the runtime. What
/// comes and goes while they are looked at is none.
absl::StatusOr<std::vector<FsckFinding>> CheckRuntime(const Session& session,
                                                      Inspector& inspector);

}  // namespace devmgr::ctl
