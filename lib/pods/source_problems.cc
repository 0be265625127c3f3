// SPDX-License-Identifier: Apache-2.0
#include "pods/source_problems.h"

#include <set>

namespace devmgr::pods {

void SourceProblems::OnObjects(const ObjectSnapshot& objects) {
  std::set<events::LastingProblems::Problem> problems;
  for (ManifestProblem problem : objects.problems) {
    std::string file = std::exchange(problem.file, {});
    if (file.empty()) file = source_;
    problems.emplace(std::move(file), problem.ToString());
  }
  problems_.Set(std::move(problems));
}

}  // namespace devmgr::pods
