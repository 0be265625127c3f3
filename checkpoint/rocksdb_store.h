// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <rocksdb/env.h>

#include <memory>

#include "checkpoint/ledger_store.h"

namespace devmgr::checkpoint {

/// OpenRocksDbStore on another environment, for tests of a failing disk.
/// `env` is borrowed and must outlive the store; null is the default one.
/// Only the database goes through it, not the lock and the format file.
absl::StatusOr<std::unique_ptr<LedgerStore>> OpenRocksDbStoreOn(
    const RocksDbStoreOptions& options, rocksdb::Env* env);

}  // namespace devmgr::checkpoint
