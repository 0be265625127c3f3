// SPDX-License-Identifier: Apache-2.0
#include "testing/scenario.h"

#include <algorithm>
#include <utility>

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;

/// Actions that change what is said about a claim, not the whole call.
bool IsAboutClaims(Action action) {
  switch (action) {
    case Action::kFailClaim:
    case Action::kTooLittle:
    case Action::kGarbageNames:
      return true;
    default:
      return false;
  }
}

bool FitsMethod(const ScenarioStep& step, std::string_view method) {
  if (step.method == method) return true;
  return step.method == "any" && (method == "prepare" || method == "unprepare");
}

/// The claims of the call that the step names.
std::vector<std::size_t> NamedClaims(const ScenarioStep& step,
                                     const std::vector<std::string>& claims) {
  std::vector<std::size_t> named;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (step.claim == claims[i]) named.push_back(i);
  }
  return named;
}

}  // namespace

std::string_view NameOf(Action action) {
  switch (action) {
    case Action::kDelay:
      return "delay";
    case Action::kFail:
      return "fail";
    case Action::kFailClaim:
      return "fail-claim";
    case Action::kHang:
      return "hang";
    case Action::kTooLittle:
      return "too-little";
    case Action::kUnknownClaim:
      return "unknown-claim";
    case Action::kGarbageNames:
      return "garbage-names";
    case Action::kCrashBefore:
      return "crash-before";
    case Action::kCrashAfter:
      return "crash-after";
    case Action::kDropSocket:
      return "drop-socket";
    case Action::kReRegister:
      return "re-register";
  }
  return "";
}

Scenario::Scenario(std::vector<ScenarioStep> steps) {
  for (ScenarioStep& step : steps) Add(std::move(step));
}

void Scenario::Add(ScenarioStep step) {
  const int left = std::max(step.times, 0);
  entries_.push_back({std::move(step), left});
}

std::vector<TakenStep> Scenario::Take(std::string_view method,
                                      const std::vector<std::string>& claims) {
  std::vector<TakenStep> taken;
  std::vector<std::size_t> covered;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const ScenarioStep& step = entry->step;
    std::vector<std::size_t> named = NamedClaims(step, claims);
    const bool about_claims = IsAboutClaims(step.action);
    bool fits =
        FitsMethod(step, method) && (step.claim.empty() || !named.empty());
    if (about_claims && named.empty() && !claims.empty()) {
      named.push_back(claims.size() - 1);
    }
    fits = fits && (about_claims || taken.empty()) &&
           std::none_of(named.begin(), named.end(), [&](std::size_t claim) {
             return std::count(covered.begin(), covered.end(), claim) > 0;
           });
    if (!fits) {
      ++entry;
      continue;
    }
    if (!about_claims) named.clear();
    covered.insert(covered.end(), named.begin(), named.end());
    taken.push_back({step, std::move(named)});
    const bool used_up = entry->step.times > 0 && --entry->left == 0;
    entry = used_up ? entries_.erase(entry) : entry + 1;
    if (!about_claims) break;
  }
  return taken;
}

}  // namespace devmgr::testing
