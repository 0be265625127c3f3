// SPDX-License-Identifier: Apache-2.0
//
// Manifests with their expressions compiled: DecodeCheckedManifest().
#include <devmgr/cel.h>
#include <devmgr/manifests.h>
#include <fmt/core.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "api/expressions.h"
#include "cel/selector.h"

namespace devmgr {
namespace {

using api::ExpressionKind;
using api::ExpressionProblem;

cel::Selector::Kind KindOf(ExpressionKind kind) {
  switch (kind) {
    case ExpressionKind::kSelector:
      break;
    case ExpressionKind::kOldSelector:
      return cel::Selector::Kind::kOldDevice;
    case ExpressionKind::kDerivedAttribute:
      return cel::Selector::Kind::kDerivedAttribute;
  }
  return cel::Selector::Kind::kDevice;
}

std::optional<ExpressionProblem> Compile(const std::string& text,
                                         ExpressionKind kind) {
  CelProblem problem;
  if (cel::Selector::Compile(text, KindOf(kind), &problem).ok()) return {};
  // The type of the whole expression has no place.
  if (problem.line == 0) return ExpressionProblem{problem.message, ""};
  return ExpressionProblem{
      fmt::format("line {}, column {} of the expression: "
                  "{}",
                  problem.line, problem.column, problem.message),
      problem.excerpt};
}

/// Compiles each text of a file once: most claims of a file have the same.
class Checker final : public api::ExpressionChecker {
 public:
  std::optional<ExpressionProblem> Check(std::string_view text,
                                         ExpressionKind kind) override {
    std::pair<ExpressionKind, std::string> key(kind, text);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    auto problem = Compile(key.second, kind);
    if (known_.size() < kMostKept) known_.emplace(std::move(key), problem);
    return problem;
  }

 private:
  static constexpr std::size_t kMostKept = 1000;
  std::map<std::pair<ExpressionKind, std::string>,
           std::optional<ExpressionProblem>>
      known_;
};

}  // namespace

DecodedManifest DecodeCheckedManifest(std::string_view text,
                                      std::string_view file_name,
                                      std::string_view node_name) {
  Checker checker;
  return api::DecodeChecked(text, file_name, node_name, &checker);
}

}  // namespace devmgr
