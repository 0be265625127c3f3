// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/replace_damaged.h"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint/salvage.h"
#include "checkpoint/witness.h"
#include "checkpoint/write_ledger.h"
#include "common/counted.h"
#include "common/status.h"
#include "state/mend.h"

namespace devmgr::checkpoint {
namespace {

/// Names of pods whose records may be lost: an object from a file has its
/// identity beside the record, and the history may tell of it.
state::NameOfPod PodNamesIn(const Salvaged& salvaged) {
  std::map<PodUid, ObjectName> names;
  for (const state::Batch& batch : salvaged.history) {
    for (const state::Change& change : batch.decision.changes) {
      if (const auto* put = std::get_if<state::PutPod>(&change)) {
        names[put->pod->uid] = put->pod->name;
      }
    }
  }
  for (const auto& [key, identity] : salvaged.state.identities) {
    if (identity->kind == "Pod") names[PodUid{identity->uid}] = identity->name;
  }
  return [names = std::move(names)](
             const PodUid& uid) -> std::optional<ObjectName> {
    const auto found = names.find(uid);
    if (found == names.end()) return std::nullopt;
    return found->second;
  };
}

/// The batch that the recovered ledger ends with.
state::Batch RecoveredBatch(const Salvaged& salvaged, std::uint64_t mended,
                            const absl::Status& damage, std::int64_t now_ms) {
  const state::State& state = salvaged.state;
  state::Batch batch;
  batch.seq = salvaged.last_seq + 1;
  batch.time_ms = now_ms;
  batch.decision.kind = state::DecisionKind::kRecovered;
  batch.decision.message = fmt::format(
      "a damaged ledger was recovered: {}, {} and {} {}, {} skipped, {} "
      "mended; {}",
      Counted(state.pods.size(), "pod"), Counted(state.claims.size(), "claim"),
      state.identities.size(),
      state.identities.size() == 1 ? "identity" : "identities",
      Counted(salvaged.skipped, "record"), mended, MessageOf(damage));
  return batch;
}

std::uint64_t HeldSeq(const StateDirectory& directory,
                      rocksdb::FileSystem& disk) {
  const auto witness = ReadWitness(disk, directory.path());
  return witness.ok() && witness->has_value() ? (*witness)->seq : 0;
}

}  // namespace

absl::StatusOr<RecoveryReport> RecoverLedger(StateDirectory& directory,
                                             const rocksdb::Options& options,
                                             const absl::Status& damage,
                                             std::int64_t now_ms) {
  DEVMGR_ASSIGN_OR_RETURN(const auto database, directory.FindDatabase());
  DEVMGR_ASSIGN_OR_RETURN(
      Salvaged salvaged,
      SalvageDatabase(database, directory.salvage_work(), options,
                      HeldSeq(directory, *options.env->GetFileSystem())));
  const std::uint64_t mended = Mend(salvaged.state, PodNamesIn(salvaged));
  const auto violations = state::CheckInvariants(salvaged.state);
  if (!violations.empty()) {
    return DataLossError("what can be read of it cannot be mended: {} ({})",
                         violations.front(),
                         Counted(violations.size(), "problem"));
  }
  salvaged.history.push_back(RecoveredBatch(salvaged, mended, damage, now_ms));
  salvaged.state.seq = salvaged.history.back().seq;
  RecoveryReport report;
  report.damage = MessageOf(damage);
  report.skipped = salvaged.skipped;
  report.skipped_records = std::move(salvaged.skipped_records);
  report.mended = mended;
  DEVMGR_ASSIGN_OR_RETURN(
      report.kept, directory.ReplaceDatabase(
                       [&](const std::filesystem::path& path) {
                         return WriteNewLedger(options, path, salvaged.state,
                                               salvaged.history,
                                               salvaged.objects);
                       },
                       now_ms));
  return report;
}

}  // namespace devmgr::checkpoint
