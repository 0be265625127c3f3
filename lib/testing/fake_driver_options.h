// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/testing.h>

#include <string>
#include <vector>

namespace devmgr::testing {

/// Only what would break paths is refused: a driver with a name that no
/// manager accepts is a thing to test.
absl::Status CheckOptions(const FakeDraDriverOptions& options);

/// Its scenario, and before it the steps that other options stand for.
std::vector<ScenarioStep> StepsOf(const FakeDraDriverOptions& options);

/// Of the names of sockets, as the official library makes them.
std::string SocketSuffix(const FakeDraDriverOptions& options);

}  // namespace devmgr::testing
