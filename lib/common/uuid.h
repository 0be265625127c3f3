// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace devmgr {

/// A version 4 UUID of these bits.
std::string UuidText(std::uint64_t high, std::uint64_t low);

}  // namespace devmgr
