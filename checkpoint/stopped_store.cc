// SPDX-License-Identifier: Apache-2.0
#include <rocksdb/db.h>

#include <memory>
#include <utility>

#include "checkpoint/ledger_reader.h"
#include "checkpoint/ledger_store.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/state_directory.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

absl::StatusOr<StoreContents> ReadDatabase(const std::string& path) {
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::OpenForReadOnly(LedgerOptions(nullptr), path, &raw);
  const std::unique_ptr<rocksdb::DB> db(raw);
  DEVMGR_RETURN_IF_ERROR(FromRocksDb(status, "cannot open it"));
  StoreContents contents;
  DEVMGR_ASSIGN_OR_RETURN(contents.state, ReadState(*db));
  DEVMGR_ASSIGN_OR_RETURN(contents.history, ReadHistory(*db, 0, kWholeHistory));
  if (!contents.history.empty()) {
    DEVMGR_RETURN_IF_ERROR(
        CheckHistoryEnd(contents.history.back().seq, contents.state.seq));
  }
  return contents;
}

}  // namespace

absl::StatusOr<StoreContents> ReadStoppedStore(
    const std::filesystem::path& directory) {
  DEVMGR_ASSIGN_OR_RETURN(const StateDirectory held,
                          StateDirectory::HoldForReading(directory));
  DEVMGR_ASSIGN_OR_RETURN(const auto database, held.FindDatabase());
  auto contents = ReadDatabase(database.string());
  if (contents.ok()) return contents;
  return WithContext(contents.status(), "ledger in '{}'", database.string());
}

}  // namespace devmgr::checkpoint
