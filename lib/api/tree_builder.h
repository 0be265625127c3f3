// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/value.h"

namespace devmgr::api {

/// Levels of lists and maps; Kubernetes objects need about 15.
inline constexpr int kMaxDepth = 100;
/// Weight of all documents of a text together, aliases expanded: about half a
/// million values.
inline constexpr std::size_t kMaxWeight = std::size_t{64} << 20;

/// Makes Values out of a parser's events, within limits. Maps take keys and
/// values in turn. Every call returns false once something is wrong; `error`
/// then says what, and the builder is spent. An instance serves all documents
/// of one text. Thread-bound.
class TreeBuilder {
 public:
  /// Names an anchor of YAML; 0 is none.
  using AnchorId = std::size_t;

  bool AddScalar(Value value, AnchorId anchor = 0);
  bool AddAlias(AnchorId anchor, int line);
  bool BeginList(int line, AnchorId anchor = 0);
  bool BeginMap(int line, AnchorId anchor = 0);
  bool End();

  /// The finished document; nullptr when there was nothing. Anchors do not
  /// reach into the next one.
  ValuePtr TakeDocument();

  const std::string& error() const { return error_; }
  int error_line() const { return error_line_; }

  bool Fail(int line, std::string message);

 private:
  struct Key {
    std::string text;
    int line = 0;
    bool is_merge = false;
  };
  struct Frame {
    std::shared_ptr<Value> value;
    AnchorId anchor = 0;
    std::optional<Key> key;
    std::vector<ValuePtr> merged;
  };

  bool Begin(Value::Kind kind, int line, AnchorId anchor);
  bool Add(ValuePtr value, int line);
  bool AddKey(Frame& frame, const Value& key, int line);
  bool AddMember(Frame& frame, ValuePtr value, int line);
  bool AddMerged(Frame& frame, const ValuePtr& value, int line);
  static void Merge(Value& target, const Value& source);
  bool Charge(std::size_t weight, int line);

  std::vector<Frame> stack_;
  ValuePtr root_;
  std::map<AnchorId, ValuePtr> anchors_;
  std::size_t weight_ = 0;
  std::string error_;
  int error_line_ = 0;
};

}  // namespace devmgr::api
