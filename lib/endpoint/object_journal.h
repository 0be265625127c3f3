// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/object_space.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "endpoint/earlier_files.h"
#include "endpoint/journal.h"
#include "endpoint/later_files.h"

namespace devmgr::endpoint {

/// A journal beside the ledger, in its database:
///
///   GROUP/RESOURCE/NAMESPACE/NAME   revision, new line, JSON
///   last-revision                   revision, new line: of the last object
///                                   that went
///   reserved-revision               the same of Reserve, while it is in use
///
/// What AppendLater keeps is not in the database, which is synced with each
/// write: it is in files (LaterFiles), which are not. Lives on one thread.
class ObjectJournal final : public Journal {
 public:
  struct Options {
    /// Of what versions before this one kept as files, which are taken over:
    /// `FOLDER`. Beside it `FOLDER-later`, of LaterFiles.
    std::filesystem::path folder;
    /// Objects that cannot be read are removed, and said to `log`; else they
    /// are DataLoss.
    bool drops_damaged = false;
    std::function<void(const std::string&)> log;
  };

  /// `space` is never null.
  ObjectJournal(std::shared_ptr<ObjectSpace> space, Options options);

  /// Whether there is, or has been, any object.
  absl::StatusOr<bool> IsUsed();

  ///   InvalidArgument  a key that is none of an object
  ///   Unavailable      as ObjectSpace::Write
  absl::Status Append(const JournalEntry& entry) override;
  absl::Status AppendLater(const JournalEntry& entry) override;
  absl::Status Reserve(std::uint64_t revision) override;
  absl::Status End(std::uint64_t last_revision) override;
  ///   DataLoss     an object is not what Append wrote; names it
  ///   Unavailable  as ObjectSpace::Read
  absl::StatusOr<JournalContent> Replay() override;

 private:
  /// Puts what an earlier version has written as files into the space, in the
  /// place of what is there, and removes the files.
  absl::Status TakeOver();
  absl::Status VisitAll(
      const std::function<absl::Status(const ObjectSpace::Object&)>& visit);
  /// Adds it to `content`; false: it is not as it was written.
  static bool AddTo(JournalContent& content, const ObjectSpace::Object& object);

  const std::shared_ptr<ObjectSpace> space_;
  const Options options_;
  const EarlierFiles earlier_;
  const LaterFiles later_;
};

}  // namespace devmgr::endpoint
