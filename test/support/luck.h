// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <limits>

namespace devmgr {

/// Small numbers out of one number: what a random test draws, the same for the
/// same seed on every machine. The algorithms of <random> take it, too.
class Luck {
 public:
  using result_type = std::uint32_t;

  explicit Luck(std::uint32_t seed)
      : state_(seed * 0x9E3779B97F4A7C15U + 0xD1B54A32D192ED03U) {}

  std::uint32_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ >> 16);
  }
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() {
    return std::numeric_limits<result_type>::max();
  }

  /// Of the type of the limit, which is more than 0.
  template <std::integral Number>
  Number Below(Number limit) {
    return static_cast<Number>((*this)() % static_cast<std::uint32_t>(limit));
  }
  bool Chance(int percent) { return Below(100) < percent; }
  /// One of a list that has some.
  template <typename List>
  const auto& Pick(const List& list) {
    return list[Below(std::size(list))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace devmgr
