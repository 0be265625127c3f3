// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace devmgr {

/// What the kernel calls this boot of the machine.
///   FailedPrecondition  it does not tell
absl::StatusOr<std::string> KernelBootId();

/// Milliseconds since the machine booted, those that it slept included: the
/// same clock for all processes of a boot, and it does not jump with the
/// calendar.
std::int64_t BootMs();

}  // namespace devmgr
