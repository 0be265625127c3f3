// SPDX-License-Identifier: Apache-2.0
//
// Devices that cannot be allocated although no claim has them: another driver
// or a device plugin gave the same hardware to a pod.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "allocator/allocated_state.h"
#include "claim/held_hardware.h"
#include "claim/published_hardware.h"
#include "state/state.h"

namespace devmgr::control {

/// Follows the ledger at a cost of what has changed, and costs nothing while no
/// published device has hardware that is known. Lives on one thread.
class HeldElsewhere {
 public:
  using Holders = std::map<std::string, claim::HeldHardware>;

  /// What a pod cannot have. In the state each device is held by a claim of its
  /// own, whose name is the key in `holders`.
  struct Devices {
    allocator::AllocatedState held;
    Holders holders;
  };

  /// `held` and, for `pod`, what is held elsewhere.
  Devices Follow(const state::State& state,
                 const claim::PublishedHardware& published,
                 const allocator::AllocatedState& held, const PodUid& pod);

 private:
  void Judge(const state::DeviceKey& device, const device::Hardware& hardware);

  void FollowState(const state::State& state,
                   const claim::PublishedHardware& published);

  std::uint64_t version_ = 0;  ///< Of what is published, as of the last call.
  /// As it was followed last; its index points into its records.
  state::State state_;
  /// Devices that some pod cannot have.
  std::map<state::DeviceKey, device::Hardware> devices_;
};

}  // namespace devmgr::control
