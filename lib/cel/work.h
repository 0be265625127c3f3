// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace devmgr::cel {

/// What one evaluation may do beyond what its cost counts. The cost of an
/// operation says little of nested lists that share their parts, or of a
/// `replace` whose result is much larger than its input, so elements and bytes
/// that are looked at or copied are counted here besides. A unit is about an
/// element that is compared; the limit keeps an evaluation below some 64 MiB
/// and a second.
class Work {
 public:
  static constexpr std::uint64_t kLimit = 16'000'000;

  explicit Work(std::uint64_t limit = kLimit) : left_(limit) {}

  /// False once the limit is passed; from then on always.
  bool Spend(std::uint64_t units) {
    left_ = units > left_ ? 0 : left_ - units;
    return left_ > 0;
  }
  bool SpendOnValues(std::uint64_t copied) { return Spend(8 * copied); }
  bool SpendOnText(std::uint64_t bytes) { return Spend(bytes / 2 + 1); }
  bool IsOver() const { return left_ == 0; }

 private:
  std::uint64_t left_;
};

}  // namespace devmgr::cel
