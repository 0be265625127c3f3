// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "checkpoint/ledger_store.h"

namespace devmgr::checkpoint {

/// Which batches the bounded history holds: always the newest ones, without a
/// gap, up to the last one written. A batch that is larger than all of the
/// history may be leaves it empty.
/// Knows sizes only, so dropping the older end reads nothing.
class HistoryWindow {
 public:
  explicit HistoryWindow(HistoryLimits limits) : limits_(limits) {}

  /// Takes in the next batch and drops what is too much by now.
  void Add(std::uint64_t seq, std::uint64_t bytes) {
    if (sizes_.empty()) first_ = seq;
    sizes_.push_back(bytes);
    bytes_ += bytes;
    while (sizes_.size() > limits_.batches || bytes_ > limits_.bytes) {
      bytes_ -= sizes_.front();
      sizes_.pop_front();
      ++first_;
    }
  }

  void Clear() {
    first_ = 0;
    bytes_ = 0;
    sizes_.clear();
  }

  /// The oldest batch held; the next one to come while none is held.
  std::uint64_t first() const { return first_; }

 private:
  const HistoryLimits limits_;
  std::uint64_t first_ = 0;
  std::uint64_t bytes_ = 0;
  std::deque<std::uint64_t> sizes_;
};

}  // namespace devmgr::checkpoint
