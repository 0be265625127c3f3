// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "device/reservation_table.h"

namespace devmgr::device {

/// What the node can run, for judging whether `pod` fits: a pod that holds
/// devices must fit although its plugin is away, so for it each figure is at
/// least what is held of that resource. Others get `allocatable` unchanged.
std::map<ResourceName, std::int64_t> AllocatableForFit(
    std::map<ResourceName, std::int64_t> allocatable,
    const ReservationTable& reservations, const PodUid& pod);

}  // namespace devmgr::device
