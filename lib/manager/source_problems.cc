// SPDX-License-Identifier: Apache-2.0
#include "manager/source_problems.h"

namespace devmgr::manager {

void SourceProblems::OnObjects(const ObjectSnapshot& objects) {
  current_.clear();
  for (ManifestProblem problem : objects.problems) {
    std::string file = std::exchange(problem.file, {});
    if (file.empty()) file = source_;
    current_.emplace(std::move(file), problem.ToString());
  }
  std::erase_if(reported_, [this](const Problem& problem) {
    return !current_.contains(problem);
  });
  if (timer_ != 0 || reported_.size() == current_.size()) return;
  timer_ = executor_.PostAfter(kDelay, [this] {
    timer_ = 0;
    Report();
  });
}

void SourceProblems::Report() {
  for (const Problem& problem : current_) {
    if (!reported_.insert(problem).second) continue;
    events_.Add(true, "ManifestProblem", "Manifest", {"", problem.first},
                problem.second);
  }
}

}  // namespace devmgr::manager
