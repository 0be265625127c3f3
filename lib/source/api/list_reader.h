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

/// `metadata` of a list; Kubernetes 1.31.0 writes that of slices as `listMeta`.
struct ListMeta {
  std::string resource_version;
  std::string continue_token;
};

/// Reads one page of a list item by item while it comes, in any cut, so that of
/// its text never more than one item is kept. After an error it is spent.
/// Thread-bound.
class ListReader {
 public:
  using Item = std::function<absl::Status(std::string_view text)>;

  struct Limits {
    std::size_t page = kMaxPageBytes;
    std::size_t item = kMaxEventBytes;
  };

  ListReader() : ListReader(Limits()) {}
  explicit ListReader(Limits limits) : limits_(limits) {}

  /// Calls `item` for each item that ends in `bytes`, and returns the first
  /// error of it.
  ///   ResourceExhausted  the page or an item is too large
  ///   DataLoss           this is no list
  absl::Status Feed(std::string_view bytes, const Item& item);

  /// The page has ended.
  ///   DataLoss  before its text did, or it has no resource version
  absl::Status Finish() const;

  /// As far as the text was read.
  const ListMeta& meta() const { return meta_; }
  /// Bytes of the page so far.
  std::size_t bytes() const { return bytes_; }

 private:
  enum class State {
    kStart,   // Before the list's `{`.
    kMember,  // Before a key, a comma or the list's `}`.
    kKey,     // In a key.
    kColon,   // Before its colon.
    kValue,   // Before its value.
    kString,  // In a string that is the value.
    kScalar,  // In another value without parts.
    kNested,  // In a list or an object that is the value.
    kItems,   // Between the items.
    kItem,    // In one.
    kEnd,     // Behind the list.
  };

  absl::Status Take(std::string_view bytes, const Item& item);
  absl::Status TakeMember(char c);
  absl::Status BeginValue(char c);
  absl::Status TakeItems(char c);
  absl::Status TakeItem(std::string_view bytes, const Item& item);
  absl::Status Keep(std::string_view bytes);
  void EndValue();
  absl::Status Unexpected(char c, std::string_view place) const;

  Limits limits_;
  State state_ = State::kStart;
  JsonNesting nesting_;
  bool escaped_ = false;
  std::string key_;
  bool keep_ = false;  // The value is wanted.
  std::string text_;   // Of the value or item that has begun.
  ListMeta meta_;
  std::size_t bytes_ = 0;
};

}  // namespace devmgr::apiserver
