// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/node_view.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "view/moment.h"

namespace devmgr::view {

/// What can be seen besides, of the same moment.
struct Surroundings {
  std::uint64_t sequence = 0;
  std::uint64_t last_event = 0;
  NodeInfo node;  ///< But for what is counted.
  std::vector<PluginInfo> plugins;
  std::vector<RegistrationSocketInfo> sockets;
  std::vector<RuntimeInfo> runtimes;
};

std::shared_ptr<const NodeView> NodeViewOf(Moment moment,
                                           Surroundings surroundings);

}  // namespace devmgr::view
