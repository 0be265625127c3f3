// SPDX-License-Identifier: Apache-2.0
//
// Asking a pod-resources endpoint, ours or a kubelet's.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/export.h>
#include <devmgr/pod_resources.h>
#include <devmgr/status_types.h>
#include <devmgr/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace devmgr {

/// Memory that a container, a pod or a node has on NUMA nodes.
struct ListedMemory {
  std::string type;  ///< `memory`, `hugepages-2Mi`.
  std::uint64_t bytes = 0;
  std::vector<std::int64_t> numa_nodes;
  friend bool operator==(const ListedMemory&, const ListedMemory&) = default;
};

/// As a server tells of it. `resources.sidecar` and the claims' UIDs are not
/// told; a device that is told of for several NUMA nodes is one with all of
/// them. Only kubelets tell of CPUs and memory.
struct ListedContainer {
  ContainerResources resources;
  std::vector<std::int64_t> cpu_ids;
  std::vector<ListedMemory> memory;
};

struct ListedPod {
  ObjectName name;
  std::vector<ListedContainer> containers;
  // Of the pod itself, which what containers have overlaps with.
  std::vector<std::int64_t> cpu_ids;
  std::vector<ListedMemory> memory;
};

/// What the node has to give, given or not.
struct AllocatableResources {
  std::vector<ResourceDevices> devices;
  std::vector<std::int64_t> cpu_ids;
  std::vector<ListedMemory> memory;
};

/// One thread at a time. All methods may return Unavailable (nothing answers),
/// DeadlineExceeded, ResourceExhausted (a limit of the server's, or an answer
/// of more than 16 MiB), or what the server says.
class DEVMGR_EXPORT PodResourcesClient {
 public:
  ///   InvalidArgument   the timeout is not positive
  ///   Unavailable       no process listens at `socket`
  ///   PermissionDenied  the socket is not ours to use
  static absl::StatusOr<std::unique_ptr<PodResourcesClient>> Connect(
      const std::filesystem::path& socket, std::chrono::milliseconds timeout);

  virtual ~PodResourcesClient() = default;

  /// In the server's order. Of a server that has only v1alpha1, by that.
  virtual absl::StatusOr<std::vector<ListedPod>> List() = 0;
  virtual absl::StatusOr<AllocatableResources> Allocatable() = 0;
  virtual absl::StatusOr<ListedPod> Get(const ObjectName& pod) = 0;
};

}  // namespace devmgr
