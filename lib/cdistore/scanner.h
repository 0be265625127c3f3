// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/cdi_cache.h>
#include <devmgr/cdi_registry.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cdistore/spec_file.h"

namespace devmgr::cdistore {

/// What some directories held when they were looked at.
struct Scan {
  std::vector<CdiSpecFile> files;
  std::vector<std::string> unread;  ///< As CdiRegistry has it.
  struct Directory {
    std::size_t files = 0;
    std::string problem;
    bool is_missing = false;
    bool is_unreadable = false;
  };
  std::vector<Directory> directories;  ///< One for each of the options.
};

/// Reads spec files and remembers them, so that the next time only those are
/// read whose signature differs. Not thread-safe. Blocks for disk.
class Scanner {
 public:
  /// Of `options` the directories and the limits count.
  explicit Scanner(const CdiCacheOptions& options) : options_(options) {}

  Scan Look();

  /// Files that were read so far; for tests and benchmarks.
  std::size_t reads() const { return reads_; }

 private:
  struct Known {
    /// Of the content; nothing: read it again.
    std::optional<FileSignature> signature;
    CdiSpecFile file;
    std::string unread;  ///< Why it could not be read; then `file` is empty.
    std::size_t bytes = 0;
  };
  using KnownFiles = std::map<std::string, Known>;  ///< By path.

  void LookInto(std::size_t index, KnownFiles& now, Scan& scan);
  std::set<std::string> NamesIn(std::size_t index, Scan& scan) const;
  Known Examine(const std::string& path, int priority, const Known* known);

  const CdiCacheOptions options_;
  KnownFiles known_;
  std::size_t total_bytes_ = 0;  ///< Of the files of this look so far.
  std::size_t reads_ = 0;
};

}  // namespace devmgr::cdistore
