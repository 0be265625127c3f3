// SPDX-License-Identifier: Apache-2.0
//
// Amounts of capacity and counters: exact decimals, so that sums and
// differences undo each other whatever the units are that they are written in.
#pragma once

#include <devmgr/objects.h>

#include <string_view>

namespace devmgr::allocator {

/// In nanos. A quantity is below 2^93 of them, so that 2^33 can be added.
__extension__ using Amount = __int128;

inline Amount AmountOf(const Quantity& quantity) {
  return static_cast<Amount>(quantity.whole) * 1'000'000'000 + quantity.nanos;
}

/// The quantity of `amount`, written in the units of `like`: powers of 1024
/// where that is, or of 1000. An amount beyond 2^63-1 is clamped.
Quantity ToQuantity(Amount amount, const Quantity& like);

}  // namespace devmgr::allocator
