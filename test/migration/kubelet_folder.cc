// SPDX-License-Identifier: Apache-2.0
#include "migration/kubelet_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <utility>

#include "device/device.h"
#include "plugin/container_response.h"

namespace devmgr {
namespace {

/// When it is, and how long the boot has lasted.
constexpr WallTime kNodeTime{std::chrono::seconds(1'800'000'000)};
constexpr std::chrono::hours kNodeIsUpFor{1};

void SetFileTime(const std::filesystem::path& file, WallTime time) {
  const auto when = std::chrono::file_clock::from_sys(time);
  std::filesystem::last_write_time(file, when);
}

}  // namespace

std::string ResponseWithEnv(const std::string& name, const std::string& value) {
  device::ContainerEdits edits;
  edits.env.push_back({name, value});
  return plugin::EncodeContainerResponse(edits);
}

kubelet_checkpoint::PodDevicesEntry HeldEntry(
    const std::string& pod, const std::string& container,
    const std::string& resource, const std::vector<std::string>& ids,
    std::int64_t node) {
  kubelet_checkpoint::PodDevicesEntry entry;
  entry.pod.value = pod;
  entry.container = container;
  entry.resource = resource;
  std::string all;
  std::vector<DeviceId> list;
  for (const std::string& id : ids) {
    list.emplace_back(id);
    all += (all.empty() ? "" : ",") + id;
  }
  entry.device_ids.emplace();
  (*entry.device_ids)[node] = std::move(list);
  entry.alloc_resp = ResponseWithEnv("DEVICES", all);
  return entry;
}

kubelet_checkpoint::DraClaim PreparedClaim(
    const std::string& name, const std::string& uid, const std::string& driver,
    const std::vector<std::string>& pods) {
  kubelet_checkpoint::DraClaim claim;
  claim.uid.value = uid;
  claim.name = {"default", name};
  claim.pods.emplace();
  for (const std::string& pod : pods) claim.pods->insert(PodUid{pod});
  kubelet_checkpoint::DraDevice device;
  device.pool = "pool-1";
  device.device = "dev-1";
  device.request_names = {{"r"}};
  device.cdi_device_ids = {{driver + "/dev=" + uid}};
  claim.drivers.emplace();
  (*claim.drivers)[driver].devices = {{device}};
  return claim;
}

void KubeletFolder::Write(
    const kubelet_checkpoint::DeviceCheckpoint& devices) const {
  const auto bytes = EncodeDeviceCheckpoint(devices);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  WriteBytes(devices_file(), *bytes);
}

void KubeletFolder::Write(
    const kubelet_checkpoint::DraCheckpoint& claims) const {
  const auto bytes = EncodeDraCheckpoint(claims);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  WriteBytes(claims_file(), *bytes);
}

void KubeletFolder::WriteBytes(const std::filesystem::path& file,
                               const std::string& bytes) const {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  SetFileTime(file, kNodeTime - kNodeIsUpFor + std::chrono::seconds(1));
}

void KubeletFolder::SetBackBeforeBoot(const std::filesystem::path& file) {
  SetFileTime(file, kNodeTime - kNodeIsUpFor - std::chrono::seconds(1));
}

KubeletImportOptions KubeletFolder::import_options() const {
  KubeletImportOptions options;
  options.state_dir = state();
  options.kubelet_dir = kubelet();
  options.boot_id = [] { return "boot-1"; };
  options.boot_time = [] { return kNodeTime - kNodeIsUpFor; };
  options.now = [] { return kNodeTime; };
  return options;
}

KubeletExportOptions KubeletFolder::export_options() const {
  KubeletExportOptions options;
  options.state_dir = state();
  options.out_dir = out();
  return options;
}

checkpoint::StoreContents KubeletFolder::ReadStore() const {
  auto contents = checkpoint::ReadStoppedStore(state());
  EXPECT_TRUE(contents.ok()) << contents.status();
  return contents.ok() ? *std::move(contents) : checkpoint::StoreContents();
}

}  // namespace devmgr
