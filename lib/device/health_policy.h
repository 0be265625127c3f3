// SPDX-License-Identifier: Apache-2.0
//
// Which pods to fail for devices that do not work, and when. A device may
// recover within moments, and a plugin that finds most of its devices broken is
// more likely to be broken itself: no pod is failed in haste.
#pragma once

#include <devmgr/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/inventory.h"
#include "device/reservation_table.h"

namespace devmgr::device {

/// A held device that its plugin calls Unhealthy, or of which nothing is known
/// where that counts the same.
struct FaultyDevice {
  PodUid pod;
  DeviceId id;
  std::int64_t since_ms = 0;
  std::string reason = {};  ///< In the driver's words; may be empty.
  friend bool operator==(const FaultyDevice&, const FaultyDevice&) = default;
};

/// In natural order of IDs. A device of which no plugin tells is among them
/// with `unknown_is_unhealthy` only.
std::vector<FaultyDevice> FaultyDevices(const Inventory& inventory,
                                        const ReservationTable::HeldIds& held,
                                        bool unknown_is_unhealthy = false);

/// Of one resource. Times are Unix time in milliseconds. Thread-bound.
class HealthGuard {
 public:
  /// Between two pods that are failed.
  static constexpr std::int64_t kPauseMs = 10'000;
  /// When most held devices do not work; not again for a while, or a device
  /// that comes and goes would keep it up for ever.
  static constexpr std::int64_t kHoldMs = 60'000;
  static constexpr std::int64_t kHoldAgainMs = 600'000;

  /// A device counts once it has not worked for so long.
  explicit HealthGuard(std::int64_t unhealthy_for_ms)
      : unhealthy_for_ms_(unhealthy_for_ms) {}

  struct Ruling {
    /// To be failed now.
    std::optional<FaultyDevice> fail;
    /// More than half of the held devices, and more than one, do not work:
    /// no pod is failed for a while. Said once.
    bool holds_back = false;
    /// When to ask again, if nothing changes before.
    std::optional<std::int64_t> next_ms;
  };
  /// `held`: how many devices pods hold. A pod is failed once, until none of
  /// its devices is faulty any more.
  Ruling Judge(const std::vector<FaultyDevice>& faulty, std::size_t held,
               std::int64_t now_ms);

 private:
  /// From when on the pod with this device may be failed.
  std::int64_t DueAt(const FaultyDevice& device) const;

  std::int64_t unhealthy_for_ms_;
  std::set<PodUid> failed_;
  /// No pod is failed before.
  std::int64_t not_before_ms_ = 0;
  /// When the last hold began.
  std::optional<std::int64_t> held_since_ms_;
};

}  // namespace devmgr::device
