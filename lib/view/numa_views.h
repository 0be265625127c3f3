// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/topology.h>

#include "view/moment.h"

namespace devmgr::view {

/// NUMA nodes with the devices on them: those of plugins, and those that
/// drivers publish for this node. On a machine of one node all are there.
NumaInfo NumaOf(const Moment& moment);

}  // namespace devmgr::view
