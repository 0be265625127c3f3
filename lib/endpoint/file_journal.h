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
///
/// An empty group is `core`, an empty namespace `_`, which no object has.
/// Lives on one thread.
class FileJournal final : public Journal {
 public:
  explicit FileJournal(std::filesystem::path folder)
      : folder_(std::move(folder)) {}

  ///   InvalidArgument  a key that is no path of an object
  ///   Unavailable      as the kernel says
  absl::Status Append(const JournalEntry& entry) override;
  ///   DataLoss     a file is not what Append wrote; names it
  ///   Unavailable  as the kernel says
  absl::StatusOr<JournalContent> Replay() override;

 private:
  const std::filesystem::path folder_;
};

}  // namespace devmgr::endpoint
