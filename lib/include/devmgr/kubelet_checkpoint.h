// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/status_types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace devmgr {

/// One of a kubelet's checkpoint files, as VerifyKubeletFiles finds it.
struct KubeletFile {
  enum class Checksum {
    kRight,  ///< It is that of the file's data.
    kWrong,  ///< It is not: the file is damaged.
    /// It is not the one computed here, which depends on the release of the
    /// kubelet for layouts of before 1.32: the file may be damaged, or not.
    kNotProven,
    /// The file is not there, or is damaged so that its data is not known.
    kUnknown,
  };

  std::filesystem::path path;
  bool exists = false;
  Checksum checksum = Checksum::kUnknown;
  /// Of devices `1` or `2`; of claims the version that stands in the file.
  /// Empty when it is not known.
  std::string format;
  /// Which kubelets write this layout, such as `since 1.32`. Empty when it is
  /// not known.
  std::string kubelets;
  // How much it holds; nothing when that is not known.
  std::optional<std::size_t> pods;
  std::optional<std::size_t> claims;  ///< Nothing in the file of devices.
  /// Of plugins by container, as an import counts them; of drivers by claim.
  std::optional<std::size_t> devices;
  std::string problem;  ///< Why the checksum is not found right; else empty.
};

/// Looks at both files of a kubelet, in all layouts that ImportKubelet reads:
/// first that of devices, then that of claims. Nothing is written, and the
/// kubelet may run. What a file says about pods, claims and devices is not
/// judged; that is done by ImportKubelet, with `dry_run`.
///   InvalidArgument  `kubelet_dir` is empty
///   NotFound         there are no files of a kubelet
///   PermissionDenied, Unavailable  a file cannot be read
DEVMGR_EXPORT absl::StatusOr<std::vector<KubeletFile>> VerifyKubeletFiles(
    const std::filesystem::path& kubelet_dir);

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
  /// Files that are damaged; each is one of the losses, too.
  std::vector<std::filesystem::path> damaged;
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
/// keep their devices and claims. Both files, or none: they are made in
/// `out_dir.partial`, which is renamed. What an export that was killed has left
/// there is removed first, and nothing else is.
///   InvalidArgument     an option is missing, or a text that plugins or
///                       drivers chose is not UTF-8
///   NotFound            there is no ledger
///   FailedPrecondition  a running process holds the ledger, its format is
///                       newer, something is in `out_dir`, or at
///                       `out_dir.partial` is what no export has left
///   DataLoss            the ledger is damaged
///   PermissionDenied, Unavailable  the files cannot be written
DEVMGR_EXPORT absl::StatusOr<KubeletExport> ExportKubelet(
    const KubeletExportOptions& options);

}  // namespace devmgr
