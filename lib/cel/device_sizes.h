// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cel/size_range.h"

namespace devmgr::cel {

/// The largest size that the API permits for what `path` leads to: a variable,
/// then fields, and `@keys`, `@values` or `@items` of a container. Nothing when
/// it is no part of a device, or the API has no limit for it.
std::optional<SizeRange> DeviceSize(const std::vector<std::string>& path);

}  // namespace devmgr::cel
