// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/table_frame.h"

#include <cstddef>
#include <cstdint>

#include "checkpoint/byte_reader.h"
#include "checkpoint/crc32c.h"

namespace devmgr::checkpoint {
namespace {

// The footer: kind of checksums, where the index of the blocks that are not
// records' is and where that of the records' is, version, mark.
constexpr std::size_t kFooter = 53;
constexpr std::size_t kVersionAndMark = 12;
constexpr std::uint64_t kMark = 0x88e241b785f4cff7;
constexpr std::uint64_t kCrc32c = 1;
constexpr std::uint64_t kVersion = 5;

constexpr std::size_t kTypeSize = 1;
constexpr std::size_t kWordSize = 4;

struct Handle {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

Handle ReadHandle(ByteReader& reader) {
  Handle handle;
  handle.offset = reader.Varint();
  handle.size = reader.Varint();
  return handle;
}

/// The contents of a block that has its checksum behind it; else null data.
std::string_view BlockAt(std::string_view table, Handle handle) {
  ByteReader reader(table);
  reader.Bytes(handle.offset);
  const std::string_view block = reader.Bytes(handle.size);
  reader.Bytes(kTypeSize);
  const std::uint64_t checksum = reader.Fixed(kWordSize);
  if (!reader.ok()) return {};
  const std::string_view checked =
      table.substr(handle.offset, handle.size + kTypeSize);
  return MaskCrc32c(Crc32c(checked)) == checksum ? block : std::string_view();
}

/// Whether all blocks that an index of such names are whole.
bool NamesWholeBlocks(std::string_view index, std::string_view table) {
  // Behind the entries stand where some of them begin, and how many those are.
  if (index.size() < kWordSize) return false;
  ByteReader end(index.substr(index.size() - kWordSize));
  const std::uint64_t behind = (end.Fixed(kWordSize) + 1) * kWordSize;
  if (behind > index.size()) return false;
  ByteReader reader(index.substr(0, index.size() - behind));
  while (reader.ok() && !reader.empty()) {
    reader.Varint();  // How much of the key is that of the last one.
    const std::uint64_t key = reader.Varint();
    const std::uint64_t value = reader.Varint();
    reader.Bytes(key);
    ByteReader handle(reader.Bytes(value));
    const std::string_view block = BlockAt(table, ReadHandle(handle));
    if (!handle.ok() || block.data() == nullptr) return false;
  }
  return reader.ok();
}

}  // namespace

bool FrameIsWhole(std::string_view table) {
  if (table.size() < kFooter) return false;
  ByteReader footer(table.substr(table.size() - kFooter));
  const std::uint64_t checksum_kind = footer.Fixed(1);
  const Handle meta = ReadHandle(footer);
  const Handle index = ReadHandle(footer);
  ByteReader end(table.substr(table.size() - kVersionAndMark));
  const std::uint64_t version = end.Fixed(4);
  if (end.Fixed(8) != kMark || !footer.ok()) return false;
  if (checksum_kind != kCrc32c || version != kVersion) return false;
  const std::string_view meta_index = BlockAt(table, meta);
  return meta_index.data() != nullptr && NamesWholeBlocks(meta_index, table) &&
         BlockAt(table, index).data() != nullptr;
}

}  // namespace devmgr::checkpoint
