// SPDX-License-Identifier: Apache-2.0
#include "source/manifest_set.h"

#include <absl/strings/escaping.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "api/quote.h"

namespace devmgr::source {
namespace {

constexpr const char* kKept = "; last good content is kept";

using AnyObject = ManifestContent::AnyObject;
using Entry = ManifestContent::Entry;

struct ObjectKind {
  const char* name;
  /// Two objects of one slot and name are the same object. A malformed pod is
  /// a pod.
  int slot;
};

ObjectKind KindOf(const AnyObject& object) {
  static constexpr ObjectKind kKinds[] = {
      {"Pod", 0},
      {"ResourceClaim", 1},
      {"ResourceClaimTemplate", 2},
      {"DeviceClass", 3},
      {"ResourceSlice", 4},
      {"Node", 5},
      {"DeviceTaintRule", 6},
      {"ResourceClass", 7},
      {"ResourceClassParameters", 8},
      {"ResourceClaimParameters", 9},
      {"ResourceQuota", 10},
      {"Pod", 0},
  };
  static_assert(std::size(kKinds) == std::variant_size_v<AnyObject>);
  return kKinds[object.index()];
}

Entry MakeEntry(DecodedObject decoded) {
  Entry entry;
  entry.line = decoded.line;
  std::visit(
      [&entry](auto& object) {
        using T = std::decay_t<decltype(object)>;
        entry.name = object.metadata.FullName();
        entry.object = std::make_shared<const T>(std::move(object));
      },
      decoded.object);
  return entry;
}

/// Unknown lines come last.
int Order(const Entry& entry) {
  return entry.line > 0 ? entry.line : std::numeric_limits<int>::max();
}

/// Where an object that is in the snapshot came from.
struct Origin {
  std::string file;
  int line = 0;
};

/// Collects objects, first come first served.
class Assembly {
 public:
  explicit Assembly(ObjectSnapshot& snapshot) : snapshot_(snapshot) {}

  /// Null when taken, else who has it.
  const Origin* Take(const Entry& entry, const std::string& file) {
    const auto [it, is_new] =
        origins_.try_emplace({KindOf(entry.object).slot, entry.name});
    if (!is_new) return &it->second;
    it->second = Origin{file, entry.line};
    std::visit([&](const auto& object) { Put(entry.name, object); },
               entry.object);
    return nullptr;
  }

 private:
  void Put(const ObjectName& name, const std::shared_ptr<const Pod>& o) {
    snapshot_.pods.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const ResourceClaim>& o) {
    snapshot_.claims.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const ResourceClaimTemplate>& o) {
    snapshot_.claim_templates.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const DeviceClass>& o) {
    snapshot_.device_classes.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const ResourceSlice>& o) {
    snapshot_.resource_slices.emplace(name, o);
  }
  void Put(const ObjectName& name, const std::shared_ptr<const Node>& o) {
    snapshot_.nodes.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const DeviceTaintRule>& o) {
    snapshot_.device_taint_rules.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const ResourceClass>& o) {
    snapshot_.resource_classes.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const ResourceClassParameters>& o) {
    snapshot_.resource_class_parameters.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const ResourceClaimParameters>& o) {
    snapshot_.resource_claim_parameters.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const ResourceQuota>& o) {
    snapshot_.quotas.emplace(name, o);
  }
  void Put(const ObjectName& name,
           const std::shared_ptr<const MalformedPod>& o) {
    snapshot_.malformed_pods.emplace(name, o);
  }

