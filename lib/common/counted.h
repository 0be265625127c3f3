// SPDX-License-Identifier: Apache-2.0
//
// Texts for people: numbers of things, and spans of time.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <concepts>
#include <string>
#include <string_view>

namespace devmgr {

/// `1 device`, `2 devices`; `noun` is the singular of a regular noun.
template <std::integral Number>
std::string Counted(Number count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// `45 s`, or `1500 ms` where it is not so many whole seconds.
inline std::string SpanText(std::chrono::milliseconds span) {
  const auto ms = span.count();
  return ms != 0 && ms % 1'000 == 0 ? fmt::format("{} s", ms / 1'000)
                                    : fmt::format("{} ms", ms);
}

}  // namespace devmgr
