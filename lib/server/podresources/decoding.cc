// SPDX-License-Identifier: Apache-2.0
#include "server/podresources/decoding.h"

#include <devmgr/wire/podresources/v1/podresources.pb.h>
#include <devmgr/wire/podresources/v1alpha1/podresources.pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "common/status.h"
#include "rpc/message.h"

namespace devmgr::podresources {
namespace {

namespace pb = wire::podresources::v1;
namespace old = wire::podresources::v1alpha1;

/// Puts the entries of a list together: those of one device are one, in the
/// order in which they came.
class DeviceList {
 public:
  void Add(const std::string& resource, const std::string& id,
           const std::vector<std::int64_t>& nodes) {
    const auto place = resources_.emplace(resource, list_.size());
    if (place.second) list_.push_back({resource, {}});
    std::vector<ResourceDevice>& devices = list_[place.first->second].devices;
    const auto known =
        devices_.emplace(std::pair(resource, id), devices.size());
    if (known.second) devices.push_back({id, {}});
    std::vector<std::int64_t>& all = devices[known.first->second].numa_nodes;
    for (const std::int64_t node : nodes) {
      const auto at = std::lower_bound(all.begin(), all.end(), node);
      if (at == all.end() || *at != node) all.insert(at, node);
    }
  }
  std::vector<ResourceDevices> Take() { return std::move(list_); }

 private:
  std::vector<ResourceDevices> list_;
  std::map<std::string, std::size_t> resources_;  ///< Where in the list.
  /// Where among those of their resource.
  std::map<std::pair<std::string, std::string>, std::size_t> devices_;
};

std::vector<std::int64_t> NodesOf(const pb::TopologyInfo& topology) {
  std::vector<std::int64_t> nodes;
  for (const pb::NUMANode& node : topology.nodes()) nodes.push_back(node.id());
  return nodes;
}

template <typename Entries>
std::vector<ResourceDevices> DevicesOf(const Entries& entries) {
  DeviceList list;
  for (const auto& entry : entries) {
    std::vector<std::int64_t> nodes;
    if constexpr (requires { entry.topology(); }) {
      nodes = NodesOf(entry.topology());
    }
    for (const std::string& id : entry.device_ids()) {
      list.Add(entry.resource_name(), id, nodes);
    }
  }
  return list.Take();
}

template <typename Entries>
std::vector<ListedMemory> MemoryOf(const Entries& entries) {
  std::vector<ListedMemory> memory;
  for (const pb::ContainerMemory& entry : entries) {
    memory.push_back(
        {entry.memory_type(), entry.size(), NodesOf(entry.topology())});
  }
  return memory;
}

HeldClaim ClaimOf(const pb::DynamicResource& claim) {
  HeldClaim held{{claim.claim_namespace(), claim.claim_name()}, {}, {}};
  for (const pb::ClaimResource& device : claim.claim_resources()) {
    ClaimDevice& to = held.devices.emplace_back();
    to.driver = device.driver_name();
    to.pool = device.pool_name();
    to.device = device.device_name();
    to.share_id = device.share_id();
    for (const pb::CDIDevice& cdi : device.cdi_devices()) {
      to.cdi_devices.push_back(cdi.name());
    }
  }
  return held;
}

ListedContainer ContainerOf(const pb::ContainerResources& container) {
  ListedContainer listed;
  listed.resources.name = container.name();
  listed.resources.devices = DevicesOf(container.devices());
  for (const pb::DynamicResource& claim : container.dynamic_resources()) {
    listed.resources.claims.push_back(ClaimOf(claim));
  }
  listed.cpu_ids.assign(container.cpu_ids().begin(), container.cpu_ids().end());
  listed.memory = MemoryOf(container.memory());
  return listed;
}

ListedPod PodOf(const pb::PodResources& pod) {
  ListedPod listed;
  listed.name = {pod.namespace_(), pod.name()};
  for (const pb::ContainerResources& container : pod.containers()) {
    listed.containers.push_back(ContainerOf(container));
  }
  listed.cpu_ids.assign(pod.cpu_ids().begin(), pod.cpu_ids().end());
  listed.memory = MemoryOf(pod.memory());
  return listed;
}

}  // namespace

absl::StatusOr<std::vector<ListedPod>> DecodedList(const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const auto response,
                          rpc::Decode<pb::ListPodResourcesResponse>(bytes));
  std::vector<ListedPod> pods;
  for (const pb::PodResources& pod : response.pod_resources()) {
    pods.push_back(PodOf(pod));
  }
  return pods;
}

absl::StatusOr<std::vector<ListedPod>> DecodedOldList(
    const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const auto response,
                          rpc::Decode<old::ListPodResourcesResponse>(bytes));
  std::vector<ListedPod> pods;
  for (const old::PodResources& pod : response.pod_resources()) {
    ListedPod& listed = pods.emplace_back();
    listed.name = {pod.namespace_(), pod.name()};
    for (const old::ContainerResources& container : pod.containers()) {
      ContainerResources& resources =
          listed.containers.emplace_back().resources;
      resources.name = container.name();
      resources.devices = DevicesOf(container.devices());
    }
  }
  return pods;
}

absl::StatusOr<ListedPod> DecodedGet(const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const auto response,
                          rpc::Decode<pb::GetPodResourcesResponse>(bytes));
  return PodOf(response.pod_resources());
}

absl::StatusOr<AllocatableResources> DecodedAllocatable(
    const std::string& bytes) {
  DEVMGR_ASSIGN_OR_RETURN(const auto response,
                          rpc::Decode<pb::AllocatableResourcesResponse>(bytes));
  AllocatableResources resources;
  resources.devices = DevicesOf(response.devices());
  resources.cpu_ids.assign(response.cpu_ids().begin(),
                           response.cpu_ids().end());
  resources.memory = MemoryOf(response.memory());
  return resources;
}

}  // namespace devmgr::podresources
