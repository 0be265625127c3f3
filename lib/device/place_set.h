// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace devmgr::device {

/// Which places of a vector are in it: a bit for each, so that looking for the
/// next one reads a 64th of what the vector has.
class PlaceSet {
 public:
  /// Of a vector of this size; empty.
  void Reset(std::size_t size) {
    words_.assign((size + kBits - 1) / kBits, 0);
    count_ = 0;
  }

  /// `place` is below the size.
  void Set(std::size_t place, bool is_in) {
    std::uint64_t& word = words_[place / kBits];
    const std::uint64_t bit = std::uint64_t{1} << place % kBits;
    const bool was_in = (word & bit) != 0;
    if (was_in == is_in) return;
    word ^= bit;
    count_ += is_in ? 1 : -1;
  }

  /// `place` is below the size.
  bool Has(std::size_t place) const {
    return (words_[place / kBits] >> place % kBits & 1) != 0;
  }

  std::int64_t count() const { return count_; }

  /// Calls `visit(place)` for each, ascending, until it returns false.
  template <typename Visit>
  void VisitAll(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t left = words_[i]; left != 0; left &= left - 1) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(left));
        if (!visit(i * kBits + bit)) return;
      }
    }
  }

 private:
  static constexpr std::size_t kBits = 64;

  std::vector<std::uint64_t> words_;
  std::int64_t count_ = 0;
};

}  // namespace devmgr::device
