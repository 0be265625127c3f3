// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>

namespace devmgr {

/// Small numbers out of one number: what a random test draws, the same for the
/// same seed on every machine. The algorithms of <random> take it, too.
class Luck {
 public:
  using result_type = std::uint32_t;

  explicit Luck(std::uint32_t seed)
      : state_(seed * 0x9E3779B97F4A7C15U + 0xD1B54A32D192ED03U) {}

  /// Each byte is what is drawn next, and 0 all that is drawn after the last
  /// one: for a fuzzer, which finds out what each byte does. Borrowed.
  explicit Luck(std::span<const std::uint8_t> draws)
      : state_(0), draws_(draws), has_draws_(true) {}

  std::uint32_t operator()() {
    if (has_draws_) return NextDraw();
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
  std::uint32_t NextDraw() {
    if (draws_.empty()) return 0;
    const std::uint32_t draw = draws_.front();
    draws_ = draws_.subspan(1);
    return draw;
  }

  std::uint64_t state_;
  std::span<const std::uint8_t> draws_;
  bool has_draws_ = false;
};

}  // namespace devmgr
