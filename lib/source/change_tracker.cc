// SPDX-License-Identifier: Apache-2.0
#include "source/change_tracker.h"

#include <algorithm>
#include <utility>

#include "source/manifest_reader.h"

namespace devmgr::source {

using EventKind = watcher::DirectoryEvent::Kind;

bool ChangeTracker::Changes::Touch(const std::vector<EntryKey>& keys) const {
  return std::any_of(keys.begin(), keys.end(), [this](const EntryKey& key) {
    return touched.count(key) > 0 || touched.count({key.directory, ""}) > 0;
  });
}

void ChangeTracker::SetLinkTargets(std::set<EntryKey> targets) {
  link_targets_ = std::move(targets);
  std::erase_if(writers_,
                [this](const auto& entry) { return !Matters(entry.first); });
}

void ChangeTracker::Note(const std::string& directory,
                         const watcher::DirectoryEvent& event) {
  if (event.kind == EventKind::kRescan) return NoteRescan(directory);
  const EntryKey key{directory, event.name};
  const bool matters = Matters(key);
  // In the source's own directory any entry may be a part of some link's path,
  // as `..data` is in a mounted ConfigMap.
  if (!matters && !directory.empty()) return;
  if (event.kind == EventKind::kAppeared ||
      event.kind == EventKind::kVanished) {
    pending_.shape = true;
  }
  if (event.kind == EventKind::kWriting) {
    if (matters && writers_.size() < kMaxEntries) {
      writers_[key] = Writer::kSeen;
    }
  } else if (event.kind != EventKind::kAttributes) {
    writers_.erase(key);
  }
  if (matters) Touch(key);
}

void ChangeTracker::NoteRescan(const std::string& directory) {
  pending_.shape = true;
  Touch({directory, ""});
  for (auto& [key, writer] : writers_) {
    if (key.directory == directory) writer = Writer::kDoubtful;
  }
}

ChangeTracker::Changes ChangeTracker::Take() {
  return std::exchange(pending_, Changes());
}

bool ChangeTracker::IsBeingWritten(const std::vector<EntryKey>& keys) const {
  return std::any_of(keys.begin(), keys.end(), [this](const EntryKey& key) {
    return writers_.count(key) > 0;
  });
}

bool ChangeTracker::HasDoubtful() const {
  return std::any_of(writers_.begin(), writers_.end(), [](const auto& entry) {
    return entry.second == Writer::kDoubtful;
  });
}

void ChangeTracker::ForgetDoubtful() {
  for (auto it = writers_.begin(); it != writers_.end();) {
    if (it->second == Writer::kDoubtful) {
      Touch(it->first);
      it = writers_.erase(it);
    } else {
      ++it;
    }
  }
}

bool ChangeTracker::Matters(const EntryKey& key) const {
  return (key.directory.empty() && IsManifestName(key.name)) ||
         link_targets_.count(key) > 0;
}

void ChangeTracker::Touch(const EntryKey& key) {
  if (pending_.touched.size() < kMaxEntries) {
    pending_.touched.insert(key);
    return;
  }
  // Every file has an entry in the source's own directory.
  pending_.touched = {{"", ""}};
  pending_.shape = true;
}

}  // namespace devmgr::source
