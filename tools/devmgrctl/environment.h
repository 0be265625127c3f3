// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/cdi_cache.h>
#include <devmgr/inspection.h>
#include <devmgr/kubelet_checkpoint.h>
#include <devmgr/pod_resources_client.h>
#include <devmgr/runtime_inspection.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "exit_code.h"

namespace devmgr::ctl {

/// What the program sees of the world; tests bring their own.
struct Environment {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  /// As std::getenv.
  std::function<const char*(const char*)> getenv;
  std::function<absl::StatusOr<std::unique_ptr<Inspector>>(
      const std::filesystem::path&, std::chrono::milliseconds)>
      connect;
  std::function<absl::StatusOr<std::unique_ptr<Inspector>>(
      const std::filesystem::path&)>
      open_state_dir;
  /// As ConvertStateDir.
  std::function<absl::StatusOr<LedgerConversion>(const std::filesystem::path&,
                                                 std::uint64_t, bool)>
      convert_state_dir;
  /// As VerifyKubeletFiles, ImportKubelet and ExportKubelet.
  std::function<absl::StatusOr<std::vector<KubeletFile>>(
      const std::filesystem::path&)>
      verify_kubelet;
  std::function<absl::StatusOr<KubeletImport>(const KubeletImportOptions&)>
      import_kubelet;
  std::function<absl::StatusOr<KubeletExport>(const KubeletExportOptions&)>
      export_kubelet;
  /// As RuntimeInspector::Connect.
  std::function<absl::StatusOr<std::unique_ptr<RuntimeInspector>>(
      const std::filesystem::path&, std::chrono::milliseconds)>
      connect_runtime;
  /// As PodResourcesClient::Connect.
  std::function<absl::StatusOr<std::unique_ptr<PodResourcesClient>>(
      const std::filesystem::path&, std::chrono::milliseconds)>
      connect_pod_resources;
  std::function<WallTime()> now;
  std::function<std::chrono::steady_clock::time_point()> steady_now;
  /// Lets time pass between two attempts.
  std::function<void(std::chrono::milliseconds)> pause;
  /// Called once something is on stdout for good. May be empty.
  std::function<void()> on_printed;
  /// As CdiCache::Open.
  std::function<absl::StatusOr<std::unique_ptr<CdiCache>>(CdiCacheOptions)>
      open_cdi_dirs;
  /// As ReadFile and ReplaceFile of files.h.
  std::function<absl::StatusOr<std::string>(const std::string&)> read_file;
  std::function<absl::Status(const std::string&, std::string_view)>
      replace_file;
};

}  // namespace devmgr::ctl
