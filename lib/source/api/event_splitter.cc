// SPDX-License-Identifier: Apache-2.0
#include "source/api/event_splitter.h"

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMaxIdleBytes = std::size_t{64} << 10;

}  // namespace

absl::Status EventSplitter::Feed(std::string_view bytes, const Event& event) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (nesting_.depth() == 0) {
      begin = i;
      if (IsJsonSpace(c)) continue;
      if (c != '{') {
        return DataLossError("the watch sent {} where an event was to begin",
                             api::Quoted(bytes.substr(i, 40)));
      }
    }
    const bool ends = nesting_.Take(c);
    if (text_.size() + (i + 1 - begin) > limit_) {
      text_.append(bytes.substr(begin, i + 1 - begin));
      return TooLarge();
    }
    if (!ends) continue;
    if (text_.empty()) {
      DEVMGR_RETURN_IF_ERROR(event(bytes.substr(begin, i + 1 - begin)));
    } else {
      text_.append(bytes.substr(begin, i + 1 - begin));
      DEVMGR_RETURN_IF_ERROR(event(text_));
      text_.clear();
      // Its room is given back after a large event.
      if (text_.capacity() > kMaxIdleBytes) text_.shrink_to_fit();
    }
    begin = i + 1;
  }
  if (nesting_.depth() > 0) text_.append(bytes.substr(begin));
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
