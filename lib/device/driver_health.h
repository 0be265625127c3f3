// SPDX-License-Identifier: Apache-2.0
//
// What a DRA driver says of the health of its devices. A report counts for a
// while only, and may be about some of the devices.
#pragma once

#include <devmgr/persistent_map.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"

namespace devmgr::device {

/// A device of a driver.
using PoolDevice = std::pair<std::string, std::string>;

/// What a driver says of one device.
struct DeviceReport {
  PoolDevice device;
  Health health = Health::kUnknown;
  std::string message;
  std::int64_t lease_ms = 0;  ///< How long it counts; not positive: 30 s.
};

/// What holds for a device now; of one without reports, the default.
struct EffectiveHealth {
  Health health = Health::kUnknown;
  std::string message;
  std::int64_t lease_ms = 0;
  std::int64_t since_ms = 0;  ///< Of health and message; Unix time.
  friend bool operator==(const EffectiveHealth&,
                         const EffectiveHealth&) = default;
};

/// What an earlier process heard last of a device.
struct KeptReport {
  EffectiveHealth health;
  std::string boot_id;       ///< Boot in which its lease began.
  std::int64_t told_ms = 0;  ///< When it began, since that boot.
};

/// Why a kept report counts no more in this boot, `boot_ms` after it began, for
/// people; empty: the rest of its lease is left. Nothing is known of what
/// happened before a boot.
std::string WhyOver(const KeptReport& report, const std::string& boot_id,
                    std::int64_t boot_ms);

/// One moment on two clocks: leases must not jump with the time of day.
struct Moment {
  std::int64_t steady_ms = 0;
  std::int64_t unix_ms = 0;
};

/// The health of the devices of one driver. What ends with its lease is
/// forgotten, which is to be Unknown. Thread-bound; a copy costs nothing that
/// grows with it, and may be read on another thread.
class DriverHealth {
 public:
  static constexpr std::int64_t kDefaultLeaseMs = 30'000;
  static constexpr std::int64_t kMaxLeaseMs = 366LL * 24 * 3600 * 1000;
  static constexpr std::size_t kMaxMessageBytes = 1024;
  /// A driver that makes up ever new names does not fill the memory: beyond
  /// this only devices that are known count.
  static constexpr std::size_t kMaxDevices = 8'192;

  using Devices = std::set<PoolDevice>;

  /// Takes a report in; of a device that is in it twice, the last one. Returns
  /// the devices whose health, message or lease is another than what held
  /// until now, those among them whose lease has ended.
  Devices Report(const std::vector<DeviceReport>& report, Moment now);

  /// Forgets what counts no more. Returns those that were not Unknown.
  Devices Expire(std::int64_t steady_ms);

  /// The driver tells nothing any more. Returns as Expire does.
  Devices Clear();

  /// As it was when we were last here; its lease began at `told_ms`.
  void Restore(const PoolDevice& device, EffectiveHealth health,
               std::int64_t told_ms);

  /// When the lease began that counts now for a device; nothing: none does.
  std::optional<std::int64_t> ToldAt(const PoolDevice& device,
                                     std::int64_t steady_ms) const;

  EffectiveHealth Find(const PoolDevice& device, std::int64_t steady_ms) const;

  /// When the first lease has ended.
  std::optional<std::int64_t> NextExpiry() const;

  std::size_t size() const { return records_.size(); }

 private:
  struct Record {
    EffectiveHealth health;
    std::int64_t told_ms = 0;  ///< Steady.
    bool Counts(std::int64_t steady_ms) const {
      return steady_ms - told_ms <= health.lease_ms;
    }
  };
  /// Forgets what counts no more, of devices that `spared` does not have.
  template <typename Map>
  Devices Drop(std::int64_t steady_ms, const Map& spared);

  PersistentMap<PoolDevice, Record> records_;
};

}  // namespace devmgr::device
