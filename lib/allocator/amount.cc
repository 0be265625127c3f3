// SPDX-License-Identifier: Apache-2.0
#include "allocator/amount.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>

namespace devmgr::allocator {
namespace {

constexpr Amount kUnit = 1'000'000'000;

struct Suffix {
  std::string_view text;
  Amount nanos;
};

/// Largest first. An amount that is a multiple of none of the units of 1024 is
/// written in those of 1000, as upstream does.
constexpr auto kBinary = std::to_array<Suffix>({
    {"Ei", kUnit << 60},
    {"Pi", kUnit << 50},
    {"Ti", kUnit << 40},
    {"Gi", kUnit << 30},
    {"Mi", kUnit << 20},
    {"Ki", kUnit << 10},
});
constexpr auto kDecimal = std::to_array<Suffix>({
    {"E", kUnit * 1'000'000'000'000'000'000},
    {"P", kUnit * 1'000'000'000'000'000},
    {"T", kUnit * 1'000'000'000'000},
    {"G", kUnit * 1'000'000'000},
    {"M", kUnit * 1'000'000},
    {"k", kUnit * 1'000},
    {"", kUnit},
    {"m", 1'000'000},
    {"u", 1'000},
    {"n", 1},
});

template <typename Suffixes>
std::string Write(Amount amount, const Suffixes& suffixes) {
  for (const Suffix& suffix : suffixes) {
    if (amount % suffix.nanos != 0) continue;
    return std::to_string(static_cast<std::int64_t>(amount / suffix.nanos)) +
           std::string(suffix.text);
  }
  return {};
}

std::string Spell(Amount amount, const Quantity& like) {
  if (amount == 0) return "0";
  if (like.text.view().ends_with('i')) {
    std::string text = Write(amount, kBinary);
    if (!text.empty()) return text;
  }
  return Write(amount, kDecimal);
}

}  // namespace

Quantity ToQuantity(Amount amount, const Quantity& like) {
  const Amount most =
      static_cast<Amount>(std::numeric_limits<std::int64_t>::max()) * kUnit;
  if (amount > most) amount = most;
  Quantity quantity;
  quantity.whole = static_cast<std::int64_t>(amount / kUnit);
  quantity.nanos = static_cast<std::int32_t>(amount % kUnit);
  quantity.text = Spell(amount, like);
  return quantity;
}

}  // namespace devmgr::allocator
