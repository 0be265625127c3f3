// SPDX-License-Identifier: Apache-2.0
#include "source/api/event_splitter.h"

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMaxIdleBytes = std::size_t{64} << 10;

}  // namespace

absl::Status EventSplitter::Feed(std::string_view bytes, const Event& event) {
  while (!bytes.empty()) {
    if (nesting_.depth() == 0) {
      if (IsJsonSpace(bytes.front())) {
        bytes.remove_prefix(1);
        continue;
      }
      if (bytes.front() != '{') {
        return DataLossError("the watch sent {} where an event was to begin",
                             api::Quoted(bytes.substr(0, 40)));
      }
    }
    const std::string_view part = bytes.substr(0, nesting_.Take(bytes));
    bytes.remove_prefix(part.size());
    if (text_.size() + part.size() > limit_) {
      text_.append(part.substr(0, limit_ + 1 - text_.size()));
      return TooLarge();
    }
    const bool is_whole = text_.empty() && nesting_.depth() == 0;
    if (!is_whole) text_.append(part);
    if (nesting_.depth() > 0) return absl::OkStatus();
    DEVMGR_RETURN_IF_ERROR(event(is_whole ? part : text_));
    text_.clear();
    // Its room is given back after a large event.
    if (text_.capacity() > kMaxIdleBytes) text_.shrink_to_fit();
  }
  return absl::OkStatus();
}

absl::Status EventSplitter::Finish() const {
  if (nesting_.depth() == 0) return absl::OkStatus();
  return DataLossError("the watch ended after {} bytes of an event of {}",
                       text_.size(),
                       DescribeObject(FindMember(text_, "object")));
}

absl::Status EventSplitter::TooLarge() const {
  return ResourceExhaustedError("the event of {} exceeds {} bytes",
                                DescribeObject(FindMember(text_, "object")),
                                limit_);
}

}  // namespace devmgr::apiserver
