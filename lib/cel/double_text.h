// SPDX-License-Identifier: Apache-2.0
//
// Doubles from and to text, whatever the locale.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace devmgr::cel {

/// Also `inf`, `infinity` and `nan`, in any case and with a sign. What is too
/// large for a double is nothing.
std::optional<double> ReadDouble(std::string_view text);

/// The shortest text that reads as the same number: without an exponent
/// between 1e-4 and 1e6, else as `1e+06`.
std::string DoubleText(double value);

}  // namespace devmgr::cel
