// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/device_holders.h>
#include <devmgr/export.h>
#include <devmgr/pod_resources.h>
#include <devmgr/runtime_report.h>
#include <devmgr/status_types.h>
#include <devmgr/topology.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace devmgr {

/// What a node knows at one moment: pods, claims, devices and all that can be
/// seen of them, of the same moment everywhere. Later changes do not touch it.
///
/// Thread-safe. What a method returns is put together on the calling thread;
/// nothing waits. A view shares what it holds with the manager and with other
/// views, so that to keep one costs what has changed since. It may outlive the
/// manager.
class DEVMGR_EXPORT NodeView {
 public:
  virtual ~NodeView() = default;

  /// Views of one manager with the same number are the same; a later one has a
  /// larger number, or the same when nothing has happened in between.
  virtual std::uint64_t Sequence() const = 0;
  /// Of the newest event; see DeviceManager::Events. 0: there is none.
  virtual std::uint64_t LastEvent() const = 0;

  virtual NodeInfo Node() const = 0;
  /// By UID.
  virtual std::vector<PodInfo> Pods() const = 0;
  /// NotFound when the ledger does not know the pod.
  virtual absl::StatusOr<PodInfo> PodInfoOf(const PodUid& pod) const = 0;
  /// By UID.
  virtual std::vector<ClaimInfo> Claims() const = 0;
  virtual std::vector<DebtInfo> Debts() const = 0;
  virtual std::vector<PluginInfo> Plugins() const = 0;
  virtual std::vector<RegistrationSocketInfo> RegistrationSockets() const = 0;
  virtual std::vector<DeviceInfo> Devices() const = 0;
  virtual std::vector<ResourceInfo> Resources() const = 0;
  virtual std::vector<DeviceClassInfo> DeviceClasses() const = 0;
  /// Those of the node, by name; without SliceInfo::origin.
  virtual std::vector<SliceInfo> Slices() const = 0;
  /// Shims that have reported and have not ended, by their sockets.
  virtual std::vector<RuntimeInfo> Runtimes() const = 0;
  /// Containers that hold what no pod was given, by their IDs.
  virtual std::vector<ForeignHolderInfo> ForeignHolders() const = 0;
  /// Containers that have devices, by pod and as the pod has them. What a pod
  /// is only about to be given does not count.
  virtual std::vector<DeviceHolderInfo> DeviceHolders() const = 0;
  /// Devices of plugins that a container holds, by resource, with the NUMA
  /// nodes they had when they were chosen.
  ///   NotFound  the pod is not known
  virtual absl::StatusOr<std::vector<ResourceDevices>> HeldDevices(
      const PodUid& pod, const ContainerName& container) const = 0;
  /// Claims of a container, and their devices: copies of what the ledger holds.
  /// A pod that holds none yet has only missing ones.
  ///   NotFound  the pod is not known, neither to the ledger nor to the source
  virtual absl::StatusOr<ContainerClaims> HeldClaims(
      const PodUid& pod, const ContainerName& container) const = 0;
  /// What the active pods have. `before`: what an earlier view of the same
  /// manager returned here, or null; a pod for which nothing has changed since
  /// is the same pointer as there, and when none has, so is the list. That
  /// costs a look at each pod, and no more for those that are the same.
  virtual std::shared_ptr<const PodResourcesList> ResourcesOfPods(
      const std::shared_ptr<const PodResourcesList>& before) const = 0;
  /// The same of one pod: the newest that is active under this name. Also
  /// before it has a sandbox.
  ///   NotFound  there is none
  virtual absl::StatusOr<std::shared_ptr<const PodResources>> ResourcesOfPod(
      const ObjectName& pod) const = 0;
  /// Devices of plugins that work, held or not, by resource.
  virtual std::vector<ResourceDevices> AllocatableDevices() const = 0;
  /// The NUMA nodes of the machine, and which devices are on them.
  virtual NumaInfo Numa() const = 0;
  /// What the pod's hints came to when it was judged last. Of a pod that was
  /// given its devices it is kept with these, over a restart, too: what a pod
  /// holds is not aligned anew.
  ///   NotFound  the pod was not judged by alignment in this process, and has
  ///             nothing that was aligned
  virtual absl::StatusOr<PodAlignmentInfo> AlignmentOf(
      const PodUid& pod) const = 0;
};

}  // namespace devmgr
