// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/export.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr {

/// Objects that are kept in the database of the ledger, beside its records:
/// texts under keys, which the ledger does not know and does not decide about.
/// What is written here goes past the queue of decisions.
///
/// Shared with the manager that has opened the database, and may outlive it:
/// then every call fails. Thread-safe. Calls block for the disk.
class DEVMGR_EXPORT ObjectSpace {
 public:
  virtual ~ObjectSpace() = default;

  struct Change {
    std::string key;                   ///< Not empty.
    std::optional<std::string> value;  ///< Nothing: the object is gone.
  };
  /// Makes all changes, in order, or none. They are on disk on return.
  ///   InvalidArgument  a key is empty
  ///   Unavailable      the database is not open to write: it is still being
  ///                    loaded, or the manager is gone; or the disk failed.
  ///                    After that the changes may or may not be there once the
  ///                    database is open again, which is tried at once and with
  ///                    each later call.
  virtual absl::Status Write(std::span<const Change> changes) = 0;

  struct Object {
    std::string key;
    std::string value;
  };
  /// `most` objects whose keys come after `after`, at most, in the order of
  /// their keys. All keys come after the empty one.
  ///   DataLoss     an object cannot be read
  ///   Unavailable  as Write
  virtual absl::StatusOr<std::vector<Object>> Read(std::string_view after,
                                                   std::size_t most) = 0;
};

}  // namespace devmgr
