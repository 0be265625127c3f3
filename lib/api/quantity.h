// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <compare>
#include <string>
#include <string_view>

namespace devmgr::api {

/// Reads a Kubernetes quantity: sign, decimal digits, and a suffix of
/// `n u m k M G T P E`, `Ki Mi Gi Ti Pi Ei`, or an exponent such as `e3`.
/// Amounts below a nano are rounded away from zero, amounts beyond 2^63-1 are
/// clamped, both as upstream does (the latter with a binary suffix only).
/// `text` is kept as written.
///   InvalidArgument  not a quantity; the message quotes it
absl::StatusOr<Quantity> ParseQuantity(std::string_view text);

/// Whether the text of such a quantity says more than its amount.
bool IsClamped(const Quantity& quantity);

/// The quantity as it was written; one that was computed, and has no text, as
/// a decimal number.
std::string QuantityText(const Quantity& quantity);

/// Order by amount.
std::strong_ordering Compare(const Quantity& a, const Quantity& b);

/// Below zero.
bool IsNegative(const Quantity& quantity);

}  // namespace devmgr::api
