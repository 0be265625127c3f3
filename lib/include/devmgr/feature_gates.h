// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/export.h>

#include <map>
#include <string>
#include <vector>

namespace devmgr {

/// Whether DeviceManager::Open takes `gates` as
/// DeviceManagerOptions::feature_gates. Every gate that a kubelet of Kubernetes
/// 1.34 to 1.37 knows is taken, whether or not it turns anything here.
/// Thread-safe, never blocks.
///   InvalidArgument   gates that are not known, with the names that were
///                     likely meant, or that need one that is off; the message
///                     names all of them
DEVMGR_EXPORT absl::Status CheckFeatureGates(
    const std::map<std::string, bool>& gates);

/// What an operator should know about gates that are taken, for people: which
/// of them turn nothing on this node, in one text, and which are set against
/// their lock in a release of Kubernetes, in another. Empty when all is well.
/// The manager logs these texts when it starts, and has them as events.
/// Thread-safe, never blocks.
DEVMGR_EXPORT std::vector<std::string> FeatureGateWarnings(
    const std::map<std::string, bool>& gates);

}  // namespace devmgr
