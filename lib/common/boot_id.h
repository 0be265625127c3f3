// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace devmgr {

/// What the kernel calls this boot of the machine.
///   FailedPrecondition  it does not tell
absl::StatusOr<std::string> KernelBootId();

}  // namespace devmgr
