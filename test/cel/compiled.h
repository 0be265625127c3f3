// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>
#include <variant>

#include "cel/checker.h"
#include "cel/environment.h"
#include "cel/parser.h"
#include "cel/plan.h"
#include "cel/source.h"

namespace devmgr::cel {

/// `text` parsed and checked, or the first problem.
inline std::variant<Checked, Problem> CheckText(
    std::string_view text, const Environment& environment) {
  auto ast = Parse(text, environment.parse);
  if (auto* problem = std::get_if<Problem>(&ast)) return std::move(*problem);
  return Check(std::get<Ast>(std::move(ast)), environment);
}

/// The plan of `text`, or the first problem.
inline std::variant<Plan, Problem> PlanText(std::string_view text,
                                            const Environment& environment) {
  auto checked = CheckText(text, environment);
  if (auto* problem = std::get_if<Problem>(&checked)) {
    return std::move(*problem);
  }
  return MakePlan(std::get<Checked>(checked));
}

}  // namespace devmgr::cel
