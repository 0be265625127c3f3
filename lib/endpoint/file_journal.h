// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "endpoint/journal.h"

namespace devmgr::endpoint {

/// A journal of files, one per object, each written in one step:
///
///   FOLDER/GROUP/RESOURCE/NAMESPACE/NAME   revision, new line, JSON
///   FOLDER/last-revision                   of the last object that went
///   FOLDER/reserved-revision               while it is in use, of Reserve
///   FOLDER-later/GROUP/...                 of AppendLater: revision, checksum
///                                          of the JSON, new line, JSON
///
/// An empty group is `core`, an empty namespace `_`, which no object has. What
/// a power failure has left of a file below FOLDER-later is passed over.
/// Lives on one thread.
class FileJournal final : public Journal {
 public:
  explicit FileJournal(std::filesystem::path folder)
      : folder_(std::move(folder)), later_(folder_.string() + "-later") {}

  ///   InvalidArgument  a key that is no path of an object
  ///   Unavailable      as the kernel says
  absl::Status Append(const JournalEntry& entry) override;
  absl::Status AppendLater(const JournalEntry& entry) override;
  absl::Status Reserve(std::uint64_t revision) override;
  absl::Status End(std::uint64_t last_revision) override;
  ///   DataLoss     a file is not what Append wrote; names it
  ///   Unavailable  as the kernel says
  absl::StatusOr<JournalContent> Replay() override;

 private:
  absl::Status KeepRevision(const char* name, std::uint64_t revision) const;
  absl::Status ReplayFolder(JournalContent& content) const;
  absl::Status ReplayLater(JournalContent& content) const;

  const std::filesystem::path folder_;
  const std::filesystem::path later_;
};

}  // namespace devmgr::endpoint
