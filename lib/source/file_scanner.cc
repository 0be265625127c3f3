// SPDX-License-Identifier: Apache-2.0
#include "source/file_scanner.h"

#include <devmgr/cel.h>
#include <devmgr/manifests.h>
#include <fmt/core.h>

#include <functional>
#include <string_view>
#include <utility>

namespace devmgr::source {

void FileScanner::Begin() {
  total_bytes_ = 0;
  needs_retry_ = false;
}

void FileScanner::KeepOnly(const std::set<std::string>& names) {
  std::erase_if(known_, [&names](const auto& entry) {
    return names.count(entry.first) == 0;
  });
}

std::optional<Finding> FileScanner::Examine(
    int directory, const std::string& name,
    const ChangeTracker::Changes& changes, const ChangeTracker& tracker) {
  Finding finding;
  finding.keys.push_back({"", name});
  for (FilePlace& place : FollowLinks(directory, directory_, name)) {
    // An entry of our own directory has no other watcher.
    const bool is_own = place.directory == directory_;
    finding.keys.push_back(
        {is_own ? "" : place.directory.string(), std::move(place.name)});
  }
  if (tracker.IsBeingWritten(finding.keys)) {
    finding.being_written = true;
    return finding;
  }
  std::optional<FileSignature> signature;
  if (!changes.Touch(finding.keys)) signature = known_[name].signature;
  FileReading reading =
      ReadManifest(directory, name, signature, options_.max_file_bytes);
  switch (reading.kind) {
    case FileReading::Kind::kGone:
    case FileReading::Kind::kIgnored:
      return std::nullopt;
    case FileReading::Kind::kFailed:
    case FileReading::Kind::kUnsettled:
      needs_retry_ = true;
      [[fallthrough]];
    case FileReading::Kind::kDangling:
    case FileReading::Kind::kUnusable:
      Fault(name, std::move(reading.problem), finding);
      return finding;
    case FileReading::Kind::kUnchanged:
    case FileReading::Kind::kText:
      break;
  }
  total_bytes_ += static_cast<std::size_t>(reading.signature.size);
  if (total_bytes_ > options_.max_total_bytes) {
    Fault(name,
          fmt::format("the manifests up to this one hold {} bytes, more than "
                      "the {} that are read",
                      total_bytes_, options_.max_total_bytes),
          finding);
    return finding;
  }
  finding.unchanged = reading.kind == FileReading::Kind::kUnchanged;
  finding.signature = reading.signature;
  if (!finding.unchanged) Decode(name, reading.text, finding);
  return finding;
}

void FileScanner::Fault(const std::string& name, std::string problem,
                        Finding& finding) const {
  ManifestProblem fault;
  fault.file = set_.PathOf(name);
  fault.message = std::move(problem);
  finding.problems.push_back(std::move(fault));
}

void FileScanner::Decode(const std::string& name, const std::string& text,
                         Finding& finding) {
  if (IsBlank(text)) {
    return Fault(name, "is empty; perhaps not written yet", finding);
  }
  Known& known = known_[name];
  const std::size_t hash = std::hash<std::string_view>()(text);
  if (known.content != nullptr && known.text_hash == hash &&
      known.text_size == text.size()) {
    finding.content = known.content;
    return;
  }
  DecodedManifest manifest =
      DecodeCheckedManifest(text, set_.PathOf(name), options_.node_name);
  if (!manifest.errors.empty()) {
    finding.problems = std::move(manifest.errors);
    finding.unusable = std::move(manifest.unusable);
    return;
  }
  finding.content = MakeContent(std::move(manifest));
  known.text_hash = hash;
  known.text_size = text.size();
  known.content = finding.content;
}

}  // namespace devmgr::source
