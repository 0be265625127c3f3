// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "source/change_tracker.h"
#include "source/file_source.h"
#include "source/manifest_reader.h"
#include "source/manifest_set.h"

namespace devmgr::source {

/// What a scan found out about one file.
struct Finding {
  std::vector<EntryKey> keys;  ///< The entries it is reached through.
  std::optional<FileSignature> signature;
  std::shared_ptr<const ManifestContent> content;
  std::vector<ManifestProblem> problems;  ///< When there is no content.
  std::vector<ObjectProblem> unusable;    ///< The same.
  bool unchanged = false;                 ///< Nothing to do.
  bool being_written = false;
};

/// Reads and decodes the files of one directory, and remembers what it takes
/// not to do that again while a file is the same. Not thread-safe.
class FileScanner {
 public:
  /// All of it is borrowed; of `set` only the names of files for people.
  FileScanner(const FileSourceOptions& options,
              const std::filesystem::path& directory, const ManifestSet& set)
      : options_(options), directory_(directory), set_(set) {}

  /// A new scan: what follows counts against its limits.
  void Begin();

  /// Looks at the file `name` of the directory that is open as `directory`,
  /// and reads it unless it is known and not among `changes`. Nothing when
  /// there is no such file.
  std::optional<Finding> Examine(int directory, const std::string& name,
                                 const ChangeTracker::Changes& changes,
                                 const ChangeTracker& tracker);

  /// In this scan there was a file of which no event will tell when it can be
  /// read.
  bool needs_retry() const { return needs_retry_; }

  /// What was found is used: the file need not be read again while it has this
  /// signature; without one it is read by the next scan.
  void Remember(const std::string& name,
                const std::optional<FileSignature>& signature) {
    known_[name].signature = signature;
  }

  /// Forgets all other files.
  void KeepOnly(const std::set<std::string>& names);

 private:
  /// What is known about the bytes of a file.
  struct Known {
    std::optional<FileSignature> signature;  ///< See Remember.
    /// The last text that decoded, so that it need not be decoded again and
    /// gives the same objects.
    std::size_t text_hash = 0;
    std::size_t text_size = 0;
    std::shared_ptr<const ManifestContent> content;
  };

  void Decode(const std::string& name, const std::string& text,
              Finding& finding);
  void Fault(const std::string& name, std::string problem,
             Finding& finding) const;

  const FileSourceOptions& options_;
  const std::filesystem::path& directory_;
  const ManifestSet& set_;
  std::map<std::string, Known> known_;
  std::size_t total_bytes_ = 0;  ///< Of this scan.
  bool needs_retry_ = false;
};

}  // namespace devmgr::source
