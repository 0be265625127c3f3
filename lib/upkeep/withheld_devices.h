// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/executor.h"
#include "device/driver_health.h"
#include "device/probation.h"
#include "state/records.h"

namespace devmgr::upkeep {

/// Devices of DRA drivers that did not work, and have not worked for long
/// enough since: where this node allocates, no claim gets them. One timer per
/// driver, while one of its devices works again. Lives on the manager's thread.
class WithheldDevices {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    std::function<device::Probation::Rules(const std::string& driver)> rules;
    /// These devices of the driver, as `pool/device`, are withheld no more.
    std::function<void(const std::string& driver,
                       const std::vector<std::string>& devices)>
        on_offered;
  };
  explicit WithheldDevices(Parts parts) : parts_(std::move(parts)) {}
  ~WithheldDevices();
  WithheldDevices(const WithheldDevices&) = delete;
  WithheldDevices& operator=(const WithheldDevices&) = delete;

  /// The health of a device is another.
  void Note(const std::string& driver, const device::PoolDevice& device,
            device::Health health);

  /// Those that work are offered from now on: one, as `pool/device`, or all of
  /// the driver. Gives those that were withheld.
  std::vector<std::string> Recheck(const std::string& driver,
                                   const std::string& device);

  /// Those of a driver, as `pool/device`; null: it has none. Valid until the
  /// next change.
  const device::Probation* Find(const std::string& driver) const;

  /// All of them.
  std::set<state::DeviceKey> All() const;
  /// Rises with each change of All.
  std::uint64_t version() const { return version_; }

 private:
  void Offer(const std::string& driver,
             const std::vector<std::string>& devices);
  void Arm(const std::string& driver);
  std::int64_t SteadyMs() const;

  const Parts parts_;
  std::map<std::string, device::Probation> drivers_;
  std::map<std::string, TimerId> timers_;
  std::uint64_t version_ = 0;
};

}  // namespace devmgr::upkeep
