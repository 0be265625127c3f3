// SPDX-License-Identifier: Apache-2.0
//
// Whether a peer is there to stay. One that comes and goes too often is put
// into quarantine, until it has held out for a while: it is listened to, but
// others are preferred to it, and it is not trusted with what cannot be taken
// back.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/back_off.h"

namespace devmgr::peer {

struct FlapOptions {
  int max_losses = 5;  ///< Within `window`.
  std::chrono::milliseconds window{60'000};
  /// Begins anew with each loss, doubled.
  std::chrono::milliseconds first_quarantine{60'000};
  std::chrono::milliseconds last_quarantine{600'000};
};

/// The history of one endpoint of a plugin or driver, over all connections to
/// it.
class FlapGuard {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit FlapGuard(FlapOptions options)
      : options_(options),
        quarantines_(options.first_quarantine, options.last_quarantine) {}

  /// A connection over which the peer had done its work is lost.
  void OnLost(TimePoint now);

  /// Nothing when it is trusted.
  std::optional<TimePoint> QuarantinedUntil(TimePoint now) const;
  /// There is nothing to remember.
  bool IsBlank(TimePoint now) const;

 private:
  const FlapOptions options_;
  std::deque<TimePoint> losses_;  ///< The last `max_losses`.
  std::optional<TimePoint> until_;
  BackOff quarantines_;
};

/// The guards of all endpoints, by name of the plugin or driver and by socket:
/// they outlive instances that crash and register again. Keeps those that have
/// something to remember, or are in use.
class FlapGuards {
 public:
  explicit FlapGuards(FlapOptions options) : options_(options) {}

  std::shared_ptr<FlapGuard> Of(const std::string& name,
                                const std::string& endpoint,
                                FlapGuard::TimePoint now);
  std::size_t size() const { return guards_.size(); }

 private:
  const FlapOptions options_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<FlapGuard>>
      guards_;
};

}  // namespace devmgr::peer
