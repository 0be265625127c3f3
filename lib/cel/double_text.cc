// SPDX-License-Identifier: Apache-2.0
#include "cel/double_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace devmgr::cel {

std::optional<double> ReadDouble(std::string_view text) {
  const bool has_plus = !text.empty() && text.front() == '+';
  if (has_plus) text.remove_prefix(1);
  // std::from_chars accepts no plus sign. After ours it would accept a minus
  // sign.
  if (has_plus && !text.empty() && text.front() == '-') return std::nullopt;
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc()) return number;
  // A number that is too small is 0. std::from_chars reports it in the same way
  // as one that is too large.
  const std::size_t exponent = text.find_first_of("eE");
  const bool is_small = error == std::errc::result_out_of_range &&
                        exponent != std::string_view::npos &&
                        text.substr(exponent + 1, 1) == "-";
  if (is_small) return text.front() == '-' ? -0.0 : 0.0;
  return std::nullopt;
}

std::string DoubleText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 400> buffer{};
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e6);
  const auto result = std::to_chars(
      buffer.data(), buffer.data() + buffer.size(), value,
      plain ? std::chars_format::fixed : std::chars_format::scientific);
  return std::string(buffer.data(), result.ptr);
}

}  // namespace devmgr::cel
