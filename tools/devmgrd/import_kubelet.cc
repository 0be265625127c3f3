// SPDX-License-Identifier: Apache-2.0
#include "devmgrd/import_kubelet.h"

#include <devmgr/kubelet_checkpoint.h>
#include <spdlog/spdlog.h>

namespace devmgrd {
namespace {

constexpr char kFlag[] = "--import-kubelet";

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

void LogImport(const devmgr::KubeletImport& imported,
               const std::filesystem::path& kubelet_dir) {
  for (const std::string& note : imported.notes) {
    spdlog::info("{}: {}", kFlag, note);
  }
  for (const std::string& loss : imported.losses) {
    spdlog::error("{}: left out: {}", kFlag, loss);
  }
  for (const auto& path : imported.kept) {
    spdlog::error("{}: a copy of the damaged file is '{}'", kFlag,
                  path.string());
  }
  spdlog::info(
      "{}: imported {} pods with {} devices and {} claims, {} of them as "
      "prepared, from '{}'",
      kFlag, imported.pods, imported.devices, imported.claims, imported.adopted,
      kubelet_dir.string());
}

}  // namespace

absl::Status ImportFromKubelet(const std::filesystem::path& state_dir,
                               const std::filesystem::path& kubelet_dir,
                               const std::string& boot_id) {
  devmgr::KubeletImportOptions options;
  options.state_dir = state_dir;
  options.kubelet_dir = kubelet_dir;
  options.accept_losses = true;
  if (!boot_id.empty()) options.boot_id = [boot_id] { return boot_id; };
  const auto imported = devmgr::ImportKubelet(options);
  const absl::Status& status = imported.status();
  if (status.ok()) {
    LogImport(*imported, kubelet_dir);
    return absl::OkStatus();
  }
  if (absl::IsPermissionDenied(status) || absl::IsUnavailable(status)) {
    const std::string message =
        std::string(kFlag) + ": nothing was imported: " + Text(status);
    return {status.code(), absl::string_view(message)};
  }
  if (absl::IsAlreadyExists(status)) {
    spdlog::info("{}: {}", kFlag, Text(status));
  } else {
    spdlog::error("{}: nothing was imported: {}", kFlag, Text(status));
  }
  return absl::OkStatus();
}

}  // namespace devmgrd
