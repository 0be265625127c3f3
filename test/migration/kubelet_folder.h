// SPDX-License-Identifier: Apache-2.0
//
// A kubelet's root directory with its checkpoint files, and what of a node a
// test needs beside it.
#pragma once

#include <devmgr/kubelet_checkpoint.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/kubelet/device_checkpoint.h"
#include "checkpoint/kubelet/dra_checkpoint.h"
#include "checkpoint/ledger_store.h"
#include "support/temp_folder.h"

namespace devmgr {

/// What `ids` of node -1 are, with a response that has env `name=value`.
kubelet_checkpoint::PodDevicesEntry HeldEntry(
    const std::string& pod, const std::string& container,
    const std::string& resource, const std::vector<std::string>& ids,
    std::int64_t node = -1);

/// The bytes of a ContainerAllocateResponse with one env variable.
std::string ResponseWithEnv(const std::string& name, const std::string& value);

/// One device of `driver`, prepared for these pods.
kubelet_checkpoint::DraClaim PreparedClaim(
    const std::string& name, const std::string& uid, const std::string& driver,
    const std::vector<std::string>& pods);

class KubeletFolder {
 public:
  const std::filesystem::path& root() const { return folder_.path(); }
  std::filesystem::path kubelet() const { return root() / "kubelet"; }
  std::filesystem::path state() const { return root() / "state"; }
  std::filesystem::path out() const { return root() / "out"; }
  std::filesystem::path devices_file() const {
    return kubelet() / "device-plugins" / "kubelet_internal_checkpoint";
  }
  std::filesystem::path claims_file() const {
    return kubelet() / "dra_manager_state";
  }

  /// Written a second after the boot that the options tell of began.
  void Write(const kubelet_checkpoint::DeviceCheckpoint& devices) const;
  void Write(const kubelet_checkpoint::DraCheckpoint& claims) const;
  void WriteBytes(const std::filesystem::path& file,
                  const std::string& bytes) const;
  /// As if the file was last written in the boot before.
  static void SetBackBeforeBoot(const std::filesystem::path& file);

  /// In boot `boot-1`, which began an hour before the time that it is.
  KubeletImportOptions import_options() const;
  KubeletExportOptions export_options() const;

  /// Fails the test on an error.
  checkpoint::StoreContents ReadStore() const;

 private:
  TempFolder folder_;
};

}  // namespace devmgr
