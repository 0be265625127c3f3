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
  absl::Status AppendLater(const JournalEntry& entry) override {
    if (fails) return UnavailableError("the disk is full");
    return files_.AppendLater(entry);
  }
  absl::Status Reserve(std::uint64_t revision) override {
    if (fails) return UnavailableError("the disk is full");
    ++reserved;
    return files_.Reserve(revision);
  }
  absl::Status End(std::uint64_t last_revision) override {
    return is_killed ? absl::OkStatus() : files_.End(last_revision);
  }
  absl::StatusOr<JournalContent> Replay() override { return files_.Replay(); }

  bool fails = false;      ///< Set while no request is under way.
  bool is_killed = false;  ///< The process ends before it says so.
  int reserved = 0;        ///< How often.

 private:
  FileJournal files_;
};

}  // namespace devmgr::endpoint
