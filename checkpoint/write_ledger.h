// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::checkpoint {

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(
    const rocksdb::Options& options, const std::filesystem::path& path);

/// Adds a change to a write; false when its record is null.
bool AddChange(const state::Change& change, rocksdb::WriteBatch& write);

/// Makes a new database that holds `state` and `history`, and `objects` by
/// their keys in it: all of it, on disk, when it returns, and nothing of it
/// when it does not.
absl::Status WriteNewLedger(
    const rocksdb::Options& options, const std::filesystem::path& path,
    const state::State& state, std::span<const state::Batch> history,
    const std::map<std::string, std::string>& objects = {});

}  // namespace devmgr::checkpoint
