// SPDX-License-Identifier: Apache-2.0
//
// The witness: a small file beside the database that says how far the ledger
// had come, so that batches which vanish from the database are missed. It is
// written when a store is opened and when it is closed, not with each decision.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <rocksdb/file_system.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace devmgr::checkpoint {

struct Witness {
  std::uint64_t seq = 0;  ///< The ledger held this batch.
  bool closed = false;    ///< And no later one: it was closed cleanly.
};

std::filesystem::path WitnessPath(const std::filesystem::path& directory);

/// Nothing when there is none.
///   DataLoss  it is damaged
absl::StatusOr<std::optional<Witness>> ReadWitness(
    rocksdb::FileSystem& disk, const std::filesystem::path& directory);

/// On disk when it returns.
absl::Status WriteWitness(rocksdb::FileSystem& disk,
                          const std::filesystem::path& directory,
                          const Witness& witness);

}  // namespace devmgr::checkpoint
