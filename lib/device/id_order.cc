// SPDX-License-Identifier: Apache-2.0
#include "device/id_order.h"

#include <algorithm>
#include <cstddef>

#include "common/ascii.h"

namespace devmgr::device {
namespace {

/// The run of digits that `at` is in or just behind; empty when there is none.
std::string_view NumberAround(std::string_view text, std::size_t at) {
  std::size_t begin = at;
  while (begin > 0 && IsDigit(text[begin - 1])) --begin;
  std::size_t end = at;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return text.substr(begin, end - begin);
}

std::string_view WithoutZeros(std::string_view number) {
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

bool IdLess(std::string_view a, std::string_view b) {
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < size && a[at] == b[at]) ++at;
  std::string_view x = NumberAround(a, at);
  std::string_view y = NumberAround(b, at);
  if (!x.empty() && !y.empty()) {
    x = WithoutZeros(x);
    y = WithoutZeros(y);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  return a < b;
}

}  // namespace devmgr::device
