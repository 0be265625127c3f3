// SPDX-License-Identifier: Apache-2.0
//
// Which devices claims hold on this node: by the status of their objects, and
// by the ledger while the object is gone or names other devices by now.
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allocator/allocated_state.h"
#include "state/state.h"

namespace devmgr::control {

/// Follows ledger and objects at a cost of what has changed. Lives on one
/// thread.
class HeldDevices {
 public:
  /// `objects` are shown with what this node decided. The result is valid until
  /// the next call; its copies are good for ever.
  const allocator::AllocatedState& Follow(const state::State& state,
                                          const ObjectSnapshot& objects);

  /// A number that is the same when, of the devices of the driver or of all
  /// where it is WaitingFor::kAnyDriver, the same are held to the same extent,
  /// by whatever claims; as of the last call.
  std::uint64_t SumOf(const std::string& driver) const;

 private:
  void Count(const ResourceClaim& claim, const state::LocalClaimRecord* local);
  void Discount(const std::string& uid);
  std::set<std::string> Touched(const state::State& state,
                                const ObjectSnapshot& objects);
  std::shared_ptr<const ResourceClaim> ObjectOf(const state::State& state,
                                                const std::string& uid) const;
  std::shared_ptr<const ResourceClaim> Holding(const state::State& state,
                                               const std::string& uid) const;

  // As they were followed last.
  ObjectMap<ResourceClaim> claims_;
  decltype(state::State::claims) booked_;
  decltype(state::State::local_claims) local_;
  std::map<std::string, std::shared_ptr<const ResourceClaim>> by_uid_;
  /// What was added to the state, by UID.
  std::map<std::string, std::shared_ptr<const ResourceClaim>> added_;
  std::map<std::string, std::vector<std::pair<std::string, std::uint64_t>>>
      counted_;  ///< By UID: driver, and its part of the sum.
  std::map<std::string, std::uint64_t> sums_;  ///< By driver.
  allocator::AllocatedState held_;
};

}  // namespace devmgr::control
