// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace devmgr::cel {

/// Bounds what an evaluation does beyond what its cost counts. The cost of an
/// operation does not include the size of nested lists that share their parts,
/// nor the result of a `replace` that is much larger than its input. So the
/// elements and bytes that are read or copied are counted here as well. A unit
/// is about the comparison of one element. The limit keeps an evaluation below
/// 64 MiB and a second.
class Work {
 public:
  static constexpr std::uint64_t kLimit = 16'000'000;

  explicit Work(std::uint64_t limit = kLimit) : left_(limit) {}

  /// Counts `units`. Returns false once the limit is reached, and from then on
  /// always.
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
