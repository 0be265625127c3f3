// SPDX-License-Identifier: Apache-2.0
//
// Reading a ledger out of an open database. Everything is checked: a key or
// value that is not understood is DataLoss that names the key.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <rocksdb/db.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "state/decision.h"
#include "state/state.h"

namespace devmgr::checkpoint {

/// The format of the database, one that we can read.
///   FailedPrecondition  it is not
absl::StatusOr<std::uint64_t> ReadFormat(rocksdb::DB& db);

/// The number of the last batch; errors as ReadFormat.
absl::StatusOr<std::uint64_t> ReadSeq(rocksdb::DB& db);

/// Puts the record of a key and its value into `state`; those of other kinds
/// are only looked at.
///   DataLoss  it is of an unknown kind, or cannot be decoded
absl::Status PutRecord(std::string_view key, std::string_view value,
                       state::State& state);

/// The pod or claim of a key and its value; errors as PutRecord.
absl::StatusOr<std::shared_ptr<const state::PodRecord>> ReadPod(
    std::string_view key, std::string_view value);
absl::StatusOr<std::shared_ptr<const state::ClaimRecord>> ReadClaim(
    std::string_view key, std::string_view value);

/// Of the projection only the pods, and the number of the last batch. Two
/// threads read.
absl::StatusOr<state::State> ReadPods(rocksdb::DB& db);

/// The projection. One more thread reads claims; this one reads the other
/// records, does what else is to be done, if any, and then reads claims, too.
/// `begun` is what ReadPods gave, or empty.
absl::StatusOr<state::State> ReadState(
    rocksdb::DB& db, const std::function<void()>& meanwhile = nullptr,
    state::State begun = {});

/// Whether a history of the batches `first` to `last` (0 for none) is the one
/// that a ledger whose last batch is `seq` must have: every write of the ledger
/// leaves its batch there, so that none can vanish alone.
///   DataLoss  it is not
absl::Status CheckHistoryBounds(rocksdb::DB& db, std::uint64_t first,
                                std::uint64_t last, std::uint64_t seq);

/// Visits `most` batches after `after` at most, encoded, in order.
using HistoryVisitor =
    std::function<absl::Status(std::uint64_t seq, std::string_view bytes)>;
absl::Status VisitHistory(rocksdb::DB& db, std::uint64_t after,
                          std::size_t most, const HistoryVisitor& visit);

/// `most` batches after `after` at most, in order.
absl::StatusOr<std::vector<state::Batch>> ReadHistory(rocksdb::DB& db,
                                                      std::uint64_t after,
                                                      std::size_t most);

}  // namespace devmgr::checkpoint
