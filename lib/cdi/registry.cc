// SPDX-License-Identifier: Apache-2.0
#include <devmgr/cdi_registry.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "api/quote.h"
#include "cdi/qualified_name.h"
#include "common/status.h"

namespace devmgr {
namespace {

/// Bytes of a reason.
constexpr std::size_t kMaxProblemBytes = 2'000;

/// All definitions of one device: by priority, the highest first; within one
/// priority by file, in the order given.
using Definitions = std::vector<CdiRegistryDevice>;

bool IsHigher(const CdiRegistryDevice& a, const CdiRegistryDevice& b) {
  return a.file->priority > b.file->priority;
}

/// The first definition's equals in priority, as [begin, end).
Definitions::const_iterator EndOfLevel(const Definitions& definitions,
                                       Definitions::const_iterator begin) {
  return std::find_if(begin, definitions.end(), [&](const auto& definition) {
    return IsHigher(*begin, definition);
  });
}

std::vector<CdiConflict> ConflictsAmong(const std::string& device,
                                        const Definitions& definitions) {
  std::vector<CdiConflict> conflicts;
  for (auto begin = definitions.begin(); begin != definitions.end();) {
    const auto end = EndOfLevel(definitions, begin);
    if (end - begin > 1) {
      CdiConflict conflict;
      conflict.device = device;
      conflict.priority = begin->file->priority;
      conflict.is_effective = begin == definitions.begin();
      for (auto at = begin; at != end; ++at) {
        conflict.paths.push_back(at->file->path);
      }
      conflicts.push_back(std::move(conflict));
    }
    begin = end;
  }
  std::reverse(conflicts.begin(), conflicts.end());
  return conflicts;
}

bool IsLess(const CdiRegistryDevice& device, std::string_view name) {
  return device.name < name;
}

}  // namespace

bool operator==(const CdiSpecFile& a, const CdiSpecFile& b) {
  if (a.path != b.path || a.priority != b.priority || a.problem != b.problem) {
    return false;
  }
  if (a.spec == nullptr || b.spec == nullptr) return a.spec == b.spec;
  return a.spec == b.spec || *a.spec == *b.spec;
}

CdiSpecFile MakeCdiSpecFile(std::string path, int priority,
                            std::string_view text) {
  CdiSpecFile file;
  file.path = std::move(path);
  file.priority = priority;
  absl::StatusOr<CdiSpec> spec = ParseCdiSpec(text, "");
  if (spec.ok()) {
    file.spec = std::make_shared<const CdiSpec>(*std::move(spec));
  } else {
    file.problem = MessageOf(spec.status());
  }
  return file;
}

std::string CdiConflict::ToString() const {
  return fmt::format("conflicting device '{}': defined by {}", device,
                     fmt::join(paths, ", "));
}

CdiRegistry::CdiRegistry(std::vector<CdiSpecFile> files,
                         std::vector<std::string> unread)
    : files_(std::move(files)), unread_(std::move(unread)) {
  std::map<std::string, Definitions> defined;
  for (const CdiSpecFile& file : files_) {
    if (file.spec == nullptr) continue;
    for (const CdiSpecDevice& device : file.spec->devices) {
      std::string name = file.spec->kind + "=" + device.name;
      defined[name].push_back({name, &file, &device});
    }
  }
  devices_.reserve(defined.size());
  for (auto& [name, definitions] : defined) {
    std::stable_sort(definitions.begin(), definitions.end(), IsHigher);
    std::vector<CdiConflict> conflicts = ConflictsAmong(name, definitions);
    if (conflicts.empty() || !conflicts.back().is_effective) {
      devices_.push_back(std::move(definitions.front()));
    }
    std::move(conflicts.begin(), conflicts.end(),
              std::back_inserter(conflicts_));
  }
}

const CdiRegistryDevice* CdiRegistry::Find(std::string_view name) const {
  const auto found =
      std::lower_bound(devices_.begin(), devices_.end(), name, IsLess);
  return found != devices_.end() && found->name == name ? &*found : nullptr;
}

std::string CdiRegistry::ExplainFailedLookup(std::string_view name) const {
  if (const absl::Status status = cdi::CheckQualifiedName(name); !status.ok()) {
    return MessageOf(status);
  }
  for (const CdiConflict& conflict : conflicts_) {
    if (conflict.device == name && conflict.is_effective) {
      return conflict.ToString();
    }
  }
  std::string reason = fmt::format("no CDI spec defines '{}'", name);
  std::vector<std::string> bad;
  for (const CdiSpecFile& file : files_) {
    if (file.spec == nullptr) bad.push_back(file.path);
  }
  if (!bad.empty()) {
    reason += fmt::format("; no valid spec: {}", fmt::join(bad, ", "));
  }
  if (!unread_.empty()) {
    reason += fmt::format("; not read: {}", fmt::join(unread_, ", "));
  }
  return api::Readable(reason, kMaxProblemBytes);
}

std::vector<std::string> CdiRegistry::Vendors() const {
  std::set<std::string> vendors;
  for (const CdiSpecFile& file : files_) {
    if (file.spec == nullptr) continue;
    vendors.insert(file.spec->kind.substr(0, file.spec->kind.find('/')));
  }
  return {vendors.begin(), vendors.end()};
}

std::vector<std::string> CdiRegistry::Classes() const {
  std::set<std::string> classes;
  for (const CdiSpecFile& file : files_) {
    if (file.spec == nullptr) continue;
    classes.insert(file.spec->kind.substr(file.spec->kind.find('/') + 1));
  }
  return {classes.begin(), classes.end()};
}

CdiRegistry::FileProblems CdiRegistry::ProblemsOf(
    const CdiSpecFile& file) const {
  FileProblems problems;
  if (!file.problem.empty()) problems.errors.push_back(file.problem);
  for (const CdiConflict& conflict : conflicts_) {
    if (conflict.priority != file.priority ||
        std::find(conflict.paths.begin(), conflict.paths.end(), file.path) ==
            conflict.paths.end()) {
      continue;
    }
    std::vector<std::string> others = conflict.paths;
    std::erase(others, file.path);
    (conflict.is_effective ? problems.errors : problems.warnings)
        .push_back(fmt::format("conflicting device '{}': also defined by {}",
                               conflict.device, fmt::join(others, ", ")));
  }
  return problems;
}

}  // namespace devmgr
