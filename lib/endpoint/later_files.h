// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <utility>

#include "endpoint/journal.h"

namespace devmgr::endpoint {

/// Entries of Journal::AppendLater, in a file each that is written in one step
/// and not synced:
///
///   FOLDER/GROUP/RESOURCE/NAMESPACE/NAME   revision, checksum of the JSON,
///                                          new line, JSON
///
/// What a power failure has left of a file is passed over. Lives on one thread.
class LaterFiles {
 public:
  explicit LaterFiles(std::filesystem::path folder)
      : folder_(std::move(folder)) {}

  ///   InvalidArgument  a key that is no path of an object
  ///   Unavailable      as the kernel says
  absl::Status Put(const JournalEntry& entry) const;
  absl::Status Remove(const std::string& key) const;

  /// Adds the entries whose keys `content` does not have.
  ///   Unavailable  as the kernel says
  absl::Status AddTo(JournalContent& content) const;

 private:
  const std::filesystem::path folder_;
};

}  // namespace devmgr::endpoint
