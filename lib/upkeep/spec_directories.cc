// SPDX-License-Identifier: Apache-2.0
#include "upkeep/spec_directories.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>
#include <cstddef>
#include <map>
#include <utility>

#include "cdistore/spec_directory.h"
#include "common/status.h"

namespace devmgr::upkeep {

SpecDirectories::SpecDirectories(Executor& executor, events::EventLog& events,
                                 std::vector<std::filesystem::path> directories)
    : executor_(executor),
      names_(cdistore::NamesOf(directories)),
      problems_(executor, events, "CdiSpecProblem", "CdiSpec") {
  // Nothing is there, as in a directory that does not exist.
  std::erase_if(directories, [](const auto& path) { return path.empty(); });
  if (directories.empty()) return;
  disk_ = ThreadExecutor::Start("devmgr-specs");
  disk_->Post([this, directories] { Open(directories); });
}

void SpecDirectories::Open(
    const std::vector<std::filesystem::path>& directories) {
  CdiCacheOptions options;
  options.directories = directories;
  auto cache = CdiCache::Open(std::move(options));
  assert(cache.ok());  // Only options that are wrong fail.
  cache_ = *std::move(cache);
  // Sent from one thread, so that what is newer comes later.
  cache_->Subscribe([this] { disk_->Post([this] { Tell(); }); });
  Tell();
}

void SpecDirectories::Stop() {
  if (disk_ != nullptr) disk_->Stop();
  cache_.reset();
}

void SpecDirectories::Read(std::function<void(const CdiRegistry&)> done) {
  disk_->Post([this, done = std::move(done)] {
    // What is wrong is in the registry as well.
    cache_->Refresh().IgnoreError();
    done(*cache_->Registry());
  });
}

void SpecDirectories::Tell() {
  executor_.Post([this, problems = ProblemsOf(*cache_->Registry())] {
    problems_.Set(problems);
  });
}

std::set<events::LastingProblems::Problem> SpecDirectories::ProblemsOf(
    const CdiRegistry& registry) const {
  std::set<events::LastingProblems::Problem> problems;
  for (const CdiSpecFile& file : registry.files()) {
    if (!file.problem.empty()) problems.emplace(file.path, file.problem);
  }
  // These name what they are about.
  for (const std::string& unread : registry.unread()) {
    problems.emplace(fmt::format("{}", fmt::join(names_, ", ")), unread);
  }
  // Files that are copies of each other have all their devices in common.
  std::map<std::vector<std::string>, std::pair<std::string, std::size_t>>
      clashes;
  for (const CdiConflict& conflict : registry.conflicts()) {
    if (!conflict.is_effective) continue;
    auto& [first, others] =
        clashes.try_emplace(conflict.paths, conflict.ToString(), 0)
            .first->second;
    if (first != conflict.ToString()) ++others;
  }
  for (const auto& [paths, clash] : clashes) {
    const auto& [first, others] = clash;
    problems.emplace(paths.front(),
                     others == 0
                         ? first
                         : fmt::format("{}; {} more device{} likewise", first,
                                       others, others == 1 ? "" : "s"));
  }
  return problems;
}

}  // namespace devmgr::upkeep
