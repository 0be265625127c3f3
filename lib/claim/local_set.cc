// SPDX-License-Identifier: Apache-2.0
#include "claim/local_set.h"

#include <algorithm>

namespace devmgr::claim {

device::KeptDevices KeptFrom(
    bool is_local, const PluginDevices& devices, const ResourceName& resource,
    std::int64_t local_set,
    const std::function<bool(const PodUid& holder)>& is_holder_local) {
  std::int64_t held = 0;
  for (const auto& [id, holder] : devices.reservations.Held(resource)) {
    if (is_holder_local(holder.pod)) ++held;
  }
  const std::int64_t due = std::max<std::int64_t>(local_set - held, 0);
  const std::int64_t others =
      is_local ? std::max<std::int64_t>(FreeDevices(devices, resource) - due, 0)
               : due;
  return device::KeptDevices{others, local_set, is_local};
}

}  // namespace devmgr::claim
