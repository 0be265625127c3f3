// SPDX-License-Identifier: Apache-2.0
//
// What a MANIFEST says about the tables of its database: RocksDB opens tables
// before it checks all of them, and some damage ends the process then.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace devmgr::checkpoint {

struct TableEntry {
  std::uint64_t size = 0;
  std::string checksum;       ///< Of the whole file; empty when not known.
  std::string checksum_kind;  ///< RocksDB's name for how it was made.
};

struct ManifestContents {
  std::map<std::uint64_t, TableEntry> tables;  ///< By number.
  /// What logs with lower numbers hold is in the tables, too. They are being
  /// removed, in no order that outlasts a power failure.
  std::uint64_t first_log = 0;
};

/// What holds after all records of a MANIFEST, each of which has its checksum.
/// Nothing when a record says something that is not known here.
std::optional<ManifestContents> ReadManifest(
    const std::vector<std::string>& records);

/// `000012.sst`
std::string TableName(std::uint64_t number);

}  // namespace devmgr::checkpoint
