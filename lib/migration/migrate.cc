// SPDX-License-Identifier: Apache-2.0
//
// Between the kubelet's files and the ledger of a stopped manager.
#include <devmgr/kubelet_checkpoint.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "checkpoint/ledger_store.h"
#include "common/boot_id.h"
#include "common/status.h"
#include "migration/kubelet_export.h"
#include "migration/kubelet_files.h"
#include "migration/kubelet_import.h"
#include "migration/utc_text.h"

namespace devmgr {
namespace {

using migration::ImportPlan;
using migration::ImportTerms;
using migration::KubeletFiles;

constexpr char kKeptDirectory[] = "kubelet-import";

std::int64_t MsOf(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             time.time_since_epoch())
      .count();
}

absl::StatusOr<std::string> BootIdOf(const KubeletImportOptions& options) {
  if (options.boot_id) return options.boot_id();
  return KernelBootId();
}

/// A file of this boot was written after it began. One from the future proves
/// nothing: the clock was set back.
bool IsOfThisBoot(std::optional<std::int64_t> modified_ms,
                  std::int64_t boot_began_ms, std::int64_t now_ms) {
  return modified_ms.has_value() && *modified_ms >= boot_began_ms &&
         *modified_ms <= now_ms;
}

absl::StatusOr<ImportTerms> TermsOf(const KubeletImportOptions& options,
                                    KubeletFiles& files) {
  ImportTerms terms;
  DEVMGR_ASSIGN_OR_RETURN(terms.boot_id, BootIdOf(options));
  terms.now_ms =
      MsOf(options.now ? options.now() : std::chrono::system_clock::now());
  const std::int64_t began =
      options.boot_time ? MsOf(options.boot_time()) : terms.now_ms - BootMs();
  terms.from = options.kubelet_dir.string();
  const auto judge = [&](std::optional<std::int64_t> modified_ms,
                         std::string_view name, std::string_view follows) {
    const bool is_now = IsOfThisBoot(modified_ms, began, terms.now_ms);
    if (modified_ms.has_value() && !is_now) {
      files.notes.push_back(fmt::format(
          "{} was written at {}, this boot began at {} and it is {}: {}", name,
          migration::UtcText(*modified_ms), migration::UtcText(began),
          migration::UtcText(terms.now_ms), follows));
    }
    return is_now;
  };
  terms.devices_of_this_boot =
      judge(files.devices_ms, kubelet_checkpoint::kDeviceCheckpointName,
            "its pods are Ready once they are admitted again");
  terms.claims_of_this_boot =
      judge(files.claims_ms, kubelet_checkpoint::kDraStateName,
            "drivers prepare its claims again");
  return terms;
}

std::vector<std::string> LossesOf(const KubeletFiles& files) {
  std::vector<std::string> losses;
  for (const migration::DamagedFile& file : files.damaged) {
    losses.push_back(fmt::format("all of '{}', which is damaged: {}",
                                 file.path.string(), MessageOf(file.why)));
  }
  return losses;
}

std::size_t CountAdopted(const ImportPlan& plan, const std::string& boot_id) {
  const auto& changes = plan.decision.changes;
  return static_cast<std::size_t>(
      std::count_if(changes.begin(), changes.end(), [&](const auto& change) {
        const auto* put = std::get_if<state::PutClaim>(&change);
        if (put == nullptr || put->claim->pods.empty()) return false;
        return std::all_of(put->claim->drivers.begin(),
                           put->claim->drivers.end(), [&](const auto& driver) {
                             return driver.second.phase ==
                                        state::DriverPhase::kPrepared &&
                                    driver.second.boot_id == boot_id;
                           });
      }));
}

/// The state of a ledger that there may not be yet; nothing is changed.
absl::StatusOr<state::State> LookAtLedger(
    const std::filesystem::path& state_dir) {
  auto contents = checkpoint::ReadStoppedStore(state_dir);
  if (absl::IsNotFound(contents.status())) return state::State();
  if (!contents.ok()) return contents.status();
  return std::move(contents->state);
}

absl::Status CheckImportOptions(const KubeletImportOptions& options) {
  if (options.state_dir.empty()) {
    return InvalidArgumentError("state_dir is empty");
  }
  if (options.kubelet_dir.empty()) {
    return InvalidArgumentError("kubelet_dir is empty");
  }
  return absl::OkStatus();
}

absl::Status KeepDamaged(const KubeletFiles& files,
                         const std::filesystem::path& state_dir,
                         KubeletImport& result) {
  for (const migration::DamagedFile& file : files.damaged) {
    DEVMGR_ASSIGN_OR_RETURN(
        auto kept, migration::KeepCopy(file, state_dir / kKeptDirectory));
    if (kept.has_value()) result.kept.push_back(*std::move(kept));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KubeletImport> ImportKubelet(
    const KubeletImportOptions& options) {
  DEVMGR_RETURN_IF_ERROR(CheckImportOptions(options));
  DEVMGR_ASSIGN_OR_RETURN(const state::State found,
                          LookAtLedger(options.state_dir));
  DEVMGR_RETURN_IF_ERROR(migration::CheckMayImport(found));
  DEVMGR_ASSIGN_OR_RETURN(KubeletFiles files,
                          migration::ReadKubeletFiles(options.kubelet_dir));
  DEVMGR_ASSIGN_OR_RETURN(const ImportTerms terms, TermsOf(options, files));
  DEVMGR_ASSIGN_OR_RETURN(ImportPlan plan,
                          migration::PlanImport(found, files.state, terms));
  KubeletImport result;
  result.pods = plan.pods;
  result.devices = plan.devices;
  result.claims = plan.claims;
  result.adopted = CountAdopted(plan, terms.boot_id);
  result.notes = std::move(files.notes);
  result.losses = LossesOf(files);
  for (const migration::DamagedFile& file : files.damaged) {
    result.damaged.push_back(file.path);
  }
  result.losses.insert(result.losses.end(), plan.losses.begin(),
                       plan.losses.end());
  if (options.dry_run) return result;
  if (!result.losses.empty() && !options.accept_losses) return result;
  DEVMGR_ASSIGN_OR_RETURN(const auto store,
                          checkpoint::OpenRocksDbStore({options.state_dir}));
  DEVMGR_RETURN_IF_ERROR(KeepDamaged(files, options.state_dir, result));
  DEVMGR_ASSIGN_OR_RETURN(state::State state, store->Load());
  // It was not held in between.
  DEVMGR_RETURN_IF_ERROR(migration::CheckMayImport(state));
  state::Batch batch{state.seq + 1, terms.now_ms, std::move(plan.decision), {}};
  DEVMGR_RETURN_IF_ERROR(state::ApplyNew(state, batch));
  DEVMGR_RETURN_IF_ERROR(store->Append({&batch, 1}));
  result.written = true;
  return result;
}

absl::StatusOr<KubeletExport> ExportKubelet(
    const KubeletExportOptions& options) {
  if (options.state_dir.empty()) {
    return InvalidArgumentError("state_dir is empty");
  }
  if (options.out_dir.empty()) return InvalidArgumentError("out_dir is empty");
  DEVMGR_ASSIGN_OR_RETURN(const checkpoint::StoreContents contents,
                          checkpoint::ReadStoppedStore(options.state_dir));
  migration::ExportPlan plan = migration::PlanExport(contents.state);
  KubeletExport result;
  result.pods = plan.pods;
  result.devices = plan.held;
  result.claims = plan.entries;
  result.losses = std::move(plan.losses);
  if (options.dry_run) return result;
  if (!result.losses.empty() && !options.accept_losses) return result;
  DEVMGR_RETURN_IF_ERROR(migration::WriteKubeletFiles(options.out_dir, plan));
  result.written = true;
  return result;
}

}  // namespace devmgr
