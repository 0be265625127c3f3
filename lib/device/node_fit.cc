// SPDX-License-Identifier: Apache-2.0
#include "device/node_fit.h"

#include <algorithm>

namespace devmgr::device {

std::map<ResourceName, std::int64_t> AllocatableForFit(
    std::map<ResourceName, std::int64_t> allocatable,
    const ReservationTable& reservations, const PodUid& pod) {
  if (reservations.OfPod(pod).empty()) return allocatable;
  for (const auto& [resource, held] : reservations.resources()) {
    std::int64_t& figure = allocatable[resource];
    figure = std::max(figure, static_cast<std::int64_t>(held.size()));
  }
  return allocatable;
}

}  // namespace devmgr::device
