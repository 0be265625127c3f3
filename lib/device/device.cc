// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

namespace devmgr::device {

std::string_view HealthName(Health health) {
  switch (health) {
    case Health::kHealthy:
      return "Healthy";
    case Health::kUnhealthy:
      return "Unhealthy";
    case Health::kUnknown:
      break;
  }
  return "Unknown";
}

}  // namespace devmgr::device
