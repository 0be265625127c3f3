// SPDX-License-Identifier: Apache-2.0
//
// What is different about the devices of a node from one snapshot to the next,
// as far as a pod that waits for devices could be helped by it. Pure.
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace devmgr::control {

/// What pods may wait for that is different in `after`, as the node of this
/// name sees it with these feature gates:
///   kDevices       a pool became usable, or has a device that is new or other
///                  than it was
///   kFewerDevices  a device is gone, or a pool is
///   kTaint         a taint of a device, or a rule's, is gone or another one
/// A pool that is not complete in `after`, or invalid, helps no pod. What was
/// published again as it was changes nothing. Costs what pools with a changed
/// slice have, and a look at each slice; where the node itself changed, what
/// all pools have.
std::set<WaitingFor> ChangedPools(const ObjectSnapshot& before,
                                  const ObjectSnapshot& after,
                                  const std::string& node_name,
                                  const std::map<std::string, bool>& gates);

/// By driver and name, the pools whose slices contradict each other, with what
/// they do in: nothing is allocated from them. As above of what the node of
/// this name sees; costs what all pools have.
std::map<std::pair<std::string, std::string>, std::string> InvalidPools(
    const ObjectSnapshot& objects, const std::string& node_name,
    const std::map<std::string, bool>& gates);

}  // namespace devmgr::control
