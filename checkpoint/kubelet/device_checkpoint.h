// SPDX-License-Identifier: Apache-2.0
//
// `kubelet_internal_checkpoint`: which devices of device plugins the containers
// of a node hold. Layout: README.md. Upstream:
// pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::kubelet_checkpoint {

/// The name of the file, in the directory of device plugins.
inline constexpr std::string_view kDeviceCheckpointName =
    "kubelet_internal_checkpoint";

/// IDs in the order of the file. Nothing is Go's nil, which has another
/// checksum than an empty list.
using DeviceIdList = std::optional<std::vector<DeviceId>>;

/// What a container holds of one resource.
struct PodDevicesEntry {
  PodUid pod;
  ContainerName container;
  ResourceName resource;
  /// By NUMA node; -1 is for devices without a topology. A device of several
  /// nodes is listed under each. Format 1 knows no nodes: node 0, as the
  /// kubelet read it.
  std::optional<std::map<std::int64_t, DeviceIdList>> device_ids;
  /// The plugin's serialised ContainerAllocateResponse, as it came.
  std::optional<std::string> alloc_resp;

  friend bool operator==(const PodDevicesEntry&,
                         const PodDevicesEntry&) = default;
};

struct DeviceCheckpoint {
  enum class Format {
    kIdLists = 1,        ///< Kubelets before 1.20; none reads it any more.
    kIdsByNumaNode = 2,  ///< Kubelets since 1.20.
  };

  Format format = Format::kIdsByNumaNode;
  std::optional<std::vector<PodDevicesEntry>> entries;
  /// Healthy devices by resource; a resource without any is there, too.
  std::optional<std::map<ResourceName, DeviceIdList>> registered;

  friend bool operator==(const DeviceCheckpoint&,
                         const DeviceCheckpoint&) = default;
};

/// What a file holds, once its checksum is found right. Entries, names and
/// responses are not judged: an entry may lack its pod, two may name one
/// device. Reentrant.
///   DataLoss  the file is damaged, of another layout, or its checksum is not
///             that of its data; the message names the file and the place
absl::StatusOr<DeviceCheckpoint> DecodeDeviceCheckpoint(std::string_view bytes);

/// The file as the kubelet would write it, byte by byte. Reentrant.
///   InvalidArgument  a text is not UTF-8, format 1 and NUMA nodes other than
///                    node 0, or more bytes than DecodeDeviceCheckpoint reads
absl::StatusOr<std::string> EncodeDeviceCheckpoint(
    const DeviceCheckpoint& checkpoint);

/// The checksum of the data: FNV-1a of their Go dump.
std::uint32_t ChecksumOf(const DeviceCheckpoint& checkpoint);

}  // namespace devmgr::kubelet_checkpoint
