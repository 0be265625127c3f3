// SPDX-License-Identifier: Apache-2.0
#include "cdi_verdict.h"

#include <devmgr/cdi_spec.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "text.h"

namespace devmgr::ctl {
namespace {

bool IsUnread(const CdiRegistry& registry, const std::string& problem) {
  const auto& unread = registry.unread();
  return std::find(unread.begin(), unread.end(), problem) != unread.end();
}

}  // namespace

std::string WithoutPath(std::string message, const std::string& path) {
  const std::string quoted = "'" + path + "'";
  const std::size_t at = message.find(quoted);
  if (path.empty() || at == std::string::npos) return message;
  message.erase(at, quoted.size());
  // One of the two blanks around it goes, too.
  if (at > 0 && message[at - 1] == ' ') {
    message.erase(at - 1, 1);
  } else if (at < message.size() && message[at] == ' ') {
    message.erase(at, 1);
  }
  return message;
}

std::vector<Verdict> JudgeDirectories(const CdiCache& cache,
                                      const CdiRegistry& registry) {
  std::vector<Verdict> verdicts;
  for (const CdiSpecFile& file : registry.files()) {
    CdiRegistry::FileProblems problems = registry.ProblemsOf(file);
    verdicts.push_back(
        {file.path, std::move(problems.errors), std::move(problems.warnings)});
  }
  std::vector<std::string> unread = registry.unread();
  for (const CdiDirectoryInfo& info : cache.Directories()) {
    if (info.problem.empty()) continue;
    Verdict verdict{info.path.string(), {}, {}};
    (IsUnread(registry, info.problem) ? verdict.errors : verdict.warnings)
        .push_back(WithoutPath(info.problem, verdict.path));
    verdicts.push_back(std::move(verdict));
    std::erase(unread, info.problem);
  }
  for (std::string& problem : unread) {
    verdicts.push_back({"", {std::move(problem)}, {}});
  }
  return verdicts;
}

Verdict JudgeFile(const Session& session, const std::string& path) {
  const auto text = session.environment().read_file(path);
  if (!text.ok()) {
    return {path, {WithoutPath(MessageOf(text.status()), path)}, {}};
  }
  const auto spec = ParseCdiSpec(*text, "");
  if (!spec.ok()) return {path, {MessageOf(spec.status())}, {}};
  return {path, {}, {}};
}

std::vector<std::string> UnusedParts(const CdiCache& cache,
                                     const CdiRegistry& registry) {
  std::vector<std::string> parts;
  for (const CdiSpecFile& file : registry.files()) {
    if (file.problem.empty()) continue;
    parts.push_back(
        fmt::format("'{}' is no valid CDI spec: {}", file.path, file.problem));
  }
  for (const CdiDirectoryInfo& info : cache.Directories()) {
    if (!info.problem.empty() && !IsUnread(registry, info.problem)) {
      parts.push_back(info.problem);
    }
  }
  return parts;
}

}  // namespace devmgr::ctl
