// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/mutex.h"
#include "state/records.h"

namespace devmgr::ledger {

/// The published answers of all pods, for readers that must never wait: sharded
/// by pod UID, each shard replaced as a whole. A reader copies one shared_ptr
/// under a mutex that is held for nothing else.
/// Thread-safe.
class ResolveTable {
 public:
  /// Publishes what the record allows: the answer of a pod that is Ready in
  /// this boot, else why there is none.
  void Put(const state::PodRecord& pod, const std::string& boot_id);
  void Erase(const PodUid& uid);
  /// Says why a pod that has no answer has none.
  void Explain(const PodUid& uid, const std::string& why);

  /// Whether anybody was given an answer of the pod since it was first put.
  bool WasRead(const PodUid& uid) const;

  ///   NotFound     the pod is not known
  ///   Unavailable  it has no answer; the message says why
  ///   FailedPrecondition  the container has given its devices back
  absl::StatusOr<std::shared_ptr<const PodDevices>> Find(
      const PodUid& uid) const;
  absl::StatusOr<std::shared_ptr<const ContainerDevices>> Find(
      const PodUid& uid, const ContainerName& container) const;

 private:
  struct Cell {
    std::shared_ptr<const PodDevices> answer;  ///< Null: see `why`.
    std::string name;
    std::string why;
    /// Of the pod, shared by all its cells in turn: a reader may still have an
    /// old one.
    std::shared_ptr<std::atomic<bool>> was_read;
  };
  using Cells = std::unordered_map<PodUid, std::shared_ptr<const Cell>>;
  struct Shard {
    mutable Mutex mutex;
    std::shared_ptr<const Cells> cells DEVMGR_GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 512;

  const Shard& ShardOf(const PodUid& uid) const {
    return shards_[std::hash<PodUid>()(uid) % kShards];
  }
  /// Replaces one cell; null erases it.
  void Replace(const PodUid& uid, std::shared_ptr<const Cell> cell)
      DEVMGR_REQUIRES(writing_);
  std::shared_ptr<const Cell> CellOf(const PodUid& uid) const;

  std::array<Shard, kShards> shards_;
  Mutex writing_;  ///< Held by writers only.
};

}  // namespace devmgr::ledger
