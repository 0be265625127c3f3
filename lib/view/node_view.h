// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/node_view.h>
#include <devmgr/runtime_source.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "view/moment.h"

namespace devmgr::view {

/// What can be seen besides, of the same moment.
struct Surroundings {
  std::uint64_t sequence = 0;
  std::uint64_t last_event = 0;
  std::shared_ptr<const NodeInfo> node;  ///< What stays the same.
  absl::Status ledger;                   ///< Why it takes nothing more.
  /// Drivers' instances without their load, and those of device plugins.
  std::vector<std::shared_ptr<const PluginInfo>> plugins;
  std::vector<std::shared_ptr<const RegistrationSocketInfo>> sockets;
  std::vector<std::shared_ptr<const RuntimeInfo>> runtimes;
  /// What is known of what the runtime runs; nothing: there is no source.
  std::optional<RuntimeSourceInfo> runtime;
  /// The same as it was published; null: there is no source.
  std::shared_ptr<const RuntimeSnapshot> runs;
};

/// What a view that NodeViewOf made shows; null: of another one. Valid as long
/// as the view.
const Moment* MomentOf(const NodeView& view);

std::shared_ptr<const NodeView> NodeViewOf(Moment moment,
                                           Surroundings surroundings);

}  // namespace devmgr::view
