// SPDX-License-Identifier: Apache-2.0
//
// How the objects of the endpoint outlive a restart.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace devmgr::endpoint {

/// One object as it is now: `value` is empty when it is gone.
struct JournalEntry {
  std::uint64_t revision = 0;
  std::string key;    ///< `resource.k8s.io/resourceslices//00000-d-n1-abcde`
  std::string value;  ///< JSON.
  /// Of Replay: from AppendLater.
  bool is_later = false;
};

/// What was made durable: of each key the latest entry, in any order. Entries
/// of objects that are gone need not be kept; the revision of the last must be.
struct JournalContent {
  /// No revision up to this one is given again: the last one of an entry, or
  /// the one of Reserve.
  std::uint64_t last_revision = 0;
  std::vector<JournalEntry> entries;
};

/// Where the objects of an endpoint are kept, for example a key space of a
/// database. Called on the thread of the endpoint only, and once before it is
/// started. It outlives the endpoint.
class Journal {
 public:
  virtual ~Journal() = default;

  /// Returns once the entry is durable. The endpoint answers nothing in the
  /// meantime. After an error the entry may or may not be there later; the
  /// client gets a 503.
  virtual absl::Status Append(const JournalEntry& entry) = 0;
  /// For an object that its owner publishes anew after a restart: on return a
  /// kill of the process does not lose the entry, but a power failure may. Its
  /// revision has been reserved. Nothing is appended under this key by Append
  /// before, unless it is gone since.
  virtual absl::Status AppendLater(const JournalEntry& entry) = 0;
  /// On return it is durable that revisions up to this one may have been used.
  virtual absl::Status Reserve(std::uint64_t revision) = 0;
  /// No more is appended. Of what was reserved, only revisions up to this one
  /// were used.
  virtual absl::Status End(std::uint64_t last_revision) = 0;
  /// An error keeps the endpoint from starting.
  virtual absl::StatusOr<JournalContent> Replay() = 0;
};

}  // namespace devmgr::endpoint
