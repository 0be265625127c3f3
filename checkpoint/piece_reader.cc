// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/piece_reader.h"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>

#include "checkpoint/rocksdb_config.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

/// More than there are threads: pieces have different sizes.
constexpr int kPieces = 24;
/// Of a key, as far as it counts for cutting.
constexpr std::size_t kCutBytes = 6;

std::uint64_t NumberAt(const std::string& key, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = at; i < at + kCutBytes; ++i) {
    number <<= 8;
    if (i < key.size()) number |= static_cast<unsigned char>(key[i]);
  }
  return number;
}

}  // namespace

std::vector<std::string> CutPoints(const std::string& first,
                                   const std::string& last, int pieces) {
  std::vector<std::string> cuts;
  if (last <= first) return cuts;
  const auto [differs, ignored] =
      std::mismatch(first.begin(), first.end(), last.begin(), last.end());
  const auto common = static_cast<std::size_t>(differs - first.begin());
  const std::uint64_t low = NumberAt(first, common);
  const std::uint64_t step =
      (NumberAt(last, common) - low) / static_cast<std::uint64_t>(pieces);
  if (step == 0) return cuts;
  for (int piece = 1; piece < pieces; ++piece) {
    std::string cut = first.substr(0, common);
    const std::uint64_t number = low + step * static_cast<std::uint64_t>(piece);
    for (std::size_t i = kCutBytes; i-- > 0;) {
      cut.push_back(static_cast<char>(number >> (8 * i)));
    }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

template <typename Record>
PieceReader<Record>::PieceReader(rocksdb::DB& db, std::string begin,
                                 std::string end, Decode decode)
    : db_(db), decode_(decode) {
  const std::unique_ptr<rocksdb::Iterator> records(
      db.NewIterator(CheckedRead()));
  std::vector<std::string> cuts;
  records->Seek(begin);
  if (records->Valid()) {
    const std::string first = records->key().ToString();
    records->SeekForPrev(end);
    if (records->Valid() && first < end) {
      cuts = CutPoints(first, records->key().ToString(), kPieces);
    }
  }
  status_ = FromRocksDb(records->status(), "reading the ledger");
  cuts.push_back(std::move(end));
  for (std::string& cut : cuts) {
    pieces_.push_back({std::exchange(begin, cut), std::move(cut), {}, {}});
  }
}

template <typename Record>
void PieceReader<Record>::Work() {
  for (std::size_t i = taken_++; i < pieces_.size(); i = taken_++) {
    pieces_[i].status = Read(pieces_[i]);
  }
}

template <typename Record>
void PieceReader<Record>::WorkOnTwoThreads() {
  if (pieces_.size() == 1) return Work();
  std::thread other([this] { Work(); });
  Work();
  other.join();
}

template <typename Record>
absl::Status PieceReader<Record>::Read(Piece& piece) const {
  const rocksdb::Slice bound(piece.end);
  rocksdb::ReadOptions options = CheckedRead();
  options.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> records(db_.NewIterator(options));
  for (records->Seek(piece.begin); records->Valid(); records->Next()) {
    DEVMGR_ASSIGN_OR_RETURN(auto record,
                            decode_(records->key().ToStringView(),
                                    records->value().ToStringView()));
    piece.records.push_back(std::move(record));
  }
  return FromRocksDb(records->status(), "reading the ledger");
}

template <typename Record>
absl::Status PieceReader<Record>::MoveTo(state::State& state) {
  DEVMGR_RETURN_IF_ERROR(status_);
  for (Piece& piece : pieces_) {
    DEVMGR_RETURN_IF_ERROR(piece.status);
    for (auto& record : piece.records) state.Put(std::move(record));
    piece.records.clear();
  }
  return absl::OkStatus();
}

template class PieceReader<state::PodRecord>;
template class PieceReader<state::ClaimRecord>;

}  // namespace devmgr::checkpoint
