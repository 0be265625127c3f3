// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <utility>

#include "checkpoint/database_objects.h"
#include "common/status.h"
#include "endpoint/object_journal.h"

namespace devmgr::endpoint {

/// A journal whose objects are in memory, on a disk that may be full.
class FailingJournal final : public Journal {
 public:
  explicit FailingJournal(std::filesystem::path folder)
      : journal_(checkpoint::NewInMemoryObjects(), {std::move(folder)}) {}

  absl::Status Append(const JournalEntry& entry) override {
    if (fails) return UnavailableError("the disk is full");
    const absl::Status status = journal_.Append(entry);
    return loses_answers ? UnavailableError("the disk is gone") : status;
  }
  absl::Status AppendLater(const JournalEntry& entry) override {
    if (fails) return UnavailableError("the disk is full");
    return journal_.AppendLater(entry);
  }
  absl::Status Reserve(std::uint64_t revision) override {
    if (fails) return UnavailableError("the disk is full");
    ++reserved;
    return journal_.Reserve(revision);
  }
  absl::Status End(std::uint64_t last_revision) override {
    return is_killed ? absl::OkStatus() : journal_.End(last_revision);
  }
  absl::StatusOr<JournalContent> Replay() override { return journal_.Replay(); }

  // Set while no request is under way.
  bool fails = false;
  bool loses_answers = false;  ///< What Append writes lands all the same.
  bool is_killed = false;      ///< The process ends before it says so.
  int reserved = 0;            ///< How often.

 private:
  ObjectJournal journal_;
};

}  // namespace devmgr::endpoint
