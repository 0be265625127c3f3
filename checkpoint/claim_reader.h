// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <rocksdb/db.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "state/state.h"

namespace devmgr::checkpoint {

/// Reads the claims of an open database in pieces, as they are most of what a
/// ledger holds: any number of threads may work at it.
class ClaimReader {
 public:
  /// `db` is borrowed and must outlive this.
  explicit ClaimReader(rocksdb::DB& db);

  /// Reads pieces until all are taken. Any thread.
  void Work();

  /// Once no thread works any more: puts all claims into `state`.
  ///   DataLoss  a record cannot be decoded; the message names it
  absl::Status MoveTo(state::State& state);

 private:
  /// The claims from one key on until the next piece's, in order.
  struct Piece {
    std::string begin;
    std::string end;
    std::vector<std::shared_ptr<const state::ClaimRecord>> claims;
    absl::Status status;
  };
  absl::Status Read(Piece& piece) const;

  rocksdb::DB& db_;
  absl::Status status_;  ///< Of looking where claims begin and end.
  std::vector<Piece> pieces_;
  std::atomic<std::size_t> taken_{0};
};

/// Keys that cut what lies between two keys into `pieces` parts, in order, as
/// if the bytes in which they begin to differ were evenly distributed.
std::vector<std::string> CutPoints(const std::string& first,
                                   const std::string& last, int pieces);

}  // namespace devmgr::checkpoint
