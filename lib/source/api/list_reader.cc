// SPDX-License-Identifier: Apache-2.0
#include "source/api/list_reader.h"

#include "api/quote.h"
#include "common/status.h"

namespace devmgr::apiserver {
namespace {

constexpr std::size_t kMaxKeyBytes = 1024;

bool IsMetadata(std::string_view key) {
  return key == "metadata" || key == "listMeta";
}

}  // namespace

absl::Status ListReader::Feed(std::string_view bytes, const Item& item) {
  while (!bytes.empty()) {
    // Nearly all of it is within items.
    const bool is_within = state_ == State::kItem || state_ == State::kNested;
    const std::string_view part =
        bytes.substr(0, is_within ? nesting_.Take(bytes) : 1);
    bytes.remove_prefix(part.size());
    bytes_ += part.size();
    if (bytes_ > limits_.page) {
      return ResourceExhaustedError("a page of the list exceeds {} bytes",
                                    limits_.page);
    }
    DEVMGR_RETURN_IF_ERROR(Take(part, item));
  }
  return absl::OkStatus();
}

absl::Status ListReader::Finish() const {
  if (state_ != State::kEnd) {
    return DataLossError("the list ended in the middle, after {} bytes",
                         bytes_);
  }
  if (meta_.resource_version.empty()) {
    return DataLossError("the list has no metadata.resourceVersion");
  }
  return absl::OkStatus();
}

absl::Status ListReader::Take(std::string_view bytes, const Item& item) {
  const char c = bytes.front();  // All of it, but within a value.
  switch (state_) {
    case State::kStart:
      if (IsJsonSpace(c)) return absl::OkStatus();
      if (c != '{') return Unexpected(c, "a list was to begin");
      state_ = State::kMember;
      return absl::OkStatus();
    case State::kMember:
      return TakeMember(c);
    case State::kKey:
      if (c == '"' && !escaped_) {
        state_ = State::kColon;
        return absl::OkStatus();
      }
      escaped_ = c == '\\' && !escaped_;
      if (key_.size() < kMaxKeyBytes) key_ += c;
      return absl::OkStatus();
    case State::kColon:
      if (IsJsonSpace(c)) return absl::OkStatus();
      if (c != ':') return Unexpected(c, "a colon was to follow a key");
      state_ = State::kValue;
      return absl::OkStatus();
    case State::kValue:
      return BeginValue(c);
    case State::kString:
      DEVMGR_RETURN_IF_ERROR(Keep(bytes));
      if (c == '"' && !escaped_) EndValue();
      escaped_ = c == '\\' && !escaped_;
      return absl::OkStatus();
    case State::kScalar:
      if (c != ',' && c != '}' && !IsJsonSpace(c)) return Keep(bytes);
      EndValue();
      return TakeMember(c);
    case State::kNested:
      DEVMGR_RETURN_IF_ERROR(Keep(bytes));
      if (nesting_.depth() == 0) EndValue();
      return absl::OkStatus();
    case State::kItems:
      return TakeItems(c);
    case State::kItem:
      return TakeItem(bytes, item);
    case State::kEnd:
      if (IsJsonSpace(c)) return absl::OkStatus();
      return Unexpected(c, "the list was to end");
  }
  return InternalError("the reader of lists is in no state");
}

absl::Status ListReader::TakeMember(char c) {
  if (IsJsonSpace(c) || c == ',') return absl::OkStatus();
  if (c == '}') {
    state_ = State::kEnd;
    return absl::OkStatus();
  }
  if (c != '"') return Unexpected(c, "a member of the list was to begin");
  key_.clear();
  escaped_ = false;
  state_ = State::kKey;
  return absl::OkStatus();
}

absl::Status ListReader::BeginValue(char c) {
  if (IsJsonSpace(c)) return absl::OkStatus();
  if (key_ == "items" && c == '[') {
    state_ = State::kItems;
    return absl::OkStatus();
  }
  keep_ = IsMetadata(key_);
  text_.clear();
  escaped_ = false;
  if (c == '{' || c == '[') {
    nesting_ = JsonNesting();
    nesting_.Take({&c, 1});
    state_ = State::kNested;
  } else if (c == '"') {
    state_ = State::kString;
  } else if (c == ',' || c == '}' || c == ']') {
    return Unexpected(c, "a value was to begin");
  } else {
    state_ = State::kScalar;
  }
  return Keep({&c, 1});
}

absl::Status ListReader::TakeItems(char c) {
  if (IsJsonSpace(c) || c == ',') return absl::OkStatus();
  if (c == ']') {
    state_ = State::kMember;
    return absl::OkStatus();
  }
  if (c != '{') return Unexpected(c, "an item was to begin");
  text_.assign(1, c);
  nesting_ = JsonNesting();
  nesting_.Take({&c, 1});
  state_ = State::kItem;
  return absl::OkStatus();
}

absl::Status ListReader::TakeItem(std::string_view bytes, const Item& item) {
  text_ += bytes;
  if (text_.size() > limits_.item) {
    return ResourceExhaustedError("{} in the list exceeds {} bytes",
                                  DescribeObject(text_), limits_.item);
  }
  if (nesting_.depth() > 0) return absl::OkStatus();
  state_ = State::kItems;
  return item(text_);
}

absl::Status ListReader::Keep(std::string_view bytes) {
  if (!keep_) return absl::OkStatus();
  text_ += bytes;
  if (text_.size() <= kMaxStatusBytes) return absl::OkStatus();
  return ResourceExhaustedError("{} of the list exceeds {} bytes", key_,
                                kMaxStatusBytes);
}

void ListReader::EndValue() {
  state_ = State::kMember;
  if (!keep_) return;
  // Servers may write both, one of them empty.
  if (std::string version = StringMember(text_, "resourceVersion");
      !version.empty()) {
    meta_.resource_version = std::move(version);
  }
  if (std::string token = StringMember(text_, "continue"); !token.empty()) {
    meta_.continue_token = std::move(token);
  }
}

absl::Status ListReader::Unexpected(char c, std::string_view place) const {
  return DataLossError("{} stands at byte {} of the list, where {}",
                       api::Quoted(std::string_view(&c, 1)), bytes_, place);
}

}  // namespace devmgr::apiserver
