// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "common/executor.h"

namespace devmgr {

/// Runs `work` on the thread of `executor`, at once where that is the calling
/// one, and waits for its value.
template <typename Work>
auto RunOn(Executor& executor, Work work) -> decltype(work()) {
  using Value = decltype(work());
  if (executor.IsCurrent()) return work();
  if constexpr (std::is_void_v<Value>) {
    executor.RunUntilFinished([&](Task finish) {
      executor.Post([&work, finish = std::move(finish)] {
        work();
        finish();
      });
    });
  } else {
    std::optional<Value> result;
    executor.RunUntilFinished([&](Task finish) {
      executor.Post([&result, &work, finish = std::move(finish)] {
        result.emplace(work());
        finish();
      });
    });
    return *std::move(result);
  }
}

}  // namespace devmgr
