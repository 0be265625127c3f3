// SPDX-License-Identifier: Apache-2.0
#include "cdi/spec_problems.h"

#include <string>
#include <vector>

#include "common/status.h"

namespace devmgr::cdi {
namespace {

constexpr std::size_t kMaxInFull = 10;
constexpr std::size_t kMaxBytes = 4'000;

}  // namespace

absl::Status StatusOf(api::Problems& problems) {
  const std::size_t count = problems.error_count();
  if (count == 0) return absl::OkStatus();
  std::string text;
  std::size_t told = 0;
  for (const ManifestProblem& problem : problems.TakeErrors()) {
    if (told == kMaxInFull || text.size() > kMaxBytes) break;
    if (told > 0) text += "; ";
    text += problem.ToString();
    ++told;
  }
  if (told < count) text += fmt::format("; and {} more", count - told);
  return MakeStatus(absl::StatusCode::kInvalidArgument, text);
}

}  // namespace devmgr::cdi
