// SPDX-License-Identifier: Apache-2.0
//
// Two lines, each of which may be a quantity: what is read can be written and
// read again, and any two have an order.
#include <cstdint>
#include <string>
#include <string_view>

#include "allocator/amount.h"
#include "api/quantity.h"
#include "common/status.h"
#include "fuzz/fuzz.h"

namespace {

using devmgr::Quantity;
using devmgr::api::Compare;
using devmgr::api::ParseQuantity;
using devmgr::fuzz::Require;

void RequireSameAmount(const Quantity& a, const Quantity& b,
                       const char* sentence) {
  Require(a == b && Compare(a, b) == 0, sentence);
}

void CheckOne(const Quantity& quantity, std::string_view text) {
  Require(quantity.text.view() == text, "the text is kept");
  Require(devmgr::api::QuantityText(quantity) == text, "the text is written");
  Require(quantity.nanos > -1'000'000'000 && quantity.nanos < 1'000'000'000,
          "less than one is left beside the whole");
  Require(quantity.whole == 0 || quantity.nanos == 0 ||
              (quantity.whole < 0) == (quantity.nanos < 0),
          "both parts have one sign");
  Quantity computed = quantity;
  computed.text = {};
  const auto decimal = ParseQuantity(devmgr::api::QuantityText(computed));
  Require(decimal.ok(), "a computed quantity can be read");
  RequireSameAmount(*decimal, quantity, "a computed quantity is the same");
  const auto amount = devmgr::allocator::AmountOf(quantity);
  RequireSameAmount(devmgr::allocator::ToQuantity(amount, quantity), quantity,
                    "an amount has the same quantity");
  Require(devmgr::api::IsNegative(quantity) == (amount < 0),
          "an amount has the same sign");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  const std::string_view lines[] = {
      text.substr(0, end), end == text.npos ? "" : text.substr(end + 1)};
  Quantity read[2];
  for (int i = 0; i < 2; ++i) {
    const auto quantity = ParseQuantity(lines[i]);
    if (!quantity.ok()) {
      devmgr::fuzz::RequireReadable(devmgr::MessageOf(quantity.status()));
      return 0;
    }
    CheckOne(*quantity, lines[i]);
    read[i] = *quantity;
  }
  const auto order = Compare(read[0], read[1]);
  Require((order == 0) == (read[0] == read[1]), "equal is as the order says");
  Require(0 <=> order == Compare(read[1], read[0]),
          "the order is the other way round from the other side");
  Require(order == (devmgr::allocator::AmountOf(read[0]) <=>
                    devmgr::allocator::AmountOf(read[1])),
          "amounts have the same order");
  return 0;
}
