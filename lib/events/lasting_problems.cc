// SPDX-License-Identifier: Apache-2.0
#include "events/lasting_problems.h"

namespace devmgr::events {

void LastingProblems::Set(std::set<Problem> current) {
  DEVMGR_ASSERT_ON(executor_);
  current_ = std::move(current);
  std::erase_if(reported_, [this](const Problem& problem) {
    return !current_.contains(problem);
  });
  if (timer_ != 0 || reported_.size() == current_.size()) return;
  timer_ = executor_.PostAfter(kDelay, [this] {
    timer_ = 0;
    Report();
  });
}

void LastingProblems::Report() {
  for (const Problem& problem : current_) {
    if (!reported_.insert(problem).second) continue;
    events_.Add(true, reason_, object_kind_, {"", problem.first},
                problem.second);
  }
}

}  // namespace devmgr::events
