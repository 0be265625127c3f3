// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <rocksdb/db.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "state/state.h"

namespace devmgr::checkpoint {

/// Reads the records of one kind from an open database in pieces, as there are
/// thousands of pods and claims: any number of threads may work at it.
/// `Record` is PodRecord or ClaimRecord.
template <typename Record>
class PieceReader {
 public:
  using Decode = absl::StatusOr<std::shared_ptr<const Record>> (*)(
      std::string_view key, std::string_view value);

  /// The records from the key `begin` on, before `end`. `db` is borrowed and
  /// must outlive this.
  PieceReader(rocksdb::DB& db, std::string begin, std::string end,
              Decode decode);

  /// Reads pieces until all are taken. Any thread.
  void Work();

  /// The same on this thread and on another one, if there is enough for two.
  void WorkOnTwoThreads();

  /// Once no thread works any more: puts all records into `state`.
  ///   DataLoss  a record cannot be decoded; the message names it
  absl::Status MoveTo(state::State& state);

 private:
  /// The records from one key on until the next piece's, in order.
  struct Piece {
    std::string begin;
    std::string end;
    std::vector<std::shared_ptr<const Record>> records;
    absl::Status status;
  };
  absl::Status Read(Piece& piece) const;

  rocksdb::DB& db_;
  const Decode decode_;
  absl::Status status_;  ///< Of looking where the records begin and end.
  std::vector<Piece> pieces_;
  std::atomic<std::size_t> taken_{0};
};

/// Keys that cut what lies between two keys into `pieces` parts, in order, as
/// if the bytes in which they begin to differ were evenly distributed.
std::vector<std::string> CutPoints(const std::string& first,
                                   const std::string& last, int pieces);

}  // namespace devmgr::checkpoint
