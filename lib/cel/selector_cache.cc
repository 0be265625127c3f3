// SPDX-License-Identifier: Apache-2.0
#include "cel/selector_cache.h"

#include <algorithm>
#include <utility>

namespace devmgr::cel {

SelectorCache::SelectorCache(std::size_t limit)
    : limit_(std::max<std::size_t>(limit, 1)) {}

absl::StatusOr<std::shared_ptr<const Selector>> SelectorCache::Compile(
    std::string_view text, Selector::Kind kind) {
  std::string key;
  key.reserve(1 + text.size());
  key += static_cast<char>('0' + static_cast<int>(kind));
  key += text;
  {
    const MutexLock lock(mutex_);
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->selector;
    }
  }
  absl::StatusOr<std::shared_ptr<const Selector>> selector =
      Selector::Compile(text, kind);
  // A text that is longer than any expression is not worth its memory.
  if (text.size() > 4 * kMaxTextSize) return selector;
  const MutexLock lock(mutex_);
  if (by_key_.contains(key)) return selector;
  entries_.push_front({key, selector});
  by_key_[entries_.front().key] = entries_.begin();
  if (entries_.size() > limit_) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return selector;
}

std::size_t SelectorCache::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace devmgr::cel
