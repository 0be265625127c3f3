// SPDX-License-Identifier: Apache-2.0
//
// Hints as they are merged: those of devices in the form of masks, and those of
// an embedder once they are checked.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/topology.h>

#include <map>
#include <string>
#include <vector>

#include "topology/hints.h"
#include "topology/merge.h"

namespace devmgr::topology {

/// What provides hints of device plugins and of claims, in messages.
inline constexpr char kDeviceProvider[] = "device";
inline constexpr char kClaimProvider[] = "claim";

/// The same as masks. A hint with a node above 63, which no mask can have,
/// counts as cut.
ResourceHints ToResourceHints(std::string provider, std::string resource,
                              const Hints& hints);

/// Asks `provider` and checks its answer.
///   InvalidArgument     a hint has no nodes, or a node that is not of
///                       `machine`; the message names provider and resource
///   ResourceExhausted   a list has more than kMaxHintsOfProvider hints
///   any other           the provider's own
absl::StatusOr<std::vector<ResourceHints>> HintsOfProvider(
    const TopologyHintProvider& provider, const TopologyRequest& request,
    NumaMask machine);

}  // namespace devmgr::topology
