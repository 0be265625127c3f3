// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <functional>
#include <string_view>

namespace devmgr::checkpoint {

/// How we run RocksDB: small, quiet, and strict about what it finds.
/// `env` is borrowed; null is the default one.
rocksdb::Options LedgerOptions(rocksdb::Env* env);

/// A write is on disk when it returns.
rocksdb::WriteOptions DurableWrite();

/// Reads check every block and leave the cache alone.
rocksdb::ReadOptions CheckedRead();

/// Opens a database, a second time if RocksDB blames what we ask for or what it
/// has read: it says so, too, of a file that could not be opened or read but
/// then could, and hides why.
rocksdb::Status OpenTwice(const std::function<rocksdb::Status()>& open);

/// The one place where RocksDB's errors become ours; `what` comes first.
///   DataLoss          something is damaged or missing
///   PermissionDenied  a file is not ours to use
///   Unavailable       the disk failed or is full; may work later
///   FailedPrecondition  written by another version of RocksDB
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view what);

}  // namespace devmgr::checkpoint
