// SPDX-License-Identifier: Apache-2.0
//
// Reading what can be read of a damaged database.
#pragma once

#include <absl/status/statusor.h>
#include <rocksdb/options.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::checkpoint {

struct Salvaged {
  /// Every record that is left. They need not fit together.
  state::State state;
  /// Batches without a gap, the last of which is `last_seq`; or none.
  std::vector<state::Batch> history;
  /// Objects beside the ledger, by their keys in the database.
  std::map<std::string, std::string> objects;
  /// The highest number of a batch that left a trace.
  std::uint64_t last_seq = 0;
  std::int64_t last_time_ms = 0;  ///< Of a batch; 0: not known.
  std::uint64_t skipped = 0;
  std::vector<std::string> skipped_records;  ///< The first of them.
};

/// Does not change `database`; copies are made in `work`, which must not exist.
/// `held_seq`: a batch that the ledger is known to have held.
///   DataLoss            nothing can be read
///   FailedPrecondition  the database is of a newer format
absl::StatusOr<Salvaged> SalvageDatabase(const std::filesystem::path& database,
                                         const std::filesystem::path& work,
                                         const rocksdb::Options& options,
                                         std::uint64_t held_seq);

}  // namespace devmgr::checkpoint
