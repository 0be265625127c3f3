// SPDX-License-Identifier: Apache-2.0
//
// Devices as expressions see them.
#pragma once

#include <devmgr/objects.h>

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cel/environment.h"
#include "cel/value.h"

namespace devmgr::cel {

/// What an attribute may be: a value, or a list of values of one kind.
using AttributeValue =
    std::variant<std::int64_t, bool, std::string, DeviceVersion,
                 std::vector<std::int64_t>, std::vector<bool>,
                 std::vector<std::string>, std::vector<DeviceVersion>>;

/// A device of a slice. Names without a domain are in the driver's own.
struct DeviceInput {
  std::string driver;
  bool allow_multiple_allocations = false;
  std::map<std::string, AttributeValue> attributes;
  std::map<std::string, Quantity> capacity;
};

/// The environment of selectors: the variable `device`. It is that of stored
/// expressions: what any version of Kubernetes permits is permitted, since the
/// API server has checked the object by its own.
const Environment& DeviceEnvironment();

/// The value of `device`. It is made once for a device, and any number of
/// expressions may look at it.
Value MakeDevice(const DeviceInput& device);

/// A device of which only the driver is known: to look at anything else is an
/// error. A selector that is false of it is false of all devices of the driver.
Value MakeUnknownDevice(const std::string& driver);

/// The environment of the selectors of Kubernetes 1.30: a map of attributes for
/// each kind, `attributes.string` and so on. A name that is missing, or is one
/// of another kind, is an error.
const Environment& OldDeviceEnvironment();

/// What those variables have, by name. Capacities are quantities; names of the
/// driver's own domain go without it, others are `domain/name`.
using OldDevice = std::map<std::string, Value, std::less<>>;
OldDevice MakeOldDevice(const DeviceInput& device);

}  // namespace devmgr::cel
