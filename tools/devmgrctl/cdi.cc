// SPDX-License-Identifier: Apache-2.0
//
// CDI specs on this machine, as runtimes see them. No daemon is asked.
#include <devmgr/cdi_registry.h>
#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cdi_edits.h"
#include "cdi_verdict.h"
#include "commands.h"
#include "listing.h"
#include "text.h"

namespace devmgr::ctl {

// Where lists look for ItemOf.
/// A device as one file defines it.
struct CdiDefinition {
  std::string name;
  const CdiSpecFile* file = nullptr;
  std::string state;                ///< Usable, Shadowed or Conflict.
  std::vector<std::string> others;  ///< Files that make it so.
};

Json ItemOf(const CdiDefinition& definition) {
  Json item = {{"name", definition.name},
               {"state", definition.state},
               {"path", definition.file->path},
               {"priority", definition.file->priority}};
  if (!definition.others.empty()) item["others"] = definition.others;
  return item;
}

namespace {

using Registry = std::shared_ptr<const CdiRegistry>;

/// At what cannot be watched.
constexpr std::chrono::milliseconds kLookEvery{500};

CdiDefinition Judge(const CdiRegistry& registry, const CdiSpecFile& file,
                    std::string name) {
  CdiDefinition definition{std::move(name), &file, "Usable", {}};
  const CdiRegistryDevice* winner = registry.Find(definition.name);
  if (winner != nullptr) {
    if (winner->file == &file) return definition;
    definition.state = "Shadowed";
    definition.others = {winner->file->path};
    return definition;
  }
  for (const CdiConflict& conflict : registry.conflicts()) {
    if (conflict.device != definition.name || !conflict.is_effective) continue;
    definition.state =
        conflict.priority == file.priority ? "Conflict" : "Shadowed";
    definition.others = conflict.paths;
    std::erase(definition.others, file.path);
  }
  return definition;
}

/// By name; what counts first.
std::vector<CdiDefinition> DefinitionsIn(const CdiRegistry& registry) {
  std::vector<CdiDefinition> definitions;
  for (const CdiSpecFile& file : registry.files()) {
    if (file.spec == nullptr) continue;
    for (const CdiSpecDevice& device : file.spec->devices) {
      definitions.push_back(
          Judge(registry, file, file.spec->kind + "=" + device.name));
    }
  }
  std::stable_sort(definitions.begin(), definitions.end(),
                   [](const CdiDefinition& a, const CdiDefinition& b) {
                     if (a.name != b.name) return NaturalLess(a.name, b.name);
                     return a.file->priority > b.file->priority;
                   });
  return definitions;
}

Tone DefinitionTone(const CdiDefinition& definition) {
  if (definition.state == "Conflict") return Tone::kBad;
  return definition.state == "Shadowed" ? Tone::kWarn : Tone::kPlain;
}

const Listing<CdiDefinition> kDefinitions = {
    "CdiDeviceList",
    nullptr,
    {"DEVICE", "STATE", "FILE", "OTHER FILES"},
    {},
    nullptr,
    [](const CdiDefinition& definition) {
      return definition.state == "Usable" ? definition.name : std::string();
    },
    [](const Session&, const CdiDefinition& definition) {
      return Row{definition.name,
                 {definition.state, DefinitionTone(definition)},
                 definition.file->path,
                 Join(definition.others, ", ")};
    },
    [](const Session&, const CdiDefinition&) { return Row{}; }};

absl::Status List(const Session& session) {
  const auto cache = session.OpenCdi();
  if (!cache.ok()) return cache.status();
  const Registry registry = (*cache)->Registry();
  for (const std::string& part : UnusedParts(**cache, *registry)) {
    session.Note(part);
  }
  return ctl::List(session, DefinitionsIn(*registry), kDefinitions);
}

absl::Status Dirs(const Session& session) {
  const auto cache = session.OpenCdi(/*watch=*/true);
  if (!cache.ok()) return cache.status();
  std::vector<Json> items;
  Table table =
      session.MakeTable({"DIRECTORY", "PRIORITY", "FILES", "PROBLEM"});
  for (const CdiDirectoryInfo& info : (*cache)->Directories()) {
    table.Add(
        {info.path.string(),
         fmt::format("{}", info.priority),
         fmt::format("{}", info.files),
         {WithoutPath(info.problem.empty() ? info.watch_problem : info.problem,
                      info.path.string()),
          Tone::kWarn}});
    Json item = {{"path", info.path.string()},
                 {"priority", info.priority},
                 {"files", info.files}};
    if (!info.problem.empty()) item["problem"] = info.problem;
    if (!info.watch_problem.empty()) item["watchProblem"] = info.watch_problem;
    items.push_back(std::move(item));
  }
  if (session.is_document()) {
    PrintDocument(session.out(), ListOf("CdiDirectoryList", std::move(items)),
                  session.options().format);
  } else if (session.options().format == Format::kName) {
    for (const CdiDirectoryInfo& info : (*cache)->Directories()) {
      session.out() << Clean(info.path.string()) << "\n";
    }
  } else {
    session.Print(table);
  }
  return absl::OkStatus();
}

absl::Status Show(const Session& session) {
  const Options& options = session.options();
  const auto cache = session.OpenCdi();
  if (!cache.ok()) return cache.status();
  const Registry registry = (*cache)->Registry();
  const CdiRegistryDevice* device = registry->Find(options.cdi_device);
  if (device == nullptr) {
    return MakeError(absl::StatusCode::kNotFound,
                     registry->ExplainFailedLookup(options.cdi_device));
  }
  const CdiSpec& spec = *device->file->spec;
  if (options.format == Format::kName) {
    session.out() << Clean(device->name) << "\n";
    return absl::OkStatus();
  }
  if (session.is_document()) {
    Json item = {{"name", device->name},
                 {"path", device->file->path},
                 {"priority", device->file->priority},
                 {"cdiVersion", spec.version}};
    if (!device->device->annotations.empty()) {
      item["annotations"] = device->device->annotations;
    }
    item["containerEdits"] = ItemOf(device->device->edits);
    item["specContainerEdits"] = ItemOf(spec.edits);
    PrintDocument(session.out(), DocumentOf("CdiDevice", item), options.format);
    return absl::OkStatus();
  }
  Fields fields(session.color());
  fields.Add("Name", device->name);
  fields.Add("File", device->file->path);
  fields.Add("CDI version", spec.version);
  for (const auto& [key, value] : device->device->annotations) {
    fields.Add("Annotation", fmt::format("{}={}", key, value));
  }
  fields.Print(session.out());
  session.out() << "\n";
  Table table = session.MakeTable({"EDIT", "VALUE", "OF"});
  for (const EditRow& row : RowsOf(spec.edits, options.show_env)) {
    table.Add({row.what, row.value, "all devices of the file"});
  }
  for (const EditRow& row : RowsOf(device->device->edits, options.show_env)) {
    table.Add({row.what, row.value, "the device"});
  }
  table.Print(session.out());
  return absl::OkStatus();
}

/// The same file by two spellings is one.
std::string NormalPath(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

/// Each path once: what a directory has is not judged by itself.
absl::StatusOr<std::vector<Verdict>> JudgeAll(const Session& session) {
  std::vector<std::string> files;
  std::vector<std::string> directories;
  for (const std::string& path : session.options().paths) {
    std::error_code error;
    auto& list =
        std::filesystem::is_directory(path, error) ? directories : files;
    list.push_back(path);
  }
  if (session.options().paths.empty()) {
    directories = session.options().cdi_spec_dirs;
  }
  std::set<std::string> seen;
  std::vector<Verdict> of_directories;
  if (!directories.empty()) {
    CdiCacheOptions options;
    options.watch = false;
    options.directories.clear();
    for (const std::string& directory : directories) {
      if (seen.insert(NormalPath(directory + "/")).second) {
        options.directories.emplace_back(directory);
      }
    }
    const auto cache = session.environment().open_cdi_dirs(options);
    if (!cache.ok()) return cache.status();
    of_directories = JudgeDirectories(**cache, *(*cache)->Registry());
    for (const Verdict& verdict : of_directories) {
      seen.insert(NormalPath(verdict.path));
    }
  }
  std::vector<Verdict> verdicts;
  for (const std::string& file : files) {
    if (!seen.insert(NormalPath(file)).second) continue;
    verdicts.push_back(JudgeFile(session, file));
  }
  std::move(of_directories.begin(), of_directories.end(),
            std::back_inserter(verdicts));
  return verdicts;
}

Json VerdictItem(const Verdict& verdict) {
  Json item = {{"valid", verdict.errors.empty()}};
  if (!verdict.path.empty()) item["path"] = verdict.path;
  if (!verdict.errors.empty()) item["errors"] = verdict.errors;
  if (!verdict.warnings.empty()) item["warnings"] = verdict.warnings;
  return item;
}

void PrintVerdicts(const Session& session,
                   const std::vector<Verdict>& verdicts) {
  if (session.is_document()) {
    std::vector<Json> items;
    for (const Verdict& verdict : verdicts) {
      items.push_back(VerdictItem(verdict));
    }
    PrintDocument(session.out(), ListOf("CdiFileList", std::move(items)),
                  session.options().format);
    return;
  }
  Table table = session.MakeTable({"FILE", "STATE", "MESSAGE"});
  for (const Verdict& verdict : verdicts) {
    const Cell state = !verdict.errors.empty() ? Cell("bad", Tone::kBad)
                       : !verdict.warnings.empty()
                           ? Cell("warning", Tone::kWarn)
                           : Cell("ok", Tone::kGood);
    table.Add({verdict.path, state,
               Join(verdict.errors.empty() ? verdict.warnings : verdict.errors,
                    "; ")});
  }
  session.Print(table);
}

absl::Status Validate(const Session& session) {
  const auto verdicts = JudgeAll(session);
  if (!verdicts.ok()) return verdicts.status();
  PrintVerdicts(session, *verdicts);
  const auto bad = std::count_if(
      verdicts->begin(), verdicts->end(),
      [](const Verdict& verdict) { return !verdict.errors.empty(); });
  if (bad == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("{} of {} {} bad", bad, verdicts->size(),
                               bad == 1 ? "is" : "are"));
}

/// Prints what is different from one look to the next.
class Watcher {
 public:
  explicit Watcher(const Session& session)
      : session_(session),
        table_(session.MakeTable({"EVENT", "DEVICE", "STATE", "FILE"},
                                 {8, 32, 8})) {}

  void Show(const Registry& registry) {
    if (registry == shown_) return;
    const bool is_first = shown_ == nullptr;
    const std::size_t rows_before = rows_;
    std::map<std::pair<std::string, std::string>, Known> now;
    for (const CdiDefinition& definition : DefinitionsIn(*registry)) {
      now[{definition.name, definition.file->path}] = {
          ItemOf(definition), definition.state, definition.file->spec};
    }
    for (const auto& [key, known] : known_) {
      if (!now.contains(key)) Add("DELETED", key, known);
    }
    for (const auto& [key, known] : now) {
      const auto before = known_.find(key);
      if (before == known_.end()) {
        Add("ADDED", key, known);
      } else if (!(before->second == known)) {
        Add("MODIFIED", key, known);
      }
    }
    known_ = std::move(now);
    shown_ = registry;
    if (!is_first && rows_ == rows_before) return;
    if (!session_.is_document()) table_.Print(session_.out());
    session_.out().flush();
    if (session_.environment().on_printed) session_.environment().on_printed();
  }

 private:
  struct Known {
    Json item;
    std::string state;
    /// The cache keeps one value while it means the same.
    std::shared_ptr<const CdiSpec> spec;
    friend bool operator==(const Known& a, const Known& b) {
      return a.spec == b.spec && a.item == b.item;
    }
  };

  void Add(const char* type, const std::pair<std::string, std::string>& key,
           const Known& known) {
    ++rows_;
    if (session_.is_document()) {
      session_.out() << OneLine({{"type", type}, {"object", known.item}})
                     << "\n";
    } else {
      table_.Add({type, key.first, known.state, key.second});
    }
  }

  const Session& session_;
  Table table_;
  Registry shown_;
  std::size_t rows_ = 0;  ///< That were shown so far.
  std::map<std::pair<std::string, std::string>, Known> known_;
};

/// What another thread has to tell.
class Signal {
 public:
  void Tell() {
    const std::lock_guard lock(mutex_);
    is_told_ = true;
    told_.notify_one();
  }
  /// Sleeps until something was told since the last time. False: it was not,
  /// for as long as `limit`.
  bool Wait(std::optional<std::chrono::milliseconds> limit) {
    std::unique_lock lock(mutex_);
    const auto is_told = [this] { return std::exchange(is_told_, false); };
    if (limit.has_value()) return told_.wait_for(lock, *limit, is_told);
    told_.wait(lock, is_told);
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  bool is_told_ = false;
};

/// Tells of each thing that is wrong when it becomes so.
class ProblemTeller {
 public:
  explicit ProblemTeller(const Session& session) : session_(session) {}

  void Tell(const CdiCache& cache, const CdiRegistry& registry) {
    std::set<std::string> now;
    for (const Verdict& verdict : JudgeDirectories(cache, registry)) {
      for (const std::string& error : verdict.errors) {
        now.insert(verdict.path.empty() ? error : verdict.path + ": " + error);
      }
    }
    for (const CdiDirectoryInfo& info : cache.Directories()) {
      if (!info.watch_problem.empty()) now.insert(info.watch_problem);
    }
    for (const std::string& problem : now) {
      if (!told_.contains(problem)) session_.Note(problem);
    }
    told_ = std::move(now);
  }

 private:
  const Session& session_;
  std::set<std::string> told_;
};

/// Where a directory cannot be watched, the cache has to be asked again.
bool IsBlind(const CdiCache& cache) {
  const auto infos = cache.Directories();
  return std::any_of(infos.begin(), infos.end(), [](const auto& info) {
    return !info.watch_problem.empty();
  });
}

/// Sleeps while nothing changes.
absl::Status Watch(const Session& session) {
  Signal changed;  // Outlives the cache, which tells it.
  const auto cache = session.OpenCdi(true);
  if (!cache.ok()) return cache.status();
  (*cache)->Subscribe([&changed] { changed.Tell(); });
  Watcher watcher(session);
  ProblemTeller problems(session);
  const auto& timeout = session.options().timeout;
  const bool has_end = timeout.has_value() && timeout->count() > 0;
  const auto began = session.environment().steady_now();
  bool is_over = false;
  while (!is_over && session.out()) {
    const Registry registry = (*cache)->Registry();
    watcher.Show(registry);
    problems.Tell(**cache, *registry);
    std::optional<std::chrono::milliseconds> left;
    if (has_end) {
      left = *timeout - std::chrono::duration_cast<std::chrono::milliseconds>(
                            session.environment().steady_now() - began);
      if (left->count() <= 0) break;
    }
    const bool is_blind = IsBlind(**cache);
    const auto limit =
        is_blind ? std::min(left.value_or(kLookEvery), kLookEvery) : left;
    is_over = !changed.Wait(limit) && !is_blind;
  }
  (*cache)->Unsubscribe();
  return absl::OkStatus();
}

absl::Status MinVersion(const Session& session) {
  const std::string& path = session.options().paths.front();
  const auto text = session.environment().read_file(path);
  if (!text.ok()) return text.status();
  const auto spec = ParseCdiSpec(*text, path);
  if (!spec.ok()) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     MessageOf(spec.status()));
  }
  const std::string version = MinimumCdiVersion(*spec);
  if (!session.is_document()) {
    session.out() << version << "\n";
    return absl::OkStatus();
  }
  PrintDocument(session.out(),
                DocumentOf("CdiMinimumVersion", {{"path", path},
                                                 {"cdiVersion", spec->version},
                                                 {"minimum", version}}),
                session.options().format);
  return absl::OkStatus();
}

}  // namespace

absl::Status Cdi(const Session& session) {
  switch (session.options().cdi_verb) {
    case CdiVerb::kDirs:
      return Dirs(session);
    case CdiVerb::kList:
      return List(session);
    case CdiVerb::kShow:
      return Show(session);
    case CdiVerb::kValidate:
      return Validate(session);
    case CdiVerb::kWatch:
      return Watch(session);
    case CdiVerb::kMinVersion:
      return MinVersion(session);
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
