// SPDX-License-Identifier: Apache-2.0
//
// What has to change before claims that cannot be allocated now are worth a
// second look. Pure.
#pragma once

#include <devmgr/host.h>
#include <devmgr/status_types.h>

#include <set>
#include <string>
#include <vector>

#include "allocator/allocator.h"

namespace devmgr::control {

/// The driver that has all devices of the class, where one of its selectors
/// says so: `device.driver == "..."`, alone or joined to others by `&&`. Empty:
/// it may be any.
std::string DriverPinnedBy(const std::vector<std::string>& selectors);

/// Claims that were to be allocated together. Borrowed.
struct RefusedClaims {
  std::vector<const ResourceClaim*> claims;
  /// Those of `claims` that other pods may use, too.
  std::vector<ObjectName> of_source;
  /// From which some of them are to be made.
  std::vector<ObjectName> templates;
};

/// Drivers whose devices the claims may ask for, WaitingFor::kAnyDriver among
/// them where a request may be served by any.
std::set<std::string> DriversOf(const RefusedClaims& refused,
                                const ObjectMap<DeviceClass>& classes);

/// What the claims failed on, as the table "What wakes which pod" of
/// lib/admission/README.md has it: published devices and classes always; what
/// others hold, taints and devices too many only where a device was refused for
/// that, or where it is not known what each was refused for.
std::vector<WaitingFor> ObstaclesOf(const RefusedClaims& refused,
                                    const ObjectMap<DeviceClass>& classes,
                                    const allocator::Outcome& outcome);

}  // namespace devmgr::control
