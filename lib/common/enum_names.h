// SPDX-License-Identifier: Apache-2.0
//
// The words for the values of an enumeration, in one table for both directions.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace devmgr {

template <typename Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

template <typename Enum, std::size_t kCount>
class EnumNames {
 public:
  constexpr explicit EnumNames(const std::array<EnumName<Enum>, kCount>& names)
      : names_(names) {}

  /// `fallback` for a value that is none, or that the table leaves out.
  constexpr std::string_view Of(Enum value,
                                std::string_view fallback = {}) const {
    for (const EnumName<Enum>& one : names_) {
      if (one.value == value) return one.name;
    }
    return fallback;
  }

  /// Nothing for a name that is none.
  constexpr std::optional<Enum> Find(std::string_view name) const {
    for (const EnumName<Enum>& one : names_) {
      if (one.name == name) return one.value;
    }
    return std::nullopt;
  }

 private:
  const std::array<EnumName<Enum>, kCount> names_;
};

/// Values of an enumeration from here on, such as an "other" for what a newer
/// version knows, need no name.
inline constexpr std::size_t kMaxNamedEnumerators = 64;

/// Is `kValue` an enumerator? Compilers show it by name then, and by a cast
/// like `(Enum)5` if not.
template <auto kValue>
constexpr bool IsEnumerator() {
  constexpr std::string_view kText = __PRETTY_FUNCTION__;
  constexpr std::string_view kBefore = "kValue = ";
  return kText[kText.find(kBefore) + kBefore.size()] != '(';
}

template <typename Enum>
constexpr std::size_t CountEnumerators() {
  return []<std::size_t... kIndices>(std::index_sequence<kIndices...>) {
    return (std::size_t{0} + ... +
            (IsEnumerator<static_cast<Enum>(kIndices)>() ? 1 : 0));
  }
  (std::make_index_sequence<kMaxNamedEnumerators>());
}

/// The table. It does not compile unless it has all enumerators from 0 to
/// kMaxNamedEnumerators, each once and in ascending order.
template <typename Enum, std::size_t kCount>
consteval EnumNames<Enum, kCount> EnumTable(
    const EnumName<Enum> (&names)[kCount]) {
  std::array<EnumName<Enum>, kCount> table{};
  std::copy(names, names + kCount, table.begin());
  for (std::size_t i = 1; i < kCount; ++i) {
    if (!(table[i - 1].value < table[i].value)) {
      throw "the enumerators are not in ascending order";
    }
  }
  if (kCount != CountEnumerators<Enum>()) throw "an enumerator has no name";
  return EnumNames<Enum, kCount>(table);
}

}  // namespace devmgr
