// SPDX-License-Identifier: Apache-2.0
#include "bench/kubelet_files_of_pods.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support.h"
#include "checkpoint/kubelet/device_checkpoint.h"
#include "checkpoint/kubelet/dra_checkpoint.h"
#include "common/atomic_file.h"
#include "plugin/container_response.h"

namespace devmgr::bench {
namespace {

using kubelet_checkpoint::DeviceCheckpoint;
using kubelet_checkpoint::DraCheckpoint;

constexpr char kDriver[] = "gpu.example.com";
constexpr int kNodes = 8;

std::string ContainerOf(int number) { return fmt::format("c{}", number); }

kubelet_checkpoint::PodDevicesEntry EntryOf(int pod, int container) {
  kubelet_checkpoint::PodDevicesEntry entry;
  entry.pod = UidOfPod(pod);
  entry.container = ContainerOf(container);
  entry.resource = kResource;
  entry.device_ids.emplace();
  device::ContainerEdits edits;
  for (int i = 0; i < kDevices; ++i) {
    const std::string id =
        fmt::format("gpu-{}", (pod * kContainers + container) * kDevices + i);
    auto& ids = (*entry.device_ids)[i % kNodes];
    if (!ids.has_value()) ids.emplace();
    ids->push_back(id);
    edits.cdi_devices.push_back("example.com/gpu=" + id);
  }
  entry.alloc_resp = plugin::EncodeContainerResponse(edits);
  return entry;
}

kubelet_checkpoint::DraClaim ClaimOf(int pod) {
  kubelet_checkpoint::DraDevice device;
  device.pool = "node";
  device.device = fmt::format("nic-{}", pod);
  device.cdi_device_ids = {{fmt::format("example.com/nic=nic-{}", pod)}};
  kubelet_checkpoint::DraDriverState driver;
  driver.devices = {{std::move(device)}};
  kubelet_checkpoint::DraClaim claim;
  claim.uid.value = fmt::format("claim-uid-{}", pod);
  claim.name = {"default", fmt::format("claim-{}", pod)};
  claim.pods = std::set<PodUid>{UidOfPod(pod)};
  claim.drivers.emplace();
  claim.drivers->emplace(kDriver, std::move(driver));
  return claim;
}

}  // namespace

void WriteKubeletFiles(const std::filesystem::path& kubelet_dir, int pods,
                       bool claims) {
  DeviceCheckpoint devices;
  devices.registered.emplace();
  (*devices.registered)[kResource].emplace();
  devices.entries.emplace();
  DraCheckpoint dra;
  dra.claims.emplace();
  for (int pod = 0; pod < pods; ++pod) {
    for (int container = 0; container < kContainers; ++container) {
      devices.entries->push_back(EntryOf(pod, container));
    }
    if (claims) dra.claims->push_back(ClaimOf(pod));
  }
  Must(WriteFileAtomically(
      kubelet_dir / "device-plugins" /
          kubelet_checkpoint::kDeviceCheckpointName,
      Must(kubelet_checkpoint::EncodeDeviceCheckpoint(devices))));
  Must(WriteFileAtomically(kubelet_dir / kubelet_checkpoint::kDraStateName,
                           Must(kubelet_checkpoint::EncodeDraCheckpoint(dra))));
}

ObjectSnapshot ObjectsOfPods(int pods) {
  ObjectSnapshot objects;
  objects.complete = true;
  for (int number = 0; number < pods; ++number) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.ns = "default";
    pod->metadata.name = fmt::format("pod-{}", number);
    pod->metadata.uid = UidOfPod(number).value;
    for (int i = 0; i < kContainers; ++i) {
      Container container;
      container.name = ContainerOf(i);
      pod->spec.containers.push_back(std::move(container));
    }
    objects.pods.insert_or_assign(pod->metadata.FullName(), std::move(pod));
  }
  return objects;
}

}  // namespace devmgr::bench
