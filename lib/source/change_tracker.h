// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "watcher/directory_watcher.h"

namespace devmgr::source {

/// An entry of a watched directory. The directory is empty for the source's
/// own one; an empty name stands for every entry.
struct EntryKey {
  std::string directory;
  std::string name;
  friend auto operator<=>(const EntryKey&, const EntryKey&) = default;
};

/// What the watchers reported and no scan has looked at yet, and which files
/// have a writer. Bounded. Not thread-safe.
class ChangeTracker {
 public:
  static constexpr std::size_t kMaxEntries = 20'000;

  struct Changes {
    /// Entries came, went or were exchanged: what was listed may be a mixture
    /// of before and after.
    bool shape = false;
    std::set<EntryKey> touched;

    bool any() const { return shape || !touched.empty(); }
    /// True when a file that is reached through these entries may differ.
    bool Touch(const std::vector<EntryKey>& keys) const;
  };

  /// Entries that matter beside manifest names in the source's own directory:
  /// what its links lead to.
  void SetLinkTargets(std::set<EntryKey> targets);

  void Note(const std::string& directory, const watcher::DirectoryEvent& event);

  const Changes& pending() const { return pending_; }
  Changes Take();

  /// True while a process that wrote to one of the entries has not closed it.
  bool IsBeingWritten(const std::vector<EntryKey>& keys) const;
  /// After a kRescan it is not known whether the writers seen before are still
  /// there. They are trusted until `ForgetDoubtful`.
  bool HasDoubtful() const;
  void ForgetDoubtful();

 private:
  enum class Writer { kSeen, kDoubtful };

  bool Matters(const EntryKey& key) const;
  void NoteRescan(const std::string& directory);
  void Touch(const EntryKey& key);

  std::set<EntryKey> link_targets_;
  Changes pending_;
  std::map<EntryKey, Writer> writers_;
};

}  // namespace devmgr::source
