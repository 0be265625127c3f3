// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/status_types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace devmgr {

/// What to take over from a kubelet.
struct KubeletImportOptions {
  /// The state directory of a stopped manager; created if missing. Required.
  std::filesystem::path state_dir;
  /// The kubelet's root directory, or a copy: `dra_manager_state` is in it, and
  /// `kubelet_internal_checkpoint` in its `device-plugins`. Required.
  std::filesystem::path kubelet_dir;
  /// Only say what would be done: nothing is written.
  bool dry_run = false;
  /// Import although something of the files has to be left out. Without it,
  /// nothing is written then.
  bool accept_losses = false;
  /// The ID of this boot; of the kernel when null.
  std::function<std::string()> boot_id = nullptr;
  /// When this boot began, and what time it is; of the kernel when null.
  std::function<WallTime()> boot_time = nullptr;
  std::function<WallTime()> now = nullptr;
};

/// What became of the kubelet's files.
struct KubeletImport {
  bool written = false;     ///< All of it is in the ledger, on disk.
  std::size_t pods = 0;     ///< Held by their UIDs.
  std::size_t devices = 0;  ///< Of device plugins.
  std::size_t claims = 0;   ///< Of DRA drivers.
  std::size_t adopted = 0;  ///< Of those, all of which counts as prepared.
  /// What is left out: one sentence for each.
  std::vector<std::string> losses;
  std::vector<std::string> notes;  ///< What else is to be known.
  /// Copies of damaged files, in the state directory.
  std::vector<std::filesystem::path> kept;
};

/// Takes over the devices and claims that the pods of a kubelet hold, so that
/// these run on: the whole of it in one write, or nothing. The kubelet has to
/// be stopped, and stays so.
///
/// The files name pods by their UIDs alone. A pod that holds devices of plugins
/// only can be resolved at once, by what its plugins answered to the kubelet;
/// one with claims once its source shows it. Claims count as prepared if their
/// file was written since this boot began; else their drivers prepare them
/// again. A damaged file is a loss: it is named, and copied into
/// `state_dir/kubelet-import`.
///   InvalidArgument     an option is missing
///   NotFound            there are no files of a kubelet
///   AlreadyExists       it was done before; the message says when
///   FailedPrecondition  the ledger holds something, or a process holds it, or
///                       it is of a newer format
///   DataLoss            the ledger is damaged
///   PermissionDenied, Unavailable  a file cannot be read or written
DEVMGR_EXPORT absl::StatusOr<KubeletImport> ImportKubelet(
    const KubeletImportOptions& options);

/// What to hand back to a kubelet.
struct KubeletExportOptions {
  /// The state directory of a stopped manager; only read. Required.
  std::filesystem::path state_dir;
  /// A directory that is missing or empty, in which the files come to lie as in
  /// the kubelet's root directory. Required.
  std::filesystem::path out_dir;
  bool dry_run = false;        ///< As of KubeletImportOptions.
  bool accept_losses = false;  ///< The same.
};

/// What the files hold.
struct KubeletExport {
  bool written = false;     ///< Both files are there, on disk.
  std::size_t pods = 0;     ///< With devices or claims.
  std::size_t devices = 0;  ///< Of device plugins.
  std::size_t claims = 0;   ///< Of DRA drivers.
  /// What the files cannot say: one sentence for each.
  std::vector<std::string> losses;
};

/// Writes files with which a kubelet of the same node goes on: running pods
/// keep their devices and claims. Both files, or none.
///   InvalidArgument     an option is missing, or a text that plugins or
///                       drivers chose is not UTF-8
///   NotFound            there is no ledger
///   FailedPrecondition  a running process holds the ledger, its format is
///                       newer, or something is in `out_dir`
///   DataLoss            the ledger is damaged
///   PermissionDenied, Unavailable  the files cannot be written
DEVMGR_EXPORT absl::StatusOr<KubeletExport> ExportKubelet(
    const KubeletExportOptions& options);

}  // namespace devmgr
