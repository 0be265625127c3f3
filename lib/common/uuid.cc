// SPDX-License-Identifier: Apache-2.0
#include "common/uuid.h"

#include <fmt/core.h>

namespace devmgr {

std::string UuidText(std::uint64_t high, std::uint64_t low) {
  high = (high & ~0xF000ull) | 0x4000ull;
  low = (low & ~(0xC0ull << 56)) | (0x80ull << 56);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32,
                     (high >> 16) & 0xFFFF, high & 0xFFFF, low >> 48,
                     low & 0xFFFF'FFFF'FFFFull);
}

}  // namespace devmgr
