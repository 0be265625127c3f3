// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include <devmgr/status_types.h>

namespace devmgr::device {

DeviceHealth PublicOf(Health health) {
  switch (health) {
    case Health::kHealthy:
      return DeviceHealth::kHealthy;
    case Health::kUnhealthy:
      return DeviceHealth::kUnhealthy;
    case Health::kUnknown:
      return DeviceHealth::kUnknown;
  }
  return DeviceHealth::kUnknown;
}

}  // namespace devmgr::device
