// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/crc32c.h"

#include <array>

namespace devmgr::checkpoint {
namespace {

constexpr std::array<std::uint32_t, 256> MakeTable() {
  constexpr std::uint32_t kPolynomial = 0x82f63b78;  // Bits reversed.
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    }
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = MakeTable();

}  // namespace

std::uint32_t ExtendCrc32c(std::uint32_t before, std::string_view text) {
  std::uint32_t crc = ~before;
  for (const char byte : text) {
    crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

}  // namespace devmgr::checkpoint
