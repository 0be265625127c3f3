// SPDX-License-Identifier: Apache-2.0
#include "lookup.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "objects.h"
#include "text.h"

namespace devmgr::ctl {

absl::StatusOr<std::vector<ClaimInfo>> FindClaims(Inspector& inspector,
                                                  const ObjectName& name) {
  auto claims = inspector.Claims();
  if (!claims.ok()) return claims.status();
  std::erase_if(*claims,
                [&](const ClaimInfo& claim) { return claim.name != name; });
  if (!claims->empty()) return claims;
  return MakeError(
      absl::StatusCode::kNotFound,
      fmt::format("claim '{}' has no reference, no prepared driver and no "
                  "open intent here; 'history' may know more",
                  name.ToString()));
}

absl::StatusOr<std::vector<PluginInfo>> FindPlugins(const Session& session,
                                                    Inspector& inspector,
                                                    const std::string& name) {
  const absl::Status online = session.CheckOnline("looking for a plugin");
  if (!online.ok()) return online;
  auto plugins = inspector.Plugins();
  if (!plugins.ok()) return plugins.status();
  std::erase_if(*plugins,
                [&](const PluginInfo& plugin) { return plugin.name != name; });
  if (!plugins->empty()) return plugins;
  return MakeError(absl::StatusCode::kNotFound,
                   fmt::format("plugin '{}' is not registered", name));
}

absl::StatusOr<ResourceInfo> FindResource(Inspector& inspector,
                                          const std::string& name) {
  const auto resources = inspector.Resources();
  if (!resources.ok()) return resources.status();
  for (const ResourceInfo& resource : *resources) {
    if (resource.name == name) return resource;
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      fmt::format("resource '{}' has never been served here", name));
}

std::vector<DeviceInfo> DevicesNamed(const std::vector<DeviceInfo>& devices,
                                     const std::string& name) {
  std::vector<DeviceInfo> with_id;
  for (const DeviceInfo& device : devices) {
    if (NameOf(device) == name) return {device};
    if (device.device == name) with_id.push_back(device);
  }
  return with_id;
}

absl::StatusOr<DeviceInfo> FindDevice(const std::vector<DeviceInfo>& devices,
                                      const std::string& name) {
  constexpr std::size_t kMaxNamed = 5;
  const std::vector<DeviceInfo> found = DevicesNamed(devices, name);
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return MakeError(absl::StatusCode::kNotFound,
                     fmt::format("device '{}' is not known", name));
  }
  std::vector<std::string> names;
  for (const DeviceInfo& device : found) {
    names.push_back(names.size() < kMaxNamed ? NameOf(device) : "...");
    if (names.size() > kMaxNamed) break;
  }
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   fmt::format("'{}' is the ID of {} devices; choose one: {}",
                               name, found.size(), Join(names, ", ")));
}

}  // namespace devmgr::ctl
