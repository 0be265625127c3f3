// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/ledger_reader.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "checkpoint/codec.h"
#include "checkpoint/keys.h"
#include "checkpoint/ledger_store.h"
#include "checkpoint/piece_reader.h"
#include "checkpoint/rocksdb_config.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

std::string_view View(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

absl::StatusOr<std::uint64_t> ReadNumber(rocksdb::DB& db,
                                         const std::string& key) {
  std::string value;
  const rocksdb::Status status = db.Get(CheckedRead(), key, &value);
  if (status.IsNotFound()) {
    return DataLossError("record '{}' is missing", PrintKey(key));
  }
  DEVMGR_RETURN_IF_ERROR(
      FromRocksDb(status, fmt::format("record '{}'", PrintKey(key))));
  const auto number = DecodeNumber(value);
  if (number.has_value()) return *number;
  return DataLossError("record '{}': its {} bytes are not a number",
                       PrintKey(key), value.size());
}

/// A record must say of itself what its key says.
absl::Status CheckKey(std::string_view key, std::string_view own_key) {
  if (key == own_key) return absl::OkStatus();
  return DataLossError("record '{}' holds record '{}'", PrintKey(key),
                       PrintKey(own_key));
}

/// For reading much in order: in few calls.
rocksdb::ReadOptions ReadAhead() {
  rocksdb::ReadOptions options = CheckedRead();
  options.readahead_size = 256 * 1024;
  return options;
}

/// The first key behind those of a kind that is read by itself.
std::optional<std::string> EndOfKind(std::optional<KeyKind> kind,
                                     bool has_pods) {
  if (kind == KeyKind::kHistory) return HistoryEnd();
  if (kind == KeyKind::kClaim) return ClaimsEnd();
  // Not of the ledger, and large.
  if (kind == KeyKind::kObject) return ObjectsEnd();
  if (kind == KeyKind::kPod && has_pods) return PodsEnd();
  return std::nullopt;
}

absl::Status ReadAllButClaims(rocksdb::DB& db, state::State& state) {
  const bool has_pods = !state.pods.empty();
  const std::unique_ptr<rocksdb::Iterator> records(db.NewIterator(ReadAhead()));
  records->SeekToFirst();
  while (records->Valid()) {
    const std::string_view key = View(records->key());
    if (const auto end = EndOfKind(KindOf(key), has_pods); end.has_value()) {
      records->Seek(*end);
      continue;
    }
    DEVMGR_RETURN_IF_ERROR(PutRecord(key, View(records->value()), state));
    records->Next();
  }
  return FromRocksDb(records->status(), "reading the ledger");
}

}  // namespace

