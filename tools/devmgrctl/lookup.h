// SPDX-License-Identifier: Apache-2.0
//
// One object of a kind, by its name; the errors are the same for every verb.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "session.h"

namespace devmgr::ctl {

/// A claim that was re-created has an entry per UID; never empty.
///   NotFound   there is none of that name
absl::StatusOr<std::vector<ClaimInfo>> FindClaims(Inspector& inspector,
                                                  const ObjectName& name);

/// A name may have several instances at a time, as when one replaces another;
/// never empty.
///   FailedPrecondition  a stopped store knows no plugins
///   NotFound            there is none of that name
absl::StatusOr<std::vector<PluginInfo>> FindPlugins(const Session& session,
                                                    Inspector& inspector,
                                                    const std::string& name);

///   NotFound   there is none of that name
absl::StatusOr<ResourceInfo> FindResource(Inspector& inspector,
                                          const std::string& name);

/// All of `devices` whose whole name, or else whose ID, is `name`.
std::vector<DeviceInfo> DevicesNamed(const std::vector<DeviceInfo>& devices,
                                     const std::string& name);

/// By its whole name, or by its ID if no other device has that.
///   NotFound            there is none
///   FailedPrecondition  several have that ID; the message names them
absl::StatusOr<DeviceInfo> FindDevice(const std::vector<DeviceInfo>& devices,
                                      const std::string& name);

}  // namespace devmgr::ctl
