// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace devmgr::model {

/// A short part of `sequence` that still fails: leaves out pieces of every
/// size as long as `fails`, which must say the same for the same sequence.
template <typename T>
std::vector<T> Shrink(std::vector<T> sequence,
                      const std::function<bool(const std::vector<T>&)>& fails) {
  std::size_t size = sequence.size() / 2;
  while (size > 0) {
    bool shorter = false;
    for (std::size_t begin = 0; begin < sequence.size();) {
      const std::size_t end = std::min(begin + size, sequence.size());
      std::vector<T> rest(sequence.begin(), sequence.begin() + begin);
      rest.insert(rest.end(), sequence.begin() + end, sequence.end());
      if (fails(rest)) {
        sequence = std::move(rest);
        shorter = true;
      } else {
        begin = end;
      }
    }
    // Leaving something out may make something else superfluous.
    if (size > 1 || !shorter) size /= 2;
  }
  return sequence;
}

}  // namespace devmgr::model