absl::Status PutRecord(std::string_view key, std::string_view value,
                       state::State& state) {
  const auto kind = KindOf(key);
  if (!kind.has_value()) {
    if (MayBeIgnored(key)) return absl::OkStatus();
    return DataLossError("record '{}' is of an unknown kind", PrintKey(key));
  }
  switch (*kind) {
    case KeyKind::kPod: {
      DEVMGR_ASSIGN_OR_RETURN(auto pod, ReadPod(key, value));
      state.Put(std::move(pod));
      break;
    }
    case KeyKind::kClaim: {
      DEVMGR_ASSIGN_OR_RETURN(auto claim, ReadClaim(key, value));
      state.Put(std::move(claim));
      break;
    }
    case KeyKind::kIdentity: {
      DEVMGR_ASSIGN_OR_RETURN(auto identity,
                              DecodeIdentity(value, PrintKey(key)));
      DEVMGR_RETURN_IF_ERROR(
          CheckKey(key, IdentityKeyOf(identity->kind, identity->name)));
      state.Put(std::move(identity));
      break;
    }
    case KeyKind::kResource: {
      DEVMGR_ASSIGN_OR_RETURN(auto resource,
                              DecodeResource(value, PrintKey(key)));
      DEVMGR_RETURN_IF_ERROR(CheckKey(key, ResourceKey(resource->name)));
      state.Put(std::move(resource));
      break;
    }
    case KeyKind::kHealth: {
      DEVMGR_ASSIGN_OR_RETURN(auto health, DecodeHealth(value, PrintKey(key)));
      DEVMGR_RETURN_IF_ERROR(CheckKey(key, HealthKey(health->Key())));
      state.Put(std::move(health));
      break;
    }
    case KeyKind::kSource: {
      DEVMGR_ASSIGN_OR_RETURN(auto source, DecodeSource(value, PrintKey(key)));
      DEVMGR_RETURN_IF_ERROR(CheckKey(key, SourceKeyOf(source->Key())));
      state.Put(std::move(source));
      break;
    }
    case KeyKind::kHolder: {
      DEVMGR_ASSIGN_OR_RETURN(auto holder, DecodeHolder(value, PrintKey(key)));
      DEVMGR_RETURN_IF_ERROR(CheckKey(key, HolderKey(holder->id)));
      state.Put(std::move(holder));
      break;
    }
    case KeyKind::kLocalClaim: {
      DEVMGR_ASSIGN_OR_RETURN(auto claim,
                              DecodeLocalClaim(value, PrintKey(key)));
      DEVMGR_RETURN_IF_ERROR(CheckKey(key, LocalClaimKey(claim->uid)));
      state.Put(std::move(claim));
      break;
    }
    case KeyKind::kAuthority: {
      DEVMGR_ASSIGN_OR_RETURN(auto authority,
                              DecodeAuthority(value, PrintKey(key)));
      state.Put(std::move(authority));
      break;
    }
    case KeyKind::kFormat:
    case KeyKind::kSeq:
    case KeyKind::kFirst:
    case KeyKind::kHistory:
    case KeyKind::kObject:
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const state::PodRecord>> ReadPod(
    std::string_view key, std::string_view value) {
  DEVMGR_ASSIGN_OR_RETURN(auto pod, DecodePod(value, PrintKey(key)));
  DEVMGR_RETURN_IF_ERROR(CheckKey(key, PodKey(pod->uid)));
  return pod;
}

absl::StatusOr<std::shared_ptr<const state::ClaimRecord>> ReadClaim(
    std::string_view key, std::string_view value) {
  DEVMGR_ASSIGN_OR_RETURN(auto claim, DecodeClaim(value, PrintKey(key)));
  DEVMGR_RETURN_IF_ERROR(CheckKey(key, ClaimKey(claim->uid)));
  return claim;
}

absl::StatusOr<std::uint64_t> ReadFormat(rocksdb::DB& db) {
  DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t format,
                          ReadNumber(db, FormatKey()));
  if (format >= kOldestFormat && format <= kFormatVersion) return format;
  return FailedPreconditionError(
      "the database has format {}, this version of devmgr knows formats {} to "
      "{}",
      format, kOldestFormat, kFormatVersion);
}

absl::StatusOr<std::uint64_t> ReadSeq(rocksdb::DB& db) {
  DEVMGR_RETURN_IF_ERROR(ReadFormat(db).status());
  return ReadNumber(db, SeqKey());
}

absl::StatusOr<state::State> ReadPods(rocksdb::DB& db) {
  state::State state;
  DEVMGR_ASSIGN_OR_RETURN(state.seq, ReadSeq(db));
  PieceReader<state::PodRecord> pods(db, PodsBegin(), PodsEnd(), &ReadPod);
  pods.WorkOnTwoThreads();
  DEVMGR_RETURN_IF_ERROR(pods.MoveTo(state));
  return state;
}

absl::StatusOr<state::State> ReadState(rocksdb::DB& db,
                                       const std::function<void()>& meanwhile,
                                       state::State begun) {
  state::State state = std::move(begun);
  DEVMGR_ASSIGN_OR_RETURN(state.seq, ReadSeq(db));
  PieceReader<state::ClaimRecord> claims(db, ClaimsBegin(), ClaimsEnd(),
                                         &ReadClaim);
  std::thread reader([&] { claims.Work(); });
  const absl::Status status = ReadAllButClaims(db, state);
  if (meanwhile != nullptr) meanwhile();
  claims.Work();
  reader.join();
  DEVMGR_RETURN_IF_ERROR(status);
  DEVMGR_RETURN_IF_ERROR(claims.MoveTo(state));
  return state;
}

absl::Status CheckHistoryBounds(rocksdb::DB& db, std::uint64_t first,
                                std::uint64_t last, std::uint64_t seq) {
  if (last != seq && last != 0) {
    return DataLossError("the history ends with batch {}, the ledger with {}",
                         last, seq);
  }
  DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t format, ReadFormat(db));
  if (format < kFormatWithFirst) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(const std::uint64_t begin,
                          ReadNumber(db, FirstKey()));
  const std::uint64_t found = first != 0 ? first : seq + 1;
  if (found == begin) return absl::OkStatus();
  return DataLossError("the history begins with batch {}, not with {}", found,
                       begin);
}

absl::Status VisitHistory(rocksdb::DB& db, std::uint64_t after,
                          std::size_t most, const HistoryVisitor& visit) {
  if (after == std::numeric_limits<std::uint64_t>::max()) {
    return absl::OkStatus();
  }
  const std::string end = HistoryEnd();
  const rocksdb::Slice bound(end);
  rocksdb::ReadOptions options =
      most == kWholeHistory ? ReadAhead() : CheckedRead();
  options.iterate_upper_bound = &bound;
  const std::unique_ptr<rocksdb::Iterator> batches(db.NewIterator(options));
  std::uint64_t last = 0;
  for (batches->Seek(HistoryKey(after + 1)); batches->Valid() && most > 0;
       batches->Next(), --most) {
    const std::string_view key = View(batches->key());
    const auto seq = HistorySeq(key);
    if (!seq.has_value() || (last != 0 && *seq != last + 1)) {
      return DataLossError("record '{}' does not follow 'h/{}'", PrintKey(key),
                           last);
    }
    DEVMGR_RETURN_IF_ERROR(visit(*seq, View(batches->value())));
    last = *seq;
  }
  return FromRocksDb(batches->status(), "reading the history");
}

absl::StatusOr<std::vector<state::Batch>> ReadHistory(rocksdb::DB& db,
                                                      std::uint64_t after,
                                                      std::size_t most) {
  std::vector<state::Batch> history;
  const auto add = [&](std::uint64_t seq, std::string_view bytes) {
    const std::string key = HistoryKey(seq);
    auto batch = DecodeBatch(bytes, PrintKey(key));
    DEVMGR_RETURN_IF_ERROR(batch.status());
    DEVMGR_RETURN_IF_ERROR(CheckKey(key, HistoryKey(batch->seq)));
    history.push_back(*std::move(batch));
    return absl::OkStatus();
  };
  DEVMGR_RETURN_IF_ERROR(VisitHistory(db, after, most, add));
  return history;
}

}  // namespace devmgr::checkpoint
