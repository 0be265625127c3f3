// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "source/api/json_view.h"
#include "source/api/limits.h"

namespace devmgr::apiserver {

/// Cuts the stream of a watch into its events, one JSON object each. The bytes
/// may come in any cut. After an error it is spent. Thread-bound.
class EventSplitter {
 public:
  using Event = std::function<absl::Status(std::string_view text)>;

  explicit EventSplitter(std::size_t limit = kMaxEventBytes) : limit_(limit) {}

  /// Calls `event` for each object that ends in `bytes`, and returns the first
  /// error of it.
  ///   ResourceExhausted  an event is larger than the limit; the message names
  ///                      its object as far as it was read
  ///   DataLoss           something between events is no object
  absl::Status Feed(std::string_view bytes, const Event& event);

  /// The stream has ended.
  ///   DataLoss  in the middle of an event
  absl::Status Finish() const;

  /// Bytes of the event that has begun.
  std::size_t buffered() const { return text_.size(); }

 private:
  absl::Status TooLarge() const;

  std::size_t limit_;
  std::string text_;
  JsonNesting nesting_;
};

}  // namespace devmgr::apiserver
