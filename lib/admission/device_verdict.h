// SPDX-License-Identifier: Apache-2.0
//
// Verdicts on pods that cannot have their devices of plugins, now or at all:
// the table in README.md. Pure.
#pragma once

#include <absl/status/status.h>
#include <devmgr/options.h>
#include <devmgr/status_types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/selection.h"

namespace devmgr::admission {

/// Upstream's reason of a rejection for want of devices.
inline constexpr char kUnexpectedAdmissionError[] = "UnexpectedAdmissionError";
/// A plugin was asked and did not allocate.
inline constexpr char kFailedAllocate[] = "FailedAllocateDevices";
/// Devices would be aligned to NUMA nodes if others did not hold some of them.
inline constexpr char kNotAlignedNow[] = "DevicesNotAligned";

struct DevicePolicy {
  Authority authority = Authority::kNode;
  Profile profile = Profile::kDefault;
  std::chrono::milliseconds admission_wait{std::chrono::minutes(5)};
};

struct DeviceVerdict {
  /// A rejection tells what it would wait for, too: SettleRejection of judge.h
  /// may make a wait of it.
  Verdict verdict;
  /// With a wait: how long it may last, from its begin on. Nothing: for ever.
  std::optional<std::chrono::milliseconds> limit;
};

/// `shortages` are those of one pod, not empty; `waited`: for how long it has
/// waited for devices.
DeviceVerdict JudgeShortages(const std::vector<device::Shortage>& shortages,
                             const DevicePolicy& policy,
                             std::chrono::milliseconds waited);

/// A call to the plugin of `resource` failed, for a pod that has waited so
/// long. A wait is to be tried again with a back-off.
DeviceVerdict JudgeFailedCall(const ResourceName& resource,
                              const absl::Status& status,
                              const DevicePolicy& policy,
                              std::chrono::milliseconds waited);

/// A pod that must let another go first: it may wait for ever.
Verdict BehindVerdict(const std::string& first,
                      const std::vector<ResourceName>& resources);

/// It waits for devices of plugins, and so stands in line.
bool WaitsForPlugins(const Verdict& verdict);

}  // namespace devmgr::admission
