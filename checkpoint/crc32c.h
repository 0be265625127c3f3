// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace devmgr::checkpoint {

/// CRC-32C (Castagnoli) of a text whose beginning has the checksum `before`,
/// and which goes on with `text`: ExtendCrc32c(0, text) is that of `text`.
std::uint32_t ExtendCrc32c(std::uint32_t before, std::string_view text);

/// The same on any processor, ten times slower.
std::uint32_t ExtendCrc32cByTable(std::uint32_t before, std::string_view text);

/// As RocksDB stores it, so that the checksum of what holds one is a good one.
inline std::uint32_t MaskCrc32c(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

inline std::uint32_t Crc32c(std::string_view text) {
  return ExtendCrc32c(0, text);
}

}  // namespace devmgr::checkpoint
