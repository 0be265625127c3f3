// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cel/size_range.h"

namespace devmgr::cel {

/// The bounds that the API sets for the size of the part of a device that
/// `path` leads to. A path begins with the name of a variable, followed by
/// fields, and by `@keys`, `@values`, `@items` or `@indices` for the contents
/// of a container. Nothing when the path does not lead to a part of a device,
/// or when the API sets no bound.
std::optional<SizeRange> DeviceSize(const std::vector<std::string>& path);

}  // namespace devmgr::cel
