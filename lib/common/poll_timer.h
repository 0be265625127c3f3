// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>

#include "common/poller.h"
#include "common/unique_fd.h"

namespace devmgr {

/// One timer on a poller's thread, which has none of its own. Set and Clear
/// may be called from any thread.
class PollTimer {
 public:
  /// `on_due` runs on the thread of `poller`, which is borrowed.
  static absl::StatusOr<std::unique_ptr<PollTimer>> Start(
      Poller& poller, std::function<void()> on_due);
  ~PollTimer() { Stop(); }

  /// After this returns, `on_due` does not run and will not. Setting it has no
  /// effect any more, and the poller may go.
  void Stop();

  /// Due once, in `delay`, at once if that is 0 or less; instead of what was
  /// set before.
  void Set(std::chrono::nanoseconds delay);
  void Clear();

 private:
  PollTimer(Poller& poller, UniqueFd timer);

  Poller& poller_;
  const UniqueFd timer_;
  Poller::WatchId watch_ = 0;
};

}  // namespace devmgr
