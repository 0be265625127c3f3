// SPDX-License-Identifier: Apache-2.0
//
// What a pod asks of device plugins at its admission, and where it stands in
// the queue with that. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "admission/wait_queue.h"
#include "device/pod_needs.h"
#include "device/selection.h"
#include "state/records.h"

namespace devmgr::admission {

/// Needs, and whether what the pod holds of them is believed while no plugin
/// has listed its devices.
struct DeviceNeeds {
  std::vector<device::DeviceNeed> needs;
  bool trust_held = true;
};

/// Of a pod that the ledger alone settles: nothing in the boot in which it
/// became Ready, as what a container was given is its own for as long as it may
/// run; in another one all that it holds.
DeviceNeeds NeedsOfBooked(const state::PodRecord& pod,
                          const std::string& boot_id);

/// `needs` without those that init containers have had and given back in this
/// boot. `pod` may be null.
std::vector<device::DeviceNeed> WithoutGivenBack(
    std::vector<device::DeviceNeed> needs, const state::PodRecord* pod,
    const std::string& boot_id);

/// The place of a pod that is not in the queue yet. `pod` may be null.
WaitQueue::Place PlaceOf(const state::PodRecord* pod, std::int32_t priority,
                         const std::vector<device::DeviceNeed>& needs,
                         std::int64_t now_ms);

/// The same of one that lacks devices.
WaitQueue::Place ShortPlace(WaitQueue::Place place,
                            const std::vector<device::Shortage>& shortages);

}  // namespace devmgr::admission
