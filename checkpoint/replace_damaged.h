// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <rocksdb/options.h>

#include <cstdint>

#include "checkpoint/ledger_store.h"
#include "checkpoint/state_directory.h"

namespace devmgr::checkpoint {

/// Recovery::kLenient: puts a new database in the place of a damaged one, which
/// is kept aside. It holds what could be read, made to fit together, and one
/// batch of kind kRecovered that says so. A crash at any point leaves the
/// damaged ledger or the new one. `damage` is why the ledger was refused.
///   DataLoss  nothing can be read
absl::StatusOr<RecoveryReport> RecoverLedger(StateDirectory& directory,
                                             const rocksdb::Options& options,
                                             const absl::Status& damage,
                                             std::int64_t now_ms);

}  // namespace devmgr::checkpoint
