// SPDX-License-Identifier: Apache-2.0
//
// Whether a plugin is there to stay. One that comes and goes too often is put
// into quarantine: it is listened to, but not trusted with allocations, until
// it has held out for a while.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

namespace devmgr::plugin {

struct FlapOptions {
  int max_losses = 5;  ///< Within `window`.
  std::chrono::milliseconds window{60'000};
  /// Begins anew with each loss, doubled.
  std::chrono::milliseconds first_quarantine{60'000};
  std::chrono::milliseconds last_quarantine{600'000};
};

/// The history of one endpoint of a resource, over all connections to it.
class FlapGuard {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit FlapGuard(FlapOptions options) : options_(options) {}

  /// A connection that had told its devices is lost.
  void OnLost(TimePoint now);

  /// Nothing when it is trusted.
  std::optional<TimePoint> QuarantinedUntil(TimePoint now) const;
  /// There is nothing to remember.
  bool IsBlank(TimePoint now) const;

 private:
  const FlapOptions options_;
  std::deque<TimePoint> losses_;  ///< The last `max_losses`.
  std::optional<TimePoint> until_;
  std::chrono::milliseconds last_length_{0};
};

}  // namespace devmgr::plugin
