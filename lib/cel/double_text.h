// SPDX-License-Identifier: Apache-2.0
//
// Doubles from and to text, whatever the locale.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace devmgr::cel {

/// Reads a double; also `inf`, `infinity` and `nan`, in upper or lower case and
/// with a sign. Returns nothing when the number is too large.
std::optional<double> ReadDouble(std::string_view text);

/// The shortest text that is read as the same number. It has no exponent from
/// 1e-4 up to 1e6; beyond that it is written as `1e+06`.
std::string DoubleText(double value);

}  // namespace devmgr::cel
