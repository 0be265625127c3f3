// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace devmgr::checkpoint {

/// Takes apart what RocksDB has put together: numbers of seven bits a byte,
/// numbers of four or eight bytes with the lowest first, texts behind their
/// length. What is not there makes `ok` false for good, and reads as nothing.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }

  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(Byte());
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }

  std::uint64_t Fixed(unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) {
      const auto byte = static_cast<unsigned char>(Byte());
      value |= static_cast<std::uint64_t>(byte) << (8 * i);
    }
    return value;
  }

  std::string_view Bytes(std::uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view Text() { return Bytes(Varint()); }

 private:
  char Byte() {
    const std::string_view byte = Bytes(1);
    return byte.empty() ? '\0' : byte.front();
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace devmgr::checkpoint
