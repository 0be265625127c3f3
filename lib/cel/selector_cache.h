// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cel/selector.h"
#include "common/mutex.h"

namespace devmgr::cel {

/// Keeps the selectors that were used most recently, by their text. Texts that
/// do not compile are kept as well, with their error. Thread-safe. Two threads
/// that ask for a new text at the same time may both compile it.
class SelectorCache {
 public:
  /// Keeps up to `limit` selectors; at least one.
  explicit SelectorCache(std::size_t limit);

  /// The result of Selector::Compile() for `text`.
  absl::StatusOr<std::shared_ptr<const Selector>> Compile(
      std::string_view text, Selector::Kind kind = Selector::Kind::kDevice);

  std::size_t size() const;

 private:
  struct Entry {
    std::string key;
    absl::StatusOr<std::shared_ptr<const Selector>> selector;
  };
  using Entries = std::list<Entry>;

  const std::size_t limit_;
  mutable Mutex mutex_;
  Entries entries_ DEVMGR_GUARDED_BY(mutex_);  ///< Most recently used first.
  std::unordered_map<std::string_view, Entries::iterator> by_key_
      DEVMGR_GUARDED_BY(mutex_);  ///< The keys are views of Entry::key.
};

}  // namespace devmgr::cel
