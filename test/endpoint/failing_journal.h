// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <utility>

#include "common/status.h"
#include "endpoint/file_journal.h"

namespace devmgr::endpoint {

/// A journal of files, on a disk that may be full.
class FailingJournal final : public Journal {
 public:
  explicit FailingJournal(std::filesystem::path folder)
      : files_(std::move(folder)) {}

  absl::Status Append(const JournalEntry& entry) override {
    if (fails) return UnavailableError("the disk is full");
    return files_.Append(entry);
  }
  absl::StatusOr<JournalContent> Replay() override { return files_.Replay(); }

  bool fails = false;  ///< Set while no request is under way.

 private:
  FileJournal files_;
};

}  // namespace devmgr::endpoint
