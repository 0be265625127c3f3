// SPDX-License-Identifier: Apache-2.0
#include "api/tree_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/quote.h"

namespace devmgr::api {
namespace {

/// About what a Value costs beside its text.
constexpr std::size_t kValueWeight = 128;

}  // namespace

bool TreeBuilder::Fail(int line, std::string message) {
  if (error_.empty()) {
    error_ = std::move(message);
    error_line_ = line;
  }
  return false;
}

bool TreeBuilder::Charge(std::size_t weight, int line) {
  weight_ += weight;
  if (weight_ <= kMaxWeight) return true;
  return Fail(line, fmt::format("too much content: more than {} MiB when all "
                                "values and aliases are laid out",
                                kMaxWeight >> 20));
}

bool TreeBuilder::AddScalar(Value value, AnchorId anchor) {
  const int line = value.line;
  value.weight = kValueWeight + value.text.size();
  if (!Charge(value.weight, line)) return false;
  auto added = std::make_shared<const Value>(std::move(value));
  if (anchor != 0) anchors_[anchor] = added;
  return Add(std::move(added), line);
}

bool TreeBuilder::AddAlias(AnchorId anchor, int line) {
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) {
    return Fail(line, "an alias refers to a value that contains it");
  }
  // The anchor's own levels count here as well: chains of aliases must not
  // build what could not be written out.
  const ValuePtr value = found->second;
  if (static_cast<int>(stack_.size()) + value->height > kMaxDepth) {
    return Fail(line, fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  return Charge(value->weight, line) && Add(value, line);
}

bool TreeBuilder::BeginList(int line, AnchorId anchor) {
  return Begin(Value::Kind::kList, line, anchor);
}

bool TreeBuilder::BeginMap(int line, AnchorId anchor) {
  return Begin(Value::Kind::kMap, line, anchor);
}

bool TreeBuilder::Begin(Value::Kind kind, int line, AnchorId anchor) {
  if (!error_.empty()) return false;
  if (stack_.size() >= kMaxDepth) {
    return Fail(line, fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  if (!Charge(kValueWeight, line)) return false;
  auto value = std::make_shared<Value>();
  value->kind = kind;
  value->line = line;
  value->weight = kValueWeight;
  value->height = 1;
  stack_.push_back({std::move(value), anchor, std::nullopt, {}});
  return true;
}

bool TreeBuilder::End() {
  if (!error_.empty()) return false;
  if (stack_.empty()) return Fail(0, "unbalanced end of a list or map");
  Frame frame = std::move(stack_.back());
  stack_.pop_back();
  const int line = frame.value->line;
  for (const ValuePtr& source : frame.merged) {
    Merge(*frame.value, *source);
  }
  if (frame.anchor != 0) anchors_[frame.anchor] = frame.value;
  return Add(std::move(frame.value), line);
}

ValuePtr TreeBuilder::TakeDocument() {
  anchors_.clear();
  stack_.clear();
  return std::exchange(root_, nullptr);
}

bool TreeBuilder::Add(ValuePtr value, int line) {
  if (!error_.empty()) return false;
  if (stack_.empty()) {
    root_ = std::move(value);
    return true;
  }
  Frame& frame = stack_.back();
  if (frame.value->kind == Value::Kind::kMap && !frame.key) {
    return AddKey(frame, *value, line);
  }
  frame.value->weight += value->weight;
  frame.value->height = std::max(frame.value->height, value->height + 1);
  if (frame.value->kind == Value::Kind::kList) {
    frame.value->items.push_back(std::move(value));
    return true;
  }
  return AddMember(frame, std::move(value), line);
}

bool TreeBuilder::AddKey(Frame& frame, const Value& key, int line) {
  switch (key.kind) {
    case Value::Kind::kNull:
    case Value::Kind::kList:
    case Value::Kind::kMap:
      return Fail(line, "a key must be a string");
    default:
      break;
  }
  frame.value->weight += key.weight;
  frame.key = Key{key.text, line, key.is_merge_key};
  return true;
}

bool TreeBuilder::AddMember(Frame& frame, ValuePtr value, int line) {
  Key key = *std::exchange(frame.key, std::nullopt);
  if (key.is_merge) return AddMerged(frame, value, line);
  const auto [at, is_new] = frame.value->members.try_emplace(
      std::move(key.text), Member{std::move(value), key.line});
  if (is_new) return true;
  return Fail(key.line,
              fmt::format("key {} is already there in line {}{}",
                          Quoted(at->first), at->second.line,
                          stack_.size() == 1 ? "; is a '---' missing?" : ""));
}

bool TreeBuilder::AddMerged(Frame& frame, const ValuePtr& value, int line) {
  std::vector<ValuePtr> sources = {value};
  if (value->kind == Value::Kind::kList) sources = value->items;
  for (const ValuePtr& source : sources) {
    if (source->kind != Value::Kind::kMap) {
      return Fail(line, "'<<' takes a map or a list of maps");
    }
    frame.merged.push_back(source);
  }
  return true;
}

void TreeBuilder::Merge(Value& target, const Value& source) {
  // What is merged was charged when the alias was met; what the map itself
  // writes, and earlier sources, come first.
  for (const auto& [key, member] : source.members) {
    target.members.try_emplace(key, member);
  }
}

}  // namespace devmgr::api
