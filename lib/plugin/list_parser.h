// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "common/executor.h"
#include "common/mutex.h"

namespace devmgr::plugin {

/// Parses lists where they hold up no other peer: a long one takes
/// milliseconds, in which the thread that hears of all peers would hear of
/// none. Long lists have a thread of their own, which begins with the first of
/// them. Thread-safe.
class ListParser {
 public:
  /// What is parsed at once, in bytes: some 500 devices, a tenth of a
  /// millisecond.
  static constexpr std::size_t kShort = 16 * 1024;

  /// Where `is_apart` is false all lists are parsed at once.
  explicit ListParser(bool is_apart) : is_apart_(is_apart) {}
  /// Waits for the long list that is being parsed, and for those that wait.
  ~ListParser();
  ListParser(const ListParser&) = delete;
  ListParser& operator=(const ListParser&) = delete;

  /// Runs `parse` for a list of so many bytes: before this returns, or for a
  /// long one on the other thread, one after the other.
  void Parse(std::size_t bytes, Task parse);

  /// Runs `task` when the long lists of before are parsed; before this returns
  /// when there are none.
  void After(Task task);

 private:
  void PostLong(Task task) DEVMGR_EXCLUDES(mutex_);

  const bool is_apart_;
  std::atomic<std::size_t> waiting_{0};
  Mutex mutex_;
  std::unique_ptr<ThreadExecutor> thread_ DEVMGR_GUARDED_BY(mutex_);
};

}  // namespace devmgr::plugin
