// SPDX-License-Identifier: Apache-2.0
//
// From the messages of the pod-resources API, as any server sends them, to
// values. Pure.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/pod_resources_client.h>

#include <string>
#include <vector>

namespace devmgr::podresources {

// InvalidArgument: the bytes are no such message.

absl::StatusOr<std::vector<ListedPod>> DecodedList(const std::string& bytes);
/// Of v1alpha1.
absl::StatusOr<std::vector<ListedPod>> DecodedOldList(const std::string& bytes);
/// Also when the answer lacks the pod: then it has no name.
absl::StatusOr<ListedPod> DecodedGet(const std::string& bytes);
absl::StatusOr<AllocatableResources> DecodedAllocatable(
    const std::string& bytes);

}  // namespace devmgr::podresources