  ObjectSnapshot& snapshot_;
  std::map<std::pair<int, ObjectName>, Origin> origins_;
};

ManifestProblem Plain(std::string file, std::string message) {
  ManifestProblem problem;
  problem.file = std::move(file);
  problem.message = std::move(message);
  return problem;
}

ManifestProblem Duplicate(const Entry& entry, const std::string& file,
                          const Origin& first) {
  ManifestProblem problem;
  problem.file = file;
  problem.line = entry.line;
  problem.field = "metadata.name";
  problem.message = fmt::format(
      "{} '{}' is in '{}'{} already; only the first by file name counts",
      KindOf(entry.object).name, entry.name.ToString(), first.file,
      first.line > 0 ? fmt::format(" (line {})", first.line) : "");
  return problem;
}

/// Keeps `limit` of them and appends a line that counts the others.
void Cap(std::vector<ManifestProblem>& problems, std::size_t limit,
         const std::string& file) {
  if (problems.size() <= limit) return;
  const std::size_t left_out = problems.size() - limit;
  problems.resize(limit);
  problems.push_back(
      Plain(file, fmt::format("{} more problems are not listed", left_out)));
}

bool SameProblem(const ManifestProblem& a, const ManifestProblem& b) {
  return std::tie(a.file, a.line, a.field, a.message) ==
         std::tie(b.file, b.line, b.field, b.message);
}

bool IsPrintable(const std::string& text) {
  return api::FindInvalidUtf8(text) == std::string::npos &&
         std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

}  // namespace

std::shared_ptr<const ManifestContent> MakeContent(DecodedManifest manifest) {
  auto content = std::make_shared<ManifestContent>();
  content->entries.reserve(manifest.objects.size() +
                           manifest.malformed_pods.size());
  for (DecodedObject& object : manifest.objects) {
    content->entries.push_back(MakeEntry(std::move(object)));
  }
  for (MalformedPod& pod : manifest.malformed_pods) {
    Entry entry;
    entry.name = pod.pod.metadata.FullName();
    entry.line = pod.problem.line;
    entry.object = std::make_shared<const MalformedPod>(std::move(pod));
    content->entries.push_back(std::move(entry));
  }
  std::stable_sort(
      content->entries.begin(), content->entries.end(),
      [](const Entry& a, const Entry& b) { return Order(a) < Order(b); });
  content->warnings = std::move(manifest.warnings);
  return content;
}

ManifestSet::ManifestSet(std::string directory)
    : directory_(std::move(directory)) {}

void ManifestSet::SetListed(const std::set<std::string>& names) {
  unlisted_.clear();
  for (auto& [name, file] : files_) file.listed = names.count(name) > 0;
  for (const std::string& name : names) files_[name].listed = true;
  ForgetDeleted(kMaxDeleted);
}

void ManifestSet::SetUnlisted(std::string problem) {
  unlisted_ = std::move(problem);
}

void ManifestSet::SetDisturbance(std::string problem) {
  disturbance_ = std::move(problem);
}

void ManifestSet::SetMarkerProblem(std::string problem) {
  marker_problem_ = std::move(problem);
}

void ManifestSet::Accept(const std::string& name,
                         std::shared_ptr<const ManifestContent> content) {
  const auto it = files_.find(name);
  if (it == files_.end()) return;
  it->second.good = std::move(content);
  it->second.faults.clear();
  it->second.unusable.clear();
}

void ManifestSet::Reject(const std::string& name,
                         std::vector<ManifestProblem> problems,
                         std::vector<ObjectProblem> unusable) {
  const auto it = files_.find(name);
  if (it == files_.end()) return;
  Cap(problems, kMaxProblemsPerFile, PathOf(name));
  it->second.faults = std::move(problems);
  it->second.unusable = std::move(unusable);
}

void ManifestSet::Reject(const std::string& name, std::string reason) {
  Reject(name,
         std::vector<ManifestProblem>{Plain(PathOf(name), std::move(reason))});
}

void ManifestSet::SetRemark(const std::string& name, std::string remark) {
  const auto it = files_.find(name);
  if (it != files_.end()) it->second.remark = std::move(remark);
}

bool ManifestSet::IsComplete() const {
  return unlisted_.empty() && disturbance_.empty() &&
         std::none_of(files_.begin(), files_.end(), [](const auto& entry) {
           return entry.second.listed && entry.second.good == nullptr;
         });
}

void ManifestSet::ForgetDeleted(std::size_t keep) {
  std::size_t deleted = 0;
  std::erase_if(files_, [&](const auto& entry) {
    const File& file = entry.second;
    if (file.listed) return false;
    return file.good == nullptr || ++deleted > keep;
  });
}

void ManifestSet::AddObjectProblems(const File& file,
                                    std::vector<ObjectProblem>* problems) {
  if (file.faults.empty()) return;
  std::map<std::pair<std::string, ObjectName>, std::string> all;
  for (const ObjectProblem& object : file.unusable) {
    all.try_emplace({object.object_kind, object.object}, object.problem);
  }
  if (file.good != nullptr) {
    const std::string first = file.faults.front().ToString();
    for (const Entry& entry : file.good->entries) {
      all.try_emplace({KindOf(entry.object).name, entry.name}, first)
          .first->second += kKept;
    }
  }
  for (auto& [object, problem] : all) {
    if (problems->size() >= kMaxProblems) return;
    problems->push_back({object.first, object.second, std::move(problem)});
  }
}

ObjectSnapshot ManifestSet::Build() {
  ObjectSnapshot snapshot;
  snapshot.complete = IsComplete();
  if (snapshot.complete) ForgetDeleted(0);

  std::vector<ManifestProblem>& problems = snapshot.problems;
  if (!unlisted_.empty()) problems.push_back(Plain(directory_, unlisted_));
  if (!disturbance_.empty()) {
    problems.push_back(Plain(directory_, disturbance_));
  }
  std::vector<ManifestProblem> stale;    // weigh less than what blocks
  std::vector<ManifestProblem> remarks;  // weigh least
  if (!marker_problem_.empty()) {
    remarks.push_back(Plain(
        directory_, marker_problem_ +
                        "; should it lack more than half of its pods after a "
                        "restart, it is not trusted"));
  }
  Assembly assembly(snapshot);
  for (const auto& [name, file] : files_) {
    if (!file.listed) continue;
    const std::string path = PathOf(name);
    if (file.unseen()) problems.push_back(Plain(path, "not read yet"));
    AddObjectProblems(file, &snapshot.object_problems);
    for (ManifestProblem fault : file.faults) {
      if (file.good != nullptr) fault.message += kKept;
      (file.good != nullptr ? stale : problems).push_back(std::move(fault));
    }
    if (!file.remark.empty()) remarks.push_back(Plain(path, file.remark));
    if (file.good == nullptr) continue;
    for (const Entry& entry : file.good->entries) {
      const Origin* first = assembly.Take(entry, path);
      if (first != nullptr) remarks.push_back(Duplicate(entry, path, *first));
    }
    remarks.insert(remarks.end(), file.good->warnings.begin(),
                   file.good->warnings.end());
  }
  // Deleted files come last: what they held may have moved to another file.
  for (const auto& [name, file] : files_) {
    if (file.listed || file.good == nullptr) continue;
    const std::string path = PathOf(name);
    bool serves = false;
    for (const Entry& entry : file.good->entries) {
      serves |= assembly.Take(entry, path) == nullptr;
    }
    if (!serves) continue;
    stale.push_back(
        Plain(path, fmt::format("not in the directory any more{}", kKept)));
  }
  problems.insert(problems.end(), stale.begin(), stale.end());
  problems.insert(problems.end(), remarks.begin(), remarks.end());
  Cap(problems, kMaxProblems, directory_);
  return snapshot;
}

std::string ManifestSet::PathOf(const std::string& name) const {
  return directory_ + "/" + Printable(name);
}

bool SameSnapshot(const ObjectSnapshot& a, const ObjectSnapshot& b) {
  return a.complete == b.complete && a.watch == b.watch &&
         a.marker == b.marker && a.marker_problem == b.marker_problem &&
         a.pods == b.pods && a.claims == b.claims &&
         a.claim_templates == b.claim_templates &&
         a.device_classes == b.device_classes &&
         a.resource_slices == b.resource_slices && a.nodes == b.nodes &&
         a.device_taint_rules == b.device_taint_rules &&
         a.resource_classes == b.resource_classes &&
         a.resource_class_parameters == b.resource_class_parameters &&
         a.resource_claim_parameters == b.resource_claim_parameters &&
         a.quotas == b.quotas && a.malformed_pods == b.malformed_pods &&
         a.object_problems == b.object_problems &&
         std::equal(a.problems.begin(), a.problems.end(), b.problems.begin(),
                    b.problems.end(), SameProblem);
}

void ShareWith(const ObjectSnapshot& before, ObjectSnapshot* snapshot) {
  const auto share = [](const auto& old, auto* objects) {
    auto shared = old;
    objects->VisitChangesSince(old, [&](const auto* was, const auto* is) {
      if (is != nullptr) {
        shared.insert_or_assign(is->first, is->second);
      } else {
        shared.erase(was->first);
      }
    });
    *objects = std::move(shared);
  };
  share(before.pods, &snapshot->pods);
  share(before.malformed_pods, &snapshot->malformed_pods);
  share(before.claims, &snapshot->claims);
  share(before.claim_templates, &snapshot->claim_templates);
  share(before.device_classes, &snapshot->device_classes);
  share(before.resource_slices, &snapshot->resource_slices);
  share(before.nodes, &snapshot->nodes);
  share(before.device_taint_rules, &snapshot->device_taint_rules);
  share(before.resource_classes, &snapshot->resource_classes);
  share(before.resource_class_parameters, &snapshot->resource_class_parameters);
  share(before.resource_claim_parameters, &snapshot->resource_claim_parameters);
  share(before.quotas, &snapshot->quotas);
}

std::string Printable(const std::string& text) {
  return IsPrintable(text) ? text : absl::CHexEscape(text);
}

}  // namespace devmgr::source
