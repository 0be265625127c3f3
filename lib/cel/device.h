// SPDX-License-Identifier: Apache-2.0
//
// Devices as the values that expressions evaluate.
#pragma once

#include <devmgr/objects.h>

#include <map>
#include <string>
#include <string_view>

#include "cel/environment.h"
#include "cel/value.h"

namespace devmgr::cel {

/// The environment of selectors, with the variable `device`. It is the one in
/// which Kubernetes evaluates stored objects: an expression that any version up
/// to 1.37 accepts is accepted, since the API server has checked the object
/// when it was written.
const Environment& DeviceEnvironment();

/// The value of the variable `device`. Any number of evaluations may share it.
Value MakeDevice(std::string_view driver, const SliceDevice& device);

/// A device of which only the driver is known: to look at anything else is an
/// error. A selector that is false of it is false of all devices of the driver.
Value MakeUnknownDevice(const std::string& driver);

/// The environment of selectors of Kubernetes 1.30: a map for each kind of
/// attribute, `attributes.string` and so on. To look up a name that is missing,
/// or whose attribute is of another kind, is an error.
const Environment& OldDeviceEnvironment();

/// The values of those variables, by name. Capacities are in
/// `attributes.quantity`. Names in the domain of the driver are without it,
/// others are written `domain/name`.
using OldDevice = std::map<std::string, Value, std::less<>>;
OldDevice MakeOldDevice(std::string_view driver, const SliceDevice& device);

}  // namespace devmgr::cel
