// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "endpoint/journal.h"

namespace devmgr::endpoint {

/// Entries of Journal::AppendLater, in a file each that is written in one step
/// and not synced:
///
///   FOLDER/GROUP/RESOURCE/NAMESPACE/NAME   revision, checksum of the JSON,
///                                          new line, JSON
///   FOLDER/SHA-256 OF THE KEY              the same with the key, new line,
///                                          before the JSON: where a part of
///                                          the key cannot be a name of a file
///
/// What a power failure or a kill has left of a write is removed. Keys are
/// those of objects (CheckObjectKey). Lives on one thread.
class LaterFiles {
 public:
  explicit LaterFiles(std::filesystem::path folder)
      : folder_(std::move(folder)) {}

  ///   Unavailable  as the kernel says
  absl::Status Put(const JournalEntry& entry) const;
  absl::Status Remove(const std::string& key) const;

  /// Adds the entries whose keys `content` does not have.
  ///   Unavailable  as the kernel says
  absl::Status AddTo(JournalContent& content) const;

 private:
  std::filesystem::path PathOf(const std::string& key) const;

  const std::filesystem::path folder_;
};

}  // namespace devmgr::endpoint
