// SPDX-License-Identifier: Apache-2.0
//
// What a plugin says is input: it is checked here.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <string>
#include <vector>

#include "device/device.h"
#include "plugin/plugins.h"

namespace devmgr::plugin {

/// Bounds of one list.
inline constexpr std::size_t kMaxDevices = 1'000'000;
inline constexpr std::size_t kMaxDeviceBytes = 64 * 1024;
/// Of one answer, serialised.
inline constexpr std::size_t kMaxAnswerBytes = 1024 * 1024;
/// Of one container: of each kind, and of each text.
inline constexpr std::size_t kMaxEdits = 4096;
inline constexpr std::size_t kMaxPathBytes = 4096;
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::size_t kMaxValueBytes = 128 * 1024;

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
