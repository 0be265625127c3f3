// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <utility>

namespace devmgr {

/// A value that follows from a key, and is made anew only when that differs:
/// what is shown of something that changes seldom and is asked for often.
template <typename Key, typename Value>
class Remembered {
 public:
  /// What `make` returned for the last key, or returns for this one.
  template <typename Make>
  const std::shared_ptr<const Value>& Of(Key key, Make make) {
    if (key_ != key) {
      value_ = std::make_shared<const Value>(make());
      key_ = std::move(key);
    }
    return value_;
  }

 private:
  std::optional<Key> key_;
  std::shared_ptr<const Value> value_;
};

}  // namespace devmgr
