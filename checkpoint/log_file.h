// SPDX-License-Identifier: Apache-2.0
//
// RocksDB's log format, which its write-ahead logs and its MANIFEST have:
// blocks of 32 KiB, in them records of a header (checksum, length, type) and a
// payload; a payload that does not fit goes on in the next block.
//
// RocksDB reads logs as well, but what it takes for the torn end of a write
// that was never answered includes damage to answered ones. So it comes second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::checkpoint {

/// What a write left behind that never came to its end.
struct TornTail {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct LogDamage {
  std::uint64_t offset = 0;
  std::string what;
};

struct LogContents {
  std::vector<std::string> records;  ///< Those that are whole, in order.
  std::optional<TornTail> torn;
  /// Bytes that no interrupted write explains. Reading goes on at the next
  /// record behind each.
  std::vector<LogDamage> damage;
};

/// Reads all of a log. A record is torn when it is the last one and its end is
/// missing, or is a hole that the file system left. One that merely claims to
/// be longer than the file is damaged: what there is of it has its checksum.
LogContents ReadLog(std::string_view bytes);

}  // namespace devmgr::checkpoint
