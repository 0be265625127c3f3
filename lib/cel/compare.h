// SPDX-License-Identifier: Apache-2.0
//
// Equality and order of values.
#pragma once

#include <compare>
#include <optional>

#include "cel/value.h"
#include "cel/work.h"

namespace devmgr::cel {

/// The language's `==`. Numbers are compared by amount across their types, NaN
/// equals nothing, and values of different types are unequal. Returns false as
/// soon as `work` is used up.
bool Equal(const Value& a, const Value& b, Work& work);

/// The order of two values. Numbers are compared across their types; bools,
/// strings, bytes, durations and timestamps with values of their own type.
/// `comparable` is false when the types have no order. When one operand is NaN
/// they are comparable, but unordered.
struct Order {
  bool comparable = false;
  std::partial_ordering order = std::partial_ordering::unordered;
};
Order OrderOf(const Value& a, const Value& b);

/// A total order of legal keys, in which numbers of the same amount are one
/// key. Values that are no legal key come after all others and are equal to
/// each other.
bool KeyBefore(const Value& a, const Value& b);

}  // namespace devmgr::cel
