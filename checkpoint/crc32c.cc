// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/crc32c.h"

#include <array>
#include <cstring>

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

#if defined(__x86_64__)
/// The processor has an instruction for this polynomial since 2008.
__attribute__((target("sse4.2"))) std::uint32_t ExtendByInstruction(
    std::uint32_t before, std::string_view text) {
  std::uint64_t crc = ~before;
  while (text.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof(word));
    crc = __builtin_ia32_crc32di(crc, word);
    text.remove_prefix(sizeof(word));
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (const char byte : text) {
    rest = __builtin_ia32_crc32qi(rest, static_cast<unsigned char>(byte));
  }
  return ~rest;
}

bool HasInstruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#else
std::uint32_t ExtendByInstruction(std::uint32_t before, std::string_view text) {
  return ExtendCrc32cByTable(before, text);
}
bool HasInstruction() { return false; }
#endif

}  // namespace

std::uint32_t ExtendCrc32c(std::uint32_t before, std::string_view text) {
  static const bool has_instruction = HasInstruction();
  return has_instruction ? ExtendByInstruction(before, text)
                         : ExtendCrc32cByTable(before, text);
}

std::uint32_t ExtendCrc32cByTable(std::uint32_t before, std::string_view text) {
  std::uint32_t crc = ~before;
  for (const char byte : text) {
    crc = kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

}  // namespace devmgr::checkpoint
