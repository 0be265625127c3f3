// SPDX-License-Identifier: Apache-2.0
#include "api/problems.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "api/quote.h"

namespace devmgr {

std::string ManifestProblem::ToString() const {
  std::string text = file;
  if (line > 0) text += fmt::format("{}{}", text.empty() ? "line " : ":", line);
  if (!text.empty()) text += ": ";
  if (!field.empty()) text += field + ": ";
  return text + message;
}

namespace api {
namespace {

constexpr std::size_t kMaxShownBytes = 1000;

}  // namespace

ManifestProblem Problems::Make(int line, std::string_view field,
                               std::string_view message) const {
  return {file_, line, Readable(field, kMaxShownBytes),
          Readable(message, kMaxShownBytes)};
}

void Problems::Error(int line, std::string_view field, std::string_view message,
                     std::string_view excerpt) {
  Add(errors_, line, field, message, excerpt);
}

void Problems::Warn(int line, std::string_view field, std::string_view message,
                    std::string_view excerpt) {
  Add(warnings_, line, field, message, excerpt);
}

void Problems::Add(List& list, int line, std::string_view field,
                   std::string_view message, std::string_view excerpt) {
  if (++list.count > kMaxProblems) return;
  list.listed.push_back(Make(line, field, message));
  list.listed.back().excerpt = excerpt;
}

std::vector<ManifestProblem> Problems::Take(List& list) const {
  List taken = std::exchange(list, {});
  std::stable_sort(taken.listed.begin(), taken.listed.end(),
                   [](const ManifestProblem& a, const ManifestProblem& b) {
                     return a.line < b.line;
                   });
  if (taken.count > kMaxProblems) {
    taken.listed.push_back(Make(
        0, "", fmt::format("{} more problems", taken.count - kMaxProblems)));
  }
  return std::move(taken.listed);
}

}  // namespace api
}  // namespace devmgr
