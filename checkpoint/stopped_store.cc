// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>

#include "checkpoint/examine.h"
#include "checkpoint/ledger_reader.h"
#include "checkpoint/ledger_store.h"
#include "checkpoint/rocksdb_config.h"
#include "checkpoint/state_directory.h"
#include "checkpoint/witness.h"
#include "common/status.h"

namespace devmgr::checkpoint {
namespace {

absl::StatusOr<StoreContents> ReadDatabase(
    const std::filesystem::path& database,
    const std::optional<Witness>& witness) {
  DEVMGR_ASSIGN_OR_RETURN(
      Examined found,
      ExamineDatabase(database, LedgerOptions(nullptr), witness));
  StoreContents contents;
  contents.state = std::move(found.state);
  contents.report = std::move(found.report);
  DEVMGR_ASSIGN_OR_RETURN(contents.history,
                          ReadHistory(*found.db, 0, kWholeHistory));
  return contents;
}

}  // namespace

absl::StatusOr<StoreContents> ReadStoppedStore(
    const std::filesystem::path& directory) {
  DEVMGR_ASSIGN_OR_RETURN(const StateDirectory held,
                          StateDirectory::HoldForReading(directory));
  DEVMGR_ASSIGN_OR_RETURN(const auto database, held.FindDatabase());
  DEVMGR_ASSIGN_OR_RETURN(
      const auto witness,
      ReadWitness(*rocksdb::FileSystem::Default(), directory));
  auto contents = ReadDatabase(database, witness);
  if (contents.ok()) return contents;
  return WithContext(contents.status(), "ledger in '{}'", database.string());
}

}  // namespace devmgr::checkpoint
