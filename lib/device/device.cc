// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include "common/enum_names.h"

namespace devmgr::device {

std::string_view HealthName(Health health) {
  using enum Health;
  static constexpr auto kNames = EnumTable<Health>({
      {kHealthy, "Healthy"},
      {kUnhealthy, "Unhealthy"},
      {kUnknown, "Unknown"},
  });
  return kNames.Of(health, "Unknown");
}

}  // namespace devmgr::device
