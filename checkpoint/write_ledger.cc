// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/write_ledger.h"

#include <fmt/core.h>

#include <string>
#include <variant>

#include "checkpoint/codec.h"
#include "checkpoint/keys.h"
#include "checkpoint/rocksdb_config.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

struct ChangeWriter {
  rocksdb::WriteBatch& write;

  bool operator()(const state::PutPod& change) const {
    return change.pod != nullptr &&
           Put(PodKey(change.pod->uid), EncodePod(*change.pod));
  }
  bool operator()(const state::ErasePod& change) const {
    return Delete(PodKey(change.uid));
  }
  bool operator()(const state::PutClaim& change) const {
    return change.claim != nullptr &&
           Put(ClaimKey(change.claim->uid), EncodeClaim(*change.claim));
  }
  bool operator()(const state::EraseClaim& change) const {
    return Delete(ClaimKey(change.uid));
  }
  bool operator()(const state::PutIdentity& change) const {
    return change.identity != nullptr &&
           Put(IdentityKeyOf(change.identity->kind, change.identity->name),
               EncodeIdentity(*change.identity));
  }
  bool operator()(const state::EraseIdentity& change) const {
    return Delete(IdentityKeyOf(change.kind, change.name));
  }
  bool operator()(const state::PutResource& change) const {
    return change.resource != nullptr && Put(ResourceKey(change.resource->name),
                                             EncodeResource(*change.resource));
  }
  bool operator()(const state::EraseResource& change) const {
    return Delete(ResourceKey(change.name));
  }
  bool operator()(const state::PutHealth& change) const {
    return change.health != nullptr &&
           Put(HealthKey(change.health->Key()), EncodeHealth(*change.health));
  }
  bool operator()(const state::EraseHealth& change) const {
    return Delete(HealthKey(change.device));
  }
  bool operator()(const state::PutSource& change) const {
    return change.source != nullptr &&
           Put(SourceKeyOf(change.source->Key()), EncodeSource(*change.source));
  }
  bool operator()(const state::EraseSource& change) const {
    return Delete(SourceKeyOf(change.source));
  }
  bool operator()(const state::PutHolder& change) const {
    return change.holder != nullptr &&
           Put(HolderKey(change.holder->id), EncodeHolder(*change.holder));
  }
  bool operator()(const state::EraseHolder& change) const {
    return Delete(HolderKey(change.id));
  }
  bool operator()(const state::PutLocalClaim& change) const {
    return change.claim != nullptr && Put(LocalClaimKey(change.claim->uid),
                                          EncodeLocalClaim(*change.claim));
  }
  bool operator()(const state::EraseLocalClaim& change) const {
    return Delete(LocalClaimKey(change.uid));
  }
  bool operator()(const state::PutAuthority& change) const {
    return change.authority != nullptr &&
           Put(AuthorityKeyOf(), EncodeAuthority(*change.authority));
  }
  bool operator()(const state::EraseAuthority&) const {
    return Delete(AuthorityKeyOf());
  }

 private:
  bool Put(const std::string& key, const std::string& value) const {
    return write.Put(key, value).ok();
  }
  bool Delete(const std::string& key) const { return write.Delete(key).ok(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenDatabase(
    const rocksdb::Options& options, const std::filesystem::path& path) {
  rocksdb::DB* db = nullptr;
  const auto open = [&] {
    return rocksdb::DB::Open(options, path.string(), &db);
  };
  // What a first try has begun to create is in the way of a second one.
  const rocksdb::Status status =
      options.error_if_exists ? open() : OpenTwice(open);
  std::unique_ptr<rocksdb::DB> owned(db);
  DEVMGR_RETURN_IF_ERROR(FromRocksDb(
      status, fmt::format("cannot open the ledger in '{}'", path.string())));
  return owned;
}

bool AddChange(const state::Change& change, rocksdb::WriteBatch& write) {
  return std::visit(ChangeWriter{write}, change);
}

absl::Status WriteNewLedger(const rocksdb::Options& options,
                            const std::filesystem::path& path,
                            const state::State& state,
                            std::span<const state::Batch> history,
                            const std::map<std::string, std::string>& objects) {
  rocksdb::Options creating = options;
  creating.create_if_missing = true;
  creating.error_if_exists = true;
  DEVMGR_ASSIGN_OR_RETURN(const auto db, OpenDatabase(creating, path));
  rocksdb::WriteBatch write;
  write.Put(FormatKey(), EncodeNumber(kFormatVersion));
  write.Put(SeqKey(), EncodeNumber(state.seq));
  write.Put(FirstKey(), EncodeNumber(history.empty() ? state.seq + 1
                                                     : history.front().seq));
  const ChangeWriter put{write};
  for (const auto& [uid, pod] : state.pods) put(state::PutPod{pod});
  for (const auto& [uid, claim] : state.claims) put(state::PutClaim{claim});
  for (const auto& [key, identity] : state.identities) {
    put(state::PutIdentity{identity});
  }
  for (const auto& [name, resource] : state.resources) {
    put(state::PutResource{resource});
  }
  for (const auto& [key, health] : state.healths) {
    put(state::PutHealth{health});
  }
  for (const auto& [key, source] : state.sources) put(state::PutSource{source});
  for (const auto& [id, holder] : state.foreign_holders)
    put(state::PutHolder{holder});
  for (const auto& [uid, claim] : state.local_claims)
    put(state::PutLocalClaim{claim});
  for (const auto& [key, authority] : state.authority) {
    put(state::PutAuthority{authority});
  }
  for (const state::Batch& batch : history) {
    write.Put(HistoryKey(batch.seq), EncodeBatch(batch));
  }
  for (const auto& [key, value] : objects) write.Put(key, value);
  DEVMGR_RETURN_IF_ERROR(FromRocksDb(db->Write(DurableWrite(), &write),
                                     "cannot begin the ledger"));
  return FromRocksDb(db->Close(), "cannot begin the ledger");
}

}  // namespace devmgr::checkpoint
