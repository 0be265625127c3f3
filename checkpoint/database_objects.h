// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/object_space.h>
#include <rocksdb/db.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/mutex.h"

namespace devmgr::checkpoint {

/// Objects in the database of a store, which opens and closes it. Calls on
/// objects come from any thread, beside the store's own: each holds the
/// database open until it returns, and none begins while it is closed.
class DatabaseObjects final : public ObjectSpace {
 public:
  using Failed = std::function<void(const absl::Status&)>;

  /// `check`, after each write: whether what was written can be found again.
  /// Called while the database is open only.
  explicit DatabaseObjects(std::function<absl::Status()> check);

  absl::Status Write(std::span<const Change> changes) override;
  absl::StatusOr<std::vector<Object>> Read(std::string_view after,
                                           std::size_t most) override;

  // Of the store, on one thread at a time.

  /// `db` is used until Suspend or Close has returned.
  void Open(rocksdb::DB& db, Failed failed);
  /// The database is about to be closed and opened again: calls are refused,
  /// and say so to `failed`. Waits for those that are under way.
  void Suspend();
  /// For good; `failed` is called no more.
  void Close();

  /// Whether calls are refused until it is opened anew. From any thread.
  bool failed() const;

 private:
  class Use;

  absl::Status Write(rocksdb::DB& db, std::span<const Change> changes) const;
  /// What a call is refused with; has the database opened again where that is
  /// what it takes.
  absl::Status Refuse();
  void Fail(const absl::Status& why);
  void WaitForUsers() DEVMGR_REQUIRES(mutex_);

  const std::function<absl::Status()> check_;

  mutable Mutex mutex_;
  CondVar left_;
  std::size_t users_ DEVMGR_GUARDED_BY(mutex_) = 0;
  /// Null: closed, or a write has failed.
  rocksdb::DB* db_ DEVMGR_GUARDED_BY(mutex_) = nullptr;
  bool in_doubt_ DEVMGR_GUARDED_BY(mutex_) = false;
  Failed failed_ DEVMGR_GUARDED_BY(mutex_);
};

/// Objects that go with their last user.
std::shared_ptr<ObjectSpace> NewInMemoryObjects();

}  // namespace devmgr::checkpoint
