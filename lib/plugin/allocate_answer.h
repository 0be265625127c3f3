// SPDX-License-Identifier: Apache-2.0
//
// What a plugin answers to Allocate is input, and is checked here. A preferred
// allocation is checked where it is used (device/selection.h).
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <string>
#include <vector>

#include "device/device.h"
#include "plugin/limits.h"
#include "plugin/plugins.h"

namespace devmgr::plugin {

/// Of a version, a resource name or an endpoint, in a message.
inline constexpr std::size_t kMaxQuotedBytes = 256;

/// A list of devices as it came, in its order.
struct DeviceList {
  std::vector<device::Device> devices;
  ListProblems problems;
};

/// Checks what a plugin wants to put into a container.
///   InvalidArgument  names what is wrong with what
absl::Status CheckEdits(const device::ContainerEdits& edits);

}  // namespace devmgr::plugin
