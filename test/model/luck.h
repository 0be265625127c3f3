// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace devmgr::model {

/// Small numbers out of one number: the luck of one operation, so that it does
/// not depend on what happened before.
class Luck {
 public:
  explicit Luck(std::uint32_t seed)
      : state_(seed * 0x9E3779B97F4A7C15U + 0xD1B54A32D192ED03U) {}

  std::size_t Below(std::size_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>((state_ >> 16) % limit);
  }
  bool Chance(std::size_t percent) { return Below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace devmgr::model
