// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace devmgr {

/// One thread that waits for descriptors (epoll). It knows no timers and never
/// wakes up by itself.
/// Thread-safe.
class Poller {
 public:
  using WatchId = std::uint64_t;  ///< 0 is never a watch.
  /// Runs on the poller's thread with the epoll events that came; must not
  /// block. May call Watch and Unwatch.
  using Ready = std::function<void(std::uint32_t events)>;

  static absl::StatusOr<std::unique_ptr<Poller>> Start(const char* name);
  /// Joins the thread. Not to be called from a Ready.
  virtual ~Poller() = default;

  /// Watches `fd` (borrowed; keep it open until Unwatch) for `events`, given
  /// as for epoll_ctl.
  virtual absl::StatusOr<WatchId> Watch(int fd, std::uint32_t events,
                                        Ready ready) = 0;
  /// After this returns, `ready` does not run and will not, unless this is
  /// called from within it. Unknown watches are fine.
  virtual void Unwatch(WatchId watch) = 0;
};

}  // namespace devmgr
