// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>

#include <functional>
#include <memory>
#include <string>

#include "state/records.h"

namespace devmgr::claim {

using ClaimLookup = std::function<const state::ClaimRecord*(const ClaimUid&)>;

/// Is the device one of those that serve a request (empty: any) of its claim?
bool Serves(const state::PreparedDevice& device, const std::string& request);

/// What each container of a pod gets. CDI device IDs first of its claims (the
/// kubelet's GetResources), in pod-claim order, then driver, then answer order,
/// then of its device plugins, by name; each ID once. Request names are
/// compared by their base on both sides. All else is merged from the plugins'
/// answers (device/merge_edits.h). What an init container has given back is not
/// in it.
///   Internal  the pod wants a claim that has no record
absl::StatusOr<std::shared_ptr<const PodDevices>> AnswerFor(
    const state::PodRecord& pod, const ClaimLookup& claims);

}  // namespace devmgr::claim
