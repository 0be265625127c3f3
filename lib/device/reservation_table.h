// SPDX-License-Identifier: Apache-2.0
//
// Which pod holds which device: the index over all reservations.
#pragma once

#include <absl/status/status.h>
#include <devmgr/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/id_order.h"
#include "device/reservation.h"

namespace devmgr::device {

/// Thread-bound. Costs do not grow with what others hold (but for a logarithm).
class ReservationTable {
 public:
  struct Holder {
    PodUid pod;
    int containers = 0;  ///< Of the pod.
  };
  using HeldIds = std::map<DeviceId, Holder, IdOrder>;

  /// Nothing is changed by an error.
  ///   FailedPrecondition  another pod holds one of the devices, or the
  ///                       container has a reservation for the resource
  ///   InvalidArgument     a device is in it twice
  absl::Status Add(Reservation reservation);

  /// All that the pod has reserved.
  void Commit(const PodUid& pod);

  /// Gives back what is freed by it, by resource name.
  std::vector<FreedDevices> ReleasePod(const PodUid& pod);
  std::vector<FreedDevices> ReleaseContainer(const PodUid& pod,
                                             const ContainerName& container);

  /// In the order they were added; empty for a pod that holds nothing.
  const std::vector<Reservation>& OfPod(const PodUid& pod) const;
  /// Null when there is none.
  const Reservation* Find(const PodUid& pod, const ContainerName& container,
                          const ResourceName& resource) const;
  /// Null when the device is free.
  const Holder* HolderOf(const ResourceName& resource,
                         const DeviceId& id) const;
  /// All held devices of a resource.
  const HeldIds& Held(const ResourceName& resource) const;
  /// Resources of which something is held; the sets are not empty.
  const std::map<ResourceName, HeldIds, std::less<>>& resources() const {
    return held_;
  }

 private:
  template <typename Matches>
  std::vector<FreedDevices> Release(const PodUid& pod, Matches matches);
  void Free(const Reservation& reservation,
            std::map<ResourceName, std::vector<DeviceId>>& freed);

  std::map<PodUid, std::vector<Reservation>> pods_;
  std::map<ResourceName, HeldIds, std::less<>> held_;
};

}  // namespace devmgr::device
