// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "api/value.h"

namespace devmgr::api {

/// What a plain (unquoted) YAML scalar means, by the rules of the YAML library
/// that Kubernetes uses: YAML 1.1 with `yes` and `on` as booleans, numbers
/// with prefixes and underscores, dates as strings.
Value ResolvePlainScalar(std::string_view text, int line);

}  // namespace devmgr::api
