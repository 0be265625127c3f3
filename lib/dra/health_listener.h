// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "device/driver_health.h"

namespace devmgr::dra {

/// Hears what drivers say of the health of their devices, on the executor of
/// the drivers.
class HealthListener {
 public:
  virtual ~HealthListener() = default;
  virtual void OnHealthReport(
      const std::string& driver,
      const std::vector<device::DeviceReport>& report) = 0;
  /// It tells no more for now; `why` is for people.
  virtual void OnHealthLost(const std::string& driver,
                            const std::string& why) = 0;
};

}  // namespace devmgr::dra
