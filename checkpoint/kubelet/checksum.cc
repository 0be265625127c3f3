// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/kubelet/checksum.h"

#include <array>

namespace devmgr::kubelet_checkpoint {
namespace {

constexpr std::uint32_t kFnvPrime = 0x01000193U;
constexpr std::uint32_t kCrcPolynomial = 0xEDB88320U;

constexpr std::array<std::uint32_t, 256> MakeCrcTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) {
      rest = (rest >> 1) ^ ((rest & 1U) != 0 ? kCrcPolynomial : 0);
    }
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kCrcTable = MakeCrcTable();

}  // namespace

std::uint32_t ExtendFnv1a32(std::uint32_t before, std::string_view text) {
  std::uint32_t hash = before;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  }
  return hash;
}

std::uint32_t Crc32(std::string_view text) {
  std::uint32_t crc = ~0U;
  for (const char c : text) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFU];
  }
  return ~crc;
}

}  // namespace devmgr::kubelet_checkpoint
