// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace devmgr {

/// A value of an enumeration, or the word of one that this version does not
/// know. A manager has known values only. An inspection client is sent words,
/// and those of a newer daemon may be new: they are kept and shown as they
/// came, and equal no known value.
///
///     if (claim.state == ClaimState::kPrepared) ...
///     std::cout << claim.state.name();
///
/// `kName` has the words; its enumerators begin at 0 and have no gap, and it
/// returns nothing for all other values.
template <typename Enum, std::string_view (*kName)(Enum)>
class OpenEnum {
 public:
  OpenEnum(Enum value)
      : value_(value) {}  // NOLINT(google-explicit-constructor)

  /// The value that has this word; if there is none, the word.
  static OpenEnum OfWord(std::string word) {
    for (int i = 0; !kName(static_cast<Enum>(i)).empty(); ++i) {
      const auto value = static_cast<Enum>(i);
      if (kName(value) == word) return value;
    }
    return OpenEnum(std::move(word));
  }

  /// Nothing when only the word is known.
  std::optional<Enum> known() const {
    const Enum* value = std::get_if<Enum>(&value_);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }

  /// Lives as long as this value.
  std::string_view name() const {
    const Enum* value = std::get_if<Enum>(&value_);
    return value == nullptr ? std::get<std::string>(value_) : kName(*value);
  }

  friend bool operator==(const OpenEnum&, const OpenEnum&) = default;

 private:
  explicit OpenEnum(std::string word) : value_(std::move(word)) {}

  std::variant<Enum, std::string> value_;
};

}  // namespace devmgr
