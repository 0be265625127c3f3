// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <rocksdb/options.h>

#include <memory>

#include "checkpoint/ledger_store.h"

namespace devmgr::checkpoint {

/// OpenRocksDbStore with a database of other options than LedgerOptions, for
/// tests: above all with an environment of their own, which must outlive the
/// store. All that is written goes through it, but for the lock file.
absl::StatusOr<std::unique_ptr<LedgerStore>> OpenRocksDbStoreOn(
    const RocksDbStoreOptions& options, const rocksdb::Options& database);

}  // namespace devmgr::checkpoint
