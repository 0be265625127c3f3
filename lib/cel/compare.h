// SPDX-License-Identifier: Apache-2.0
//
// Equality and order of values.
#pragma once

#include <compare>
#include <optional>

#include "cel/value.h"
#include "cel/work.h"

namespace devmgr::cel {

/// The language's `==`: numbers by amount across their types, NaN equals
/// nothing, values of different types are not equal. False once `work` is over.
bool Equal(const Value& a, const Value& b, Work& work);

/// Numbers across their types; bools, strings, bytes, durations and timestamps
/// among themselves. Nothing when one is NaN, and nothing, `comparable` false,
/// when the types have no order.
struct Order {
  bool comparable = false;
  std::partial_ordering order = std::partial_ordering::unordered;
};
Order OrderOf(const Value& a, const Value& b);

/// A total order of legal keys, in which numbers that are equal are one key.
/// What is no legal key goes last, and equals only its like.
bool KeyBefore(const Value& a, const Value& b);

}  // namespace devmgr::cel
