// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/file.h>

#include <utility>

#include "common/unique_fd.h"

namespace devmgr::checkpoint {

/// An open file and the flock(2) on it, if it was taken. The lock goes with
/// this object, also when a process that was forked off has inherited the
/// descriptor: closing ours would leave it locked until that process ends.
class FileLock {
 public:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock() {
    if (fd_.valid()) ::flock(fd_.get(), LOCK_UN);
  }

  /// -1 where nothing is locked.
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
};

}  // namespace devmgr::checkpoint
