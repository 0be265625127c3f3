// SPDX-License-Identifier: Apache-2.0
//
// The devices chosen so far, and what follows from them for the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/constraints.h"
#include "allocator/counters.h"
#include "allocator/eligibility.h"
#include "allocator/inventory.h"
#include "allocator/refusals.h"
#include "allocator/requests.h"

namespace devmgr::allocator {

/// A device for a request.
struct Chosen {
  RequestNumber request = 0;
  DeviceNumber device = 0;
  friend bool operator==(const Chosen&, const Chosen&) = default;
};

/// A value: a device is tested without a change of anything, is taken when the
/// tests let it pass, and given back in the opposite order, which leaves what
/// there was before.
class Trial {
 public:
  /// Borrows all but the counters.
  Trial(const Inventory& inventory, const Requests& requests,
        const Eligibility& eligibility, AttributeTable& attributes,
        CounterState counters);

  /// Whether the request's own claims have it, so that it need not be looked
  /// at. Cheap.
  bool IsTaken(const Request& request, DeviceNumber device) const;

  /// The test by which the device is refused, which is eligible and not taken;
  /// kNone when it may be taken.
  Refusal Test(RequestNumber request, DeviceNumber device) const;
  void Take(RequestNumber request, DeviceNumber device);
  void GiveBackLast();

  /// In the order in which they were taken.
  const std::vector<Chosen>& chosen() const { return chosen_; }
  std::int64_t CountOf(std::uint32_t claim) const { return counts_[claim]; }
  /// No claim and no request has it in any way.
  bool IsUntouched(DeviceNumber device) const { return uses_[device].IsNone(); }

  // For people, and for tests.
  const CounterState& counters() const { return counters_; }
  const Constraint& ConstraintOf(std::uint32_t claim,
                                 std::uint32_t constraint) const {
    return constraints_[claim][constraint];
  }
  /// The first request that has the device; nothing when none has.
  std::optional<RequestNumber> TakenBy(DeviceNumber device) const;
  /// Of the device's capacity `i`, by these claims.
  Amount Reserved(DeviceNumber device, std::size_t i) const {
    return uses_[device].shares == 0 ? 0 : uses_[device].reserved[i];
  }
  /// Whether counters are asked and charged: by the first that holds the
  /// device.
  bool PaysCounters(const Request& request, DeviceNumber device) const;

  friend bool operator==(const Trial& a, const Trial& b) {
    return a.uses_ == b.uses_ && a.counters_ == b.counters_ &&
           a.constraints_ == b.constraints_ && a.chosen_ == b.chosen_ &&
           a.counts_ == b.counts_;
  }

 private:
  /// What the claims of this run have of a device.
  struct Use {
    bool is_whole = false;     ///< One has it, and not for admin access.
    std::uint32_t shares = 0;  ///< Not for admin access.
    std::uint32_t admins = 0;
    std::vector<Amount> reserved;  ///< By capacity; empty without shares.

    bool IsNone() const { return !is_whole && shares == 0 && admins == 0; }
    friend bool operator==(const Use&, const Use&) = default;
  };

  bool HasRoom(RequestNumber request, DeviceNumber device) const;
  void Reserve(RequestNumber request, DeviceNumber device);
  void Free(RequestNumber request, DeviceNumber device);

  const Inventory* inventory_;
  const Requests* requests_;
  const Eligibility* eligibility_;
  AttributeTable* attributes_;
  CounterState counters_;
  std::vector<std::vector<Constraint>> constraints_;  ///< By claim.
  std::vector<Use> uses_;                             ///< By device.
  std::vector<Chosen> chosen_;
  std::vector<std::int64_t> counts_;  ///< Of devices, by claim.
  /// For each that is chosen: the groups before, if it paid counters.
  std::vector<std::optional<std::vector<CommonGroups>>> groups_before_;
};

}  // namespace devmgr::allocator
