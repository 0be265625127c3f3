// SPDX-License-Identifier: Apache-2.0
//
// The versions of the service by which drivers tell of the health of their
// devices. All have the same messages.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/driver_health.h"

namespace devmgr::dra {

struct HealthService {
  std::string_view name;    ///< As drivers advertise it.
  std::string_view method;  ///< Full path of the call that is a stream.
};

/// In our order of preference.
std::span<const HealthService> HealthServices();

/// Our most preferred one among what a driver advertises; null: none.
const HealthService* ChooseHealthService(
    const std::vector<std::string>& advertised);

/// Devices in one report; what comes behind them is not read.
inline constexpr std::size_t kMaxReportedDevices = 65'536;

/// Reads one message of the stream. Devices without a name that a device can
/// have are left out; a status that we do not know is Unknown.
///   InvalidArgument  the bytes are not such a message
absl::StatusOr<std::vector<device::DeviceReport>> DecodeHealthReport(
    const std::string& bytes);

}  // namespace devmgr::dra
