// SPDX-License-Identifier: Apache-2.0
#include "cel/qualify.h"

#include <cmath>
#include <limits>
#include <optional>

#include "api/quote.h"

namespace devmgr::cel {
namespace {

/// A key as messages show it: text is not quoted.
std::string Shown(const Value& key) {
  constexpr std::size_t kLimit = 80;
  return key.Is<String>() ? api::Readable(key.text(), kLimit) : Describe(key);
}

/// The whole number that `key` is, whatever its type; nothing for another key.
std::optional<std::int64_t> WholeIndex(const Value& key) {
  if (const auto* i = key.As<std::int64_t>()) return *i;
  if (const auto* u = key.As<std::uint64_t>()) {
    if (*u <=
        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(*u);
    }
  }
  if (const auto* d = key.As<double>()) {
    if (std::trunc(*d) == *d && std::fabs(*d) < 9.0e18) {
      return static_cast<std::int64_t>(*d);
    }
  }
  return std::nullopt;
}

Value LookUpElement(const ListObject& list, const Value& key,
                    bool may_be_missing, bool& present) {
  const std::optional<std::int64_t> index = WholeIndex(key);
  if (!index) {
    return Value::Failed("unsupported index type '" + TypeName(*TypeOf(key)) +
                         "' in list");
  }
  if (*index >= 0 && *index < static_cast<std::int64_t>(list.elements.size())) {
    present = true;
    return list.elements[static_cast<std::size_t>(*index)];
  }
  if (may_be_missing) return Value();
  return Value::Failed("index out of bounds: " + std::to_string(*index));
}

}  // namespace

Value LookUp(const Value& value, const Value& key, bool may_be_missing,
             bool strict, bool& present) {
  present = false;
  if (const auto* list = value.As<List>()) {
    return LookUpElement(**list, key, may_be_missing, present);
  }
  if (const auto* map = value.As<Map>()) {
    const Value* found = (*map)->Find(key);
    if (found == nullptr) found = (*map)->fallback.get();
    if (found != nullptr) {
      present = true;
      return *found;
    }
  }
  if (may_be_missing && (value.Is<Map>() || !strict)) return Value();
  return Value::Failed("no such key: " + Shown(key));
}

}  // namespace devmgr::cel
