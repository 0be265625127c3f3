// SPDX-License-Identifier: Apache-2.0
//
// Whether the checkpoint files of a kubelet are whole, and how much they hold.
#include <devmgr/kubelet_checkpoint.h>

#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "checkpoint/kubelet/dra_state_file.h"
#include "common/status.h"
#include "migration/kubelet_files.h"

namespace devmgr {
namespace {

using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::DraCheckpoint;
using kubelet_checkpoint::OldDraCheckpoint;
using kubelet_checkpoint::PodDevicesEntry;
using Checksum = KubeletFile::Checksum;

/// Whether a file was refused for its checksum, which JsonField::Corrupted says
/// in the kubelet's words.
bool IsForChecksum(const absl::Status& status) {
  return MessageOf(status).find("checkpoint is corrupted: ") !=
         std::string::npos;
}

/// A device of several NUMA nodes is listed under each.
std::size_t CountDevices(const PodDevicesEntry& entry) {
  std::set<std::string_view> ids;
  if (!entry.device_ids.has_value()) return 0;
  for (const auto& [node, list] : *entry.device_ids) {
    if (!list.has_value()) continue;
    for (const DeviceId& id : *list) ids.insert(id.value);
  }
  return ids.size();
}

absl::Status TakeDevices(const std::string& bytes, KubeletFile& file) {
  DEVMGR_ASSIGN_OR_RETURN(const DeviceCheckpoint checkpoint,
                          kubelet_checkpoint::DecodeDeviceCheckpoint(bytes));
  file.checksum = Checksum::kRight;
  const bool is_first = checkpoint.format == DeviceCheckpoint::Format::kIdLists;
  file.format = is_first ? "1" : "2";
  file.kubelets = is_first ? "before 1.20" : "since 1.20";
  std::set<PodUid> pods;
  std::size_t devices = 0;
  if (checkpoint.entries.has_value()) {
    for (const PodDevicesEntry& entry : *checkpoint.entries) {
      pods.insert(entry.pod);
      devices += CountDevices(entry);
    }
  }
  file.pods = pods.size();
  file.devices = devices;
  return absl::OkStatus();
}

void CountClaims(const DraCheckpoint& checkpoint, KubeletFile& file) {
  std::set<PodUid> pods;
  std::size_t claims = 0;
  std::size_t devices = 0;
  if (checkpoint.claims.has_value()) {
    claims = checkpoint.claims->size();
    for (const kubelet_checkpoint::DraClaim& claim : *checkpoint.claims) {
      if (claim.pods) pods.insert(claim.pods->begin(), claim.pods->end());
      if (!claim.drivers) continue;
      for (const auto& [name, driver] : *claim.drivers) {
        if (driver.devices) devices += driver.devices->size();
      }
    }
  }
  file.pods = pods.size();
  file.claims = claims;
  file.devices = devices;
}

std::string KubeletsOf(const OldDraCheckpoint& old) {
  // Only entries show which of these layouts it is.
  if (!old.claims.has_value() || old.claims->empty()) return "before 1.32";
  switch (old.layout) {
    case OldDraCheckpoint::Layout::kCdiDevices:
      return "before 1.31, without handles";
    case OldDraCheckpoint::Layout::kResourceHandles:
      return "before 1.31";
    case OldDraCheckpoint::Layout::kDriverState:
      return "1.31";
  }
  return "";
}

absl::Status TakeClaims(const std::string& bytes, KubeletFile& file) {
  DEVMGR_ASSIGN_OR_RETURN(const kubelet_checkpoint::DraStateFile state,
                          kubelet_checkpoint::DecodeDraStateFile(bytes));
  if (const auto* today = std::get_if<DraCheckpoint>(&state)) {
    file.checksum = Checksum::kRight;
    file.format = today->api_version;
    file.kubelets = "since 1.32";
    CountClaims(*today, file);
    return absl::OkStatus();
  }
  const auto& old = std::get<OldDraCheckpoint>(state);
  file.format = old.version;
  file.kubelets = KubeletsOf(old);
  CountClaims(kubelet_checkpoint::Upgraded(old), file);
  file.checksum =
      old.is_checksum_proven ? Checksum::kRight : Checksum::kNotProven;
  if (old.is_checksum_proven) return absl::OkStatus();
  file.problem =
      "the checksum of this old layout depends on the release of the kubelet, "
      "and was not proven: the file may be damaged";
  return absl::OkStatus();
}

/// Has `take` decode the file at `path`. What is wrong with the file is said in
/// it, what is wrong with the disk is returned.
template <typename Take>
absl::StatusOr<KubeletFile> Verify(std::filesystem::path path, Take take) {
  KubeletFile file;
  file.path = std::move(path);
  const auto bytes = migration::ReadFileIfAny(file.path);
  if (!bytes.ok() && !absl::IsDataLoss(bytes.status())) return bytes.status();
  if (bytes.ok() && !bytes->has_value()) return file;
  file.exists = true;
  const absl::Status status = bytes.ok() ? take(**bytes, file) : bytes.status();
  if (status.ok()) return file;
  file.checksum = IsForChecksum(status) ? Checksum::kWrong : Checksum::kUnknown;
  file.problem = MessageOf(status);
  return file;
}

}  // namespace

absl::StatusOr<std::vector<KubeletFile>> VerifyKubeletFiles(
    const std::filesystem::path& kubelet_dir) {
  if (kubelet_dir.empty()) return InvalidArgumentError("kubelet_dir is empty");
  DEVMGR_ASSIGN_OR_RETURN(
      KubeletFile devices,
      Verify(migration::DevicesIn(kubelet_dir), TakeDevices));
  DEVMGR_ASSIGN_OR_RETURN(KubeletFile claims,
                          Verify(migration::ClaimsIn(kubelet_dir), TakeClaims));
  if (!devices.exists && !claims.exists) {
    return migration::NoKubeletFilesError(kubelet_dir);
  }
  std::vector<KubeletFile> files;
  files.push_back(std::move(devices));
  files.push_back(std::move(claims));
  return files;
}

}  // namespace devmgr
