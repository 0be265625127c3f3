// SPDX-License-Identifier: Apache-2.0
//
// The verbs. Each prints its result on stdout and returns what went wrong;
// the exit code follows from that.
#pragma once

#include <absl/status/status.h>

#include "session.h"

namespace devmgr::ctl {

absl::Status Status(const Session& session);
absl::Status ShowVersion(const Session& session);
absl::Status Get(const Session& session);
absl::Status GetChanges(const Session& session);
absl::Status Describe(const Session& session);
absl::Status Resolve(const Session& session);
absl::Status Explain(const Session& session);
absl::Status Wait(const Session& session);
absl::Status Prepare(const Session& session);
absl::Status Release(const Session& session);
absl::Status ForceRelease(const Session& session);
absl::Status HandOver(const Session& session);
absl::Status SetAuthority(const Session& session);
absl::Status ConfirmSource(const Session& session);
absl::Status FreeHolder(const Session& session);
absl::Status DeleteSlices(const Session& session);
absl::Status EndpointKubeconfig(const Session& session);
absl::Status Recheck(const Session& session);
absl::Status Convert(const Session& session);
absl::Status VerifyKubelet(const Session& session);
absl::Status ImportFromKubelet(const Session& session);
absl::Status ExportToKubelet(const Session& session);
absl::Status Events(const Session& session);
absl::Status History(const Session& session);
absl::Status State(const Session& session);
absl::Status Diff(const Session& session);
absl::Status Fsck(const Session& session);
absl::Status Cdi(const Session& session);
absl::Status Inject(const Session& session);
absl::Status Cel(const Session& session);
absl::Status Allocate(const Session& session);
absl::Status Simulate(const Session& session);
absl::Status PodResourcesOfSocket(const Session& session);

}  // namespace devmgr::ctl
