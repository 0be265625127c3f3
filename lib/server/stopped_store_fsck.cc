// SPDX-License-Identifier: Apache-2.0
#include "server/stopped_store_fsck.h"

#include <chrono>
#include <utility>
#include <vector>

#include "cdistore/spec_directory.h"
#include "common/boot_id.h"
#include "common/status.h"
#include "fsck/fsck.h"

namespace devmgr::server {
namespace {

absl::StatusOr<std::vector<fsck::Finding>> Check(
    const checkpoint::StoreContents& contents, const FsckRequest& request) {
  std::string boot_id = request.boot_id;
  if (boot_id.empty()) {
    DEVMGR_ASSIGN_OR_RETURN(boot_id, KernelBootId());
  }
  std::shared_ptr<const CdiRegistry> specs;
  if (!request.cdi_spec_dirs.empty()) {
    specs = cdistore::ReadSpecFiles(request.cdi_spec_dirs);
  }
  fsck::PastDevices past;
  for (const state::Batch& batch : contents.history) past.Learn(batch);
  return fsck::RunChecks({contents.state, boot_id, past, specs.get(), nullptr,
                          cdistore::NamesOf(request.cdi_spec_dirs)});
}

std::int64_t UnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Records the decision, then does what lies outside the ledger.
absl::Status Repair(const fsck::Finding& finding,
                    checkpoint::LedgerStore& store, state::State& state) {
  state::Batch batch;
  DEVMGR_ASSIGN_OR_RETURN(batch.decision, fsck::DecideRepair(finding, state));
  batch.seq = state.seq + 1;
  batch.time_ms = UnixMs();
  DEVMGR_RETURN_IF_ERROR(state::ApplyNew(state, batch));
  DEVMGR_RETURN_IF_ERROR(store.Append({&batch, 1}));
  const auto* file = std::get_if<fsck::SetAside>(&finding.repair);
  return file != nullptr ? cdistore::SetAside(file->file) : absl::OkStatus();
}

absl::StatusOr<checkpoint::StoreContents> Contents(
    checkpoint::LedgerStore& store) {
  checkpoint::StoreContents contents;
  DEVMGR_ASSIGN_OR_RETURN(contents.state, store.Load());
  DEVMGR_ASSIGN_OR_RETURN(contents.history, store.History(0));
  return contents;
}

}  // namespace

absl::StatusOr<FsckReport> CheckContents(
    const checkpoint::StoreContents& contents, const FsckRequest& request) {
  DEVMGR_ASSIGN_OR_RETURN(const std::vector<fsck::Finding> findings,
                          Check(contents, request));
  return fsck::ReportOf(findings, contents.state.seq);
}

absl::StatusOr<FsckReport> RepairStoppedStore(
    const std::filesystem::path& state_dir, const FsckRequest& request) {
  checkpoint::RocksDbStoreOptions options;
  options.directory = state_dir;
  DEVMGR_ASSIGN_OR_RETURN(const auto store,
                          checkpoint::OpenRocksDbStore(options));
  DEVMGR_ASSIGN_OR_RETURN(checkpoint::StoreContents contents, Contents(*store));
  DEVMGR_ASSIGN_OR_RETURN(const std::vector<fsck::Finding> findings,
                          Check(contents, request));
  std::vector<FsckRepair> repairs;
  for (const fsck::Finding& finding : findings) {
    if (std::holds_alternative<std::monostate>(finding.repair)) continue;
    const absl::Status status = Repair(finding, *store, contents.state);
    repairs.push_back(
        {finding.shown.object, finding.shown.repair, MessageOf(status)});
  }
  // As it is on disk, not as it should be.
  DEVMGR_ASSIGN_OR_RETURN(contents, Contents(*store));
  DEVMGR_ASSIGN_OR_RETURN(FsckReport report, CheckContents(contents, request));
  report.repairs = std::move(repairs);
  return report;
}

}  // namespace devmgr::server
