// SPDX-License-Identifier: Apache-2.0
//
// Precompiled for the rooms and the programs, in builds without unity blocks.
// Foreign headers only, those that most files pay for. No file may rely on it:
// the step `plain` of .ci/run compiles without. It is the main file of its own
// compilation, where GCC does not want a `#pragma once`.
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
