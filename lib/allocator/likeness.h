// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/constraints.h"
#include "allocator/eligibility.h"
#include "allocator/inventory.h"
#include "allocator/requests.h"

namespace devmgr::allocator {

/// Which devices no request can tell apart: they have the same verdicts, values
/// of attributes in constraints, counters, groups and capacity. When one of
/// them led to nothing at some place, so would each other one that stands
/// behind it and is as free, as both could be exchanged in any solution: the
/// first fit is found without trying them.
///
/// It is worked out when the first device has failed. A device that a claim
/// holds is like no other, nor is one on which a selector fails.
class Likeness {
 public:
  /// Borrows all of it.
  Likeness(const Inventory& inventory, const Requests& requests,
           Eligibility& eligibility, AttributeTable& attributes)
      : inventory_(inventory),
        requests_(requests),
        eligibility_(eligibility),
        attributes_(attributes) {}

  /// The same number for devices that are alike.
  std::uint32_t Of(DeviceNumber device) {
    if (numbers_.empty()) Compute();
    return numbers_[device];
  }

 private:
  void Compute();
  std::string Describe(DeviceNumber device);

  const Inventory& inventory_;
  const Requests& requests_;
  Eligibility& eligibility_;
  AttributeTable& attributes_;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace devmgr::allocator
