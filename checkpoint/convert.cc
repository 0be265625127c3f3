// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/convert.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "api/quote.h"
#include "checkpoint/codec.h"
#include "checkpoint/examine.h"
#include "checkpoint/keys.h"
#include "checkpoint/ledger_reader.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/state_directory.h"
#include "checkpoint/witness.h"
#include "checkpoint/write_ledger.h"
#include "common/counted.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

/// The one older format that is converted to.
constexpr std::uint64_t kTarget = 2;

bool IsNew(const state::Change& change) {
  return std::holds_alternative<state::PutSource>(change) ||
         std::holds_alternative<state::EraseSource>(change) ||
         std::holds_alternative<state::PutHolder>(change) ||
         std::holds_alternative<state::EraseHolder>(change) ||
         std::holds_alternative<state::PutLocalClaim>(change) ||
         std::holds_alternative<state::EraseLocalClaim>(change) ||
         std::holds_alternative<state::PutAuthority>(change) ||
         std::holds_alternative<state::EraseAuthority>(change);
}

/// Whether a reader of format 2 would refuse the batch.
bool IsNew(const state::Batch& batch) {
  const state::Decision& decision = batch.decision;
  return decision.kind >= state::DecisionKind::kSource ||
         std::any_of(decision.changes.begin(), decision.changes.end(),
                     [](const state::Change& change) { return IsNew(change); });
}

/// Removes the history up to the last batch that format 2 does not know.
absl::Status DropNewHistory(rocksdb::DB& db, std::uint64_t last_seq,
                            rocksdb::WriteBatch& write,
                            Conversion& conversion) {
  DEVMGR_ASSIGN_OR_RETURN(const auto history,
                          ReadHistory(db, 0, kWholeHistory));
  std::size_t dropped = 0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (IsNew(history[i])) dropped = i + 1;
  }
  for (std::size_t i = 0; i < dropped; ++i) {
    write.Delete(HistoryKey(history[i].seq));
  }
  conversion.batches = history.size() - dropped;
  const std::uint64_t first =
      dropped < history.size() ? history[dropped].seq : last_seq + 1;
  write.Put(FirstKey(), EncodeNumber(first));
  if (dropped > 0) {
    conversion.lost.push_back(fmt::format(
        "the history up to batch {} ({} of {} batches): format {} does not "
        "know "
        "some of these decisions",
        history[dropped - 1].seq, dropped, history.size(), kTarget));
  }
  return absl::OkStatus();
}

/// What the loss of a record of a kind that format 2 does not know means;
/// nothing for other records.
absl::StatusOr<std::optional<std::string>> LossOf(const std::string& key,
                                                  const std::string& value) {
  const auto kind = KindOf(key);
  if (!kind.has_value()) {
    return fmt::format("record '{}', of a newer version", PrintKey(key));
  }
  if (*kind == KeyKind::kSource) {
    DEVMGR_ASSIGN_OR_RETURN(const auto source,
                            DecodeSource(value, PrintKey(key)));
    return fmt::format(
        "how the source {} is recognised after a restart: an older version "
        "releases all pods when its directory is mounted late",
        api::Quoted(source->name));
  }
  if (*kind == KeyKind::kHolder) {
    DEVMGR_ASSIGN_OR_RETURN(const auto holder,
                            DecodeHolder(value, PrintKey(key)));
    return fmt::format(
        "that {} holds {}: an older version gives them to other pods while it "
        "runs",
        state::HolderText(*holder),
        Counted(holder->devices.size() + holder->cdi_devices.size(), "device"));
  }
  if (*kind == KeyKind::kLocalClaim) {
    DEVMGR_ASSIGN_OR_RETURN(const auto claim,
                            DecodeLocalClaim(value, PrintKey(key)));
    return fmt::format(
        "that this node has allocated claim {}: an older version allocates no "
        "claims, and the pods of this one wait",
        api::Quoted(claim->object->metadata.FullName().ToString()));
  }
  if (*kind == KeyKind::kAuthority) {
    return std::string(
        "which party allocates devices: an older version goes by its "
        "configuration, and hands nothing over");
  }
  return std::nullopt;
}

/// Removes the records of kinds that format 2 does not know.
absl::Status DropNewRecords(rocksdb::DB& db, rocksdb::WriteBatch& write,
                            Conversion& conversion) {
  const std::unique_ptr<rocksdb::Iterator> records(
      db.NewIterator(CheckedRead()));
  std::size_t objects = 0;
  records->SeekToFirst();
  while (records->Valid()) {
    const std::string key = records->key().ToString();
    if (KindOf(key) == KeyKind::kHistory) {
      records->Seek(HistoryEnd());
      continue;
    }
    if (KindOf(key) == KeyKind::kObject) {
      write.Delete(key);
      ++objects;
      records->Next();
      continue;
    }
    DEVMGR_ASSIGN_OR_RETURN(auto loss,
                            LossOf(key, records->value().ToString()));
    if (loss.has_value()) {
      write.Delete(key);
      conversion.lost.push_back(*std::move(loss));
    }
    records->Next();
  }
  if (objects > 0) {
    conversion.lost.push_back(fmt::format(
        "what drivers have published to this node ({}): they publish it anew, "
        "and resource versions begin again",
        Counted(objects, "record")));
  }
  return FromRocksDb(records->status(), "reading the ledger");
}

