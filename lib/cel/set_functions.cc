// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "cel/compare.h"
#include "cel/function.h"

namespace devmgr::cel {
namespace {

bool Has(const Args& args, std::size_t list, const Value& wanted) {
  const std::vector<Value>& elements = args.As<List>(list)->elements;
  return std::any_of(
      elements.begin(), elements.end(),
      [&](const Value& element) { return Equal(element, wanted, args.work); });
}

/// Whether each element of the list `part` is in the list `whole`.
bool HasAll(const Args& args, std::size_t whole, std::size_t part) {
  const std::vector<Value>& elements = args.As<List>(part)->elements;
  return std::all_of(
      elements.begin(), elements.end(),
      [&](const Value& element) { return Has(args, whole, element); });
}

Value Finish(const Args& args, bool result) {
  return args.work.IsOver() ? WorkIsOver() : Value::Bool(result);
}

Value Contains(const Args& args) { return Finish(args, HasAll(args, 0, 1)); }
Value Equivalent(const Args& args) {
  return Finish(args, HasAll(args, 0, 1) && HasAll(args, 1, 0));
}
Value Intersects(const Args& args) {
  const std::vector<Value>& elements = args.As<List>(0)->elements;
  return Finish(args, std::any_of(elements.begin(), elements.end(),
                                  [&](const Value& element) {
                                    return Has(args, 1, element);
                                  }));
}

constexpr std::string_view kSetSignature = "(list(A), list(A)) -> bool";
constexpr auto kSetRows = std::to_array<FunctionRow>({
    {"sets.contains", "list_sets_contains_list", kSetSignature, Contains},
    {"sets.equivalent", "list_sets_equivalent_list", kSetSignature, Equivalent},
    {"sets.intersects", "list_sets_intersects_list", kSetSignature, Intersects},
});

}  // namespace

std::span<const FunctionRow> SetFunctions() { return kSetRows; }

}  // namespace devmgr::cel
