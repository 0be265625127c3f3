// SPDX-License-Identifier: Apache-2.0
#include "claim/device_class.h"

#include <cstdint>
#include <limits>

#include "api/meta.h"

namespace devmgr::claim {
namespace {

/// What is not known is older than anything else.
std::int64_t CreatedAt(const DeviceClass& item) {
  return api::UnixSecondsOf(item.metadata.creation_timestamp)
      .value_or(std::numeric_limits<std::int64_t>::min());
}

}  // namespace

std::map<std::string, const DeviceClass*> ClassesByResource(
    const ObjectMap<DeviceClass>& classes) {
  std::map<std::string, const DeviceClass*> owners;
  for (const auto& [name, item] : classes) {  // in order of their names
    if (item->extended_resource_name.empty()) continue;
    const DeviceClass*& owner = owners[item->extended_resource_name];
    if (owner == nullptr || CreatedAt(*owner) < CreatedAt(*item)) {
      owner = item.get();
    }
  }
  return owners;
}

}  // namespace devmgr::claim
