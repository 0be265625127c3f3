// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace devmgr {

/// The kernel's form of a set of numbers, such as `0-3,8`. Nothing when it is
/// not one, or names more than `most`.
std::optional<std::vector<std::int64_t>> ParseNumberList(
    std::string_view text, std::size_t most = 4096);

}  // namespace devmgr
