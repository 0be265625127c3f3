// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace devmgr::checkpoint {

/// The real file system, counting what is written to logs, and failing there
/// when told.
class FailingDisk {
 public:
  enum class Failure {
    kNone,
    kAppend,      ///< Nothing is written.
    kTornAppend,  ///< Half of it is written.
    kSync,        ///< All is written, and may or may not be on the disk.
  };
  struct Control {
    std::atomic<Failure> failure = Failure::kNone;
    std::atomic<std::uint64_t> log_bytes = 0;
    std::atomic<std::uint64_t> log_syncs = 0;
    std::atomic<std::uint64_t> reads = 0;  ///< Of tables, at random.
  };

  FailingDisk();
  /// Lives as long as this.
  rocksdb::Env* env() { return env_.get(); }
  void FailWith(Failure failure) { control_->failure = failure; }
  const Control& counters() const { return *control_; }

 private:
  // Shared with the files, which RocksDB may close late.
  std::shared_ptr<Control> control_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace devmgr::checkpoint
