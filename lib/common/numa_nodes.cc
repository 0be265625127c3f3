// SPDX-License-Identifier: Apache-2.0
#include "common/numa_nodes.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace devmgr {
namespace {

std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || number < 0) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::optional<std::vector<std::int64_t>> ParseNumberList(std::string_view text,
                                                         std::size_t most) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t dash = item.find('-');
    const auto first = Number(item.substr(0, dash));
    const auto last = dash == item.npos ? first : Number(item.substr(dash + 1));
    const bool ascends = first.has_value() && last.has_value() &&
                         *first <= *last &&
                         (numbers.empty() || numbers.back() < *first);
    if (!ascends ||
        *last - *first >= static_cast<std::int64_t>(most - numbers.size())) {
      return std::nullopt;
    }
    for (std::int64_t n = *first; n <= *last; ++n) numbers.push_back(n);
  }
  return numbers;
}

}  // namespace devmgr
