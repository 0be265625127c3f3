// SPDX-License-Identifier: Apache-2.0
#include "pods/source_problems.h"

#include <set>

namespace devmgr::pods {

void SourceProblems::OnObjects(const ObjectSnapshot& objects) {
  std::set<events::LastingProblems::Problem> problems;
  std::set<events::LastingProblems::Problem> troubles;
  for (ManifestProblem problem : objects.problems) {
    if (problem.of_source) {
      troubles.emplace(source_, problem.ToString());
      continue;
    }
    std::string file = std::exchange(problem.file, {});
    if (file.empty()) file = source_;
    problems.emplace(std::move(file), problem.ToString());
  }
  of_objects_.Set(std::move(problems));
  of_source_.Set(std::move(troubles));
}

}  // namespace devmgr::pods