/// Takes out of the claims what format 2 does not know.
absl::Status StripClaims(rocksdb::DB& db, rocksdb::WriteBatch& write,
                         Conversion& conversion) {
  const std::unique_ptr<rocksdb::Iterator> records(
      db.NewIterator(CheckedRead()));
  for (records->Seek(ClaimKey({})); records->Valid(); records->Next()) {
    const std::string key = records->key().ToString();
    if (KindOf(key) != KeyKind::kClaim) break;
    DEVMGR_ASSIGN_OR_RETURN(
        const auto claim,
        DecodeClaim(records->value().ToString(), PrintKey(key)));
    state::ClaimRecord stripped = *claim;
    for (auto& [name, driver] : stripped.drivers) {
      driver.spec_recovery = state::SpecRecovery::kNone;
    }
    if (stripped == *claim) continue;
    write.Put(key, EncodeClaim(stripped));
    conversion.lost.push_back(fmt::format(
        "what was tried to bring back missing CDI specs of claim {}: its "
        "drivers are asked once more",
        api::Quoted(claim->name.ToString())));
  }
  return FromRocksDb(records->status(), "reading the ledger");
}

/// What of the pod an older version does not know, and acts otherwise for it.
void AddLosses(const state::PodRecord& pod, Conversion& conversion) {
  const std::string name = api::Quoted(pod.name.ToString());
  if (state::IsEvicting(pod)) {
    conversion.lost.push_back(fmt::format(
        "that pod {} has to leave its devices: with an older version it keeps "
        "them",
        name));
  }
  if (pod.imported) {
    conversion.lost.push_back(fmt::format(
        "that pod {} was imported and the source has not shown it yet: an "
        "older version releases it when the source has another name for it",
        name));
  }
}

/// The same of pods.
absl::Status StripPods(rocksdb::DB& db, rocksdb::WriteBatch& write,
                       Conversion& conversion) {
  const std::unique_ptr<rocksdb::Iterator> records(
      db.NewIterator(CheckedRead()));
  for (records->Seek(PodKey({})); records->Valid(); records->Next()) {
    const std::string key = records->key().ToString();
    if (KindOf(key) != KeyKind::kPod) break;
    DEVMGR_ASSIGN_OR_RETURN(
        const auto pod, DecodePod(records->value().ToString(), PrintKey(key)));
    state::PodRecord stripped = *pod;
    stripped.eviction.reset();
    stripped.imported = false;
    stripped.local = false;
    stripped.alignment = nullptr;
    for (state::DeviceHold& hold : stripped.holds) hold.edits.response.reset();
    if (stripped == *pod) continue;
    write.Put(key, EncodePod(stripped));
    AddLosses(*pod, conversion);
  }
  return FromRocksDb(records->status(), "reading the ledger");
}

absl::Status Apply(StateDirectory& directory, const rocksdb::Options& options,
                   rocksdb::WriteBatch& write) {
  DEVMGR_RETURN_IF_ERROR(directory.SettleDatabase());
  DEVMGR_ASSIGN_OR_RETURN(const auto db,
                          OpenDatabase(options, directory.database()));
  DEVMGR_RETURN_IF_ERROR(FromRocksDb(db->Write(DurableWrite(), &write),
                                     "cannot convert the ledger"));
  DEVMGR_RETURN_IF_ERROR(
      FromRocksDb(db->Close(), "cannot close the converted ledger"));
  return directory.SetFormat(kTarget);
}

}  // namespace

absl::StatusOr<Conversion> ConvertStoppedStore(
    const std::filesystem::path& directory, std::uint64_t to, bool apply) {
  if (to != kTarget) {
    return InvalidArgumentError(
        "a ledger cannot be converted to format {}, only to format {}", to,
        kTarget);
  }
  // Looks without writing whether there is one.
  DEVMGR_RETURN_IF_ERROR(StateDirectory::HoldForReading(directory).status());
  const rocksdb::Options options = LedgerOptions(nullptr);
  DEVMGR_ASSIGN_OR_RETURN(
      StateDirectory held,
      StateDirectory::Hold(directory, options.env->GetFileSystem()));
  if (held.format() <= kTarget) {
    return FailedPreconditionError("the ledger in '{}' has format {} already",
                                   directory.string(), held.format());
  }
  DEVMGR_ASSIGN_OR_RETURN(
      const auto witness,
      ReadWitness(*options.env->GetFileSystem(), held.path()));
  DEVMGR_ASSIGN_OR_RETURN(const auto found, held.FindDatabase());
  auto examined = ExamineDatabase(found, options, witness);
  if (!examined.ok()) {
    return WithContext(examined.status(), "ledger in '{}'", found.string());
  }
  Conversion conversion;
  rocksdb::WriteBatch write;
  DEVMGR_RETURN_IF_ERROR(DropNewRecords(*examined->db, write, conversion));
  DEVMGR_RETURN_IF_ERROR(StripClaims(*examined->db, write, conversion));
  DEVMGR_RETURN_IF_ERROR(StripPods(*examined->db, write, conversion));
  DEVMGR_RETURN_IF_ERROR(
      DropNewHistory(*examined->db, examined->state.seq, write, conversion));
  write.Put(FormatKey(), EncodeNumber(kTarget));
  examined->db = nullptr;
  if (apply) DEVMGR_RETURN_IF_ERROR(Apply(held, options, write));
  return conversion;
}

}  // namespace devmgr::checkpoint
