// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <utility>

#include "endpoint/journal.h"

namespace devmgr::endpoint {

/// Where versions before this one kept objects, in a file each:
///
///   FOLDER/GROUP/RESOURCE/NAMESPACE/NAME   revision, new line, JSON
///   FOLDER/last-revision                   of the last object that went
///   FOLDER/reserved-revision               of Journal::Reserve, while in use
class EarlierFiles {
 public:
  explicit EarlierFiles(std::filesystem::path folder)
      : folder_(std::move(folder)) {}

  ///   Unavailable  as the kernel says
  absl::StatusOr<bool> Exist() const;
  ///   DataLoss     a file is not what such a version wrote; names it
  ///   Unavailable  as the kernel says
  absl::StatusOr<JournalContent> Read() const;
  /// All of them go in one step, which lasts on return: not even a power
  /// failure brings some of them back. Also removes what an earlier call that
  /// was interrupted has left.
  absl::Status Remove() const;

 private:
  /// Where they are while they are being removed.
  std::filesystem::path Leftovers() const;

  const std::filesystem::path folder_;
};

}  // namespace devmgr::endpoint
