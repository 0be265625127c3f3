// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "checkpoint/byte_reader.h"

namespace devmgr::checkpoint {
namespace {

/// Of RocksDB's version edits. Written by all versions since 5.
enum Tag : std::uint64_t {
  kComparator = 1,
  kLogNumber = 2,
  kNextFileNumber = 3,
  kLastSequence = 4,
  kCompactCursor = 5,
  kDeletedFile = 6,
  kPrevLogNumber = 9,
  kMinLogNumberToKeep = 10,
  kNewFile = 103,
  kColumnFamily = 200,
  kColumnFamilyAdd = 201,
  kMaxColumnFamily = 203,
  kInAtomicGroup = 300,
  /// Tags with this bit are followed by a text, and may be passed over.
  kMayBeIgnored = 1U << 13,
};

enum FileTag : std::uint64_t {
  kLastFileTag = 1,
  kFileChecksum = 7,
  kFileChecksumKind = 8,
};

using Tables = std::map<std::uint64_t, TableEntry>;

void ReadNewFile(ByteReader& reader, Tables& tables) {
  reader.Varint();  // The level.
  const std::uint64_t number = reader.Varint();
  TableEntry entry;
  entry.size = reader.Varint();
  reader.Text();    // The first key, and
  reader.Text();    // the last one.
  reader.Varint();  // Numbers of the first write, and
  reader.Varint();  // of the last one.
  while (reader.ok()) {
    const std::uint64_t tag = reader.Varint();
    if (tag == kLastFileTag) break;
    const std::string_view text = reader.Text();
    if (tag == kFileChecksum) entry.checksum = text;
    if (tag == kFileChecksumKind) entry.checksum_kind = text;
  }
  tables[number] = std::move(entry);
}

/// False when it is not understood.
bool ReadEdit(ByteReader reader, ManifestContents& contents) {
  while (reader.ok() && !reader.empty()) {
    const std::uint64_t tag = reader.Varint();
    switch (tag) {
      case kLogNumber:
        contents.first_log = std::max(contents.first_log, reader.Varint());
        break;
      case kNextFileNumber:
      case kLastSequence:
      case kPrevLogNumber:
      case kMinLogNumberToKeep:
      case kColumnFamily:
      case kMaxColumnFamily:
      case kInAtomicGroup:
        reader.Varint();
        break;
      case kComparator:
      case kColumnFamilyAdd:
        reader.Text();
        break;
      case kCompactCursor:
        reader.Varint();
        reader.Text();
        break;
      case kDeletedFile:
        reader.Varint();
        contents.tables.erase(reader.Varint());
        break;
      case kNewFile:
        ReadNewFile(reader, contents.tables);
        break;
      default:
        if ((tag & kMayBeIgnored) == 0) return false;
        reader.Text();
    }
  }
  return reader.ok();
}

}  // namespace

std::optional<ManifestContents> ReadManifest(
    const std::vector<std::string>& records) {
  ManifestContents contents;
  for (const std::string& record : records) {
    if (!ReadEdit(ByteReader(record), contents)) return std::nullopt;
  }
  return contents;
}

std::string TableName(std::uint64_t number) {
  return fmt::format("{:06}.sst", number);
}

}  // namespace devmgr::checkpoint
