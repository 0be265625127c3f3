// SPDX-License-Identifier: Apache-2.0
#include "cel/function.h"

#include <algorithm>
#include <array>
#include <utility>

namespace devmgr::cel {
namespace {

/// Reads `string.(int, list(A)) -> bool` and `(string, int) -> bool`.
void ReadSignature(std::string_view signature, Overload& overload) {
  const std::size_t arrow = signature.find(" -> ");
  overload.result = ParseType(signature.substr(arrow + 4));
  std::string_view rest = signature.substr(0, arrow);
  if (const std::size_t dot = rest.find(".("); dot != rest.npos) {
    overload.is_member = true;
    overload.params.push_back(ParseType(rest.substr(0, dot)));
    rest.remove_prefix(dot + 1);
  }
  rest = rest.substr(1, rest.size() - 2);
  while (!rest.empty()) {
    int depth = 0;
    std::size_t end = 0;
    for (; end < rest.size() && (rest[end] != ',' || depth > 0); ++end) {
      depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
    }
    overload.params.push_back(ParseType(rest.substr(0, end)));
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
}

// Functions of the libraries `url`, `ip`, `cidr`, `format` and `authorizer`.
// Kubernetes has them in all its environments, but they are of no use in a
// selector, which sees nothing but a device.
constexpr std::array<std::string_view, 36> kUnsupported = {
    "url",
    "isURL",
    "getScheme",
    "getHost",
    "getHostname",
    "getPort",
    "getEscapedPath",
    "getQuery",
    "ip",
    "isIP",
    "ip.isCanonical",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "cidr",
    "isCIDR",
    "containsIP",
    "containsCIDR",
    "masked",
    "prefixLength",
    "format.named",
    "validate",
    "path",
    "serviceAccount",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "check",
    "allowed",
    "fieldSelector",
    "labelSelector"};

}  // namespace

Library::Library(std::initializer_list<std::span<const FunctionRow>> tables) {
  for (const std::span<const FunctionRow> table : tables) {
    for (const FunctionRow& row : table) {
      FunctionDeclaration& function = functions_[std::string(row.name)];
      function.name = std::string(row.name);
      Overload& overload = function.overloads.emplace_back();
      overload.id = std::string(row.overload);
      overload.run = row.run;
      ReadSignature(row.signature, overload);
    }
  }
}

const FunctionDeclaration* Library::Find(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

const Library& KubernetesLibrary() {
  static const Library library{OperatorFunctions(),   ComparisonFunctions(),
                               ConversionFunctions(), TimeFunctions(),
                               StringFunctions(),     RegexFunctions(),
                               ListFunctions(),       SetFunctions(),
                               OptionalFunctions(),   KubernetesFunctions()};
  return library;
}

bool IsUnsupportedFunction(std::string_view name) {
  return std::find(kUnsupported.begin(), kUnsupported.end(), name) !=
         kUnsupported.end();
}

bool ChoosesByValue(std::string_view function) {
  constexpr std::string_view kOperators = "_!-";
  return kOperators.find(function.front()) != std::string_view::npos ||
         function == "@in" || function == "matches" || function == "size" ||
         function == "sort" || function == "@sortByAssociatedKeys";
}

Value NoSuchOverload(std::string_view function) {
  return Value::Failed("no such overload: " + std::string(function));
}

Value WorkIsOver() {
  return Value::Failed("the expression works on values that are too large");
}

Value MakeList(const Args& args, std::vector<Value> elements) {
  if (!args.work.SpendOnValues(elements.size())) return WorkIsOver();
  return Value::ListOf(std::move(elements));
}

Value MakeText(const Args& args, std::string text) {
  if (!args.work.SpendOnText(text.size())) return WorkIsOver();
  return Value::Text(std::move(text));
}

}  // namespace devmgr::cel
