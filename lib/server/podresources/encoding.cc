// SPDX-License-Identifier: Apache-2.0
#include "server/podresources/encoding.h"

#include <devmgr/wire/podresources/v1/podresources.pb.h>
#include <devmgr/wire/podresources/v1alpha1/podresources.pb.h>

#include <cstdint>
#include <tuple>
#include <utility>

#include "rpc/message.h"

namespace devmgr::podresources {
namespace {

namespace pb = wire::podresources::v1;
namespace old = wire::podresources::v1alpha1;

/// `add` gives the next entry of a list.
template <typename Add>
void PutDevices(const ResourceDevices& resource, const Add& add) {
  const auto put = [&](const ResourceDevice& device) {
    auto* const entry = add();
    entry->set_resource_name(resource.resource.value);
    entry->add_device_ids(device.id.value);
    return entry;
  };
  for (const ResourceDevice& device : resource.devices) {
    if (device.numa_nodes.empty()) put(device);
    for (const std::int64_t node : device.numa_nodes) {
      auto* const entry = put(device);
      if constexpr (requires { entry->mutable_topology(); }) {
        entry->mutable_topology()->add_nodes()->set_id(node);
      }
    }
  }
}

void PutClaim(const HeldClaim& claim, pb::DynamicResource* to) {
  to->set_claim_name(claim.name.name);
  to->set_claim_namespace(claim.name.ns);
  for (const ClaimDevice& device : claim.devices) {
    pb::ClaimResource* const resource = to->add_claim_resources();
    for (const std::string& name : device.cdi_devices) {
      resource->add_cdi_devices()->set_name(name);
    }
    resource->set_driver_name(device.driver);
    resource->set_pool_name(device.pool);
    resource->set_device_name(device.device);
    if (!device.share_id.empty()) resource->set_share_id(device.share_id);
  }
}

/// Pods of a list are in the order of name and UID.
bool IsBefore(const PodResources& a, const PodResources& b) {
  return std::tie(a.name, a.uid) < std::tie(b.name, b.uid);
}

}  // namespace

std::string EncodedPod(const PodResources& pod) {
  pb::ListPodResourcesResponse response;
  pb::PodResources* const to = response.add_pod_resources();
  to->set_name(pod.name.name);
  to->set_namespace_(pod.name.ns);
  for (const ContainerResources& container : pod.containers) {
    pb::ContainerResources* const resources = to->add_containers();
    resources->set_name(container.name.value);
    for (const ResourceDevices& resource : container.devices) {
      PutDevices(resource, [&] { return resources->add_devices(); });
    }
    for (const HeldClaim& claim : container.claims) {
      PutClaim(claim, resources->add_dynamic_resources());
    }
  }
  return rpc::Encode(response);
}

std::string EncodedOldPod(const PodResources& pod) {
  old::ListPodResourcesResponse response;
  old::PodResources* const to = response.add_pod_resources();
  to->set_name(pod.name.name);
  to->set_namespace_(pod.name.ns);
  for (const ContainerResources& container : pod.containers) {
    if (container.sidecar) continue;
    old::ContainerResources* const resources = to->add_containers();
    resources->set_name(container.name.value);
    for (const ResourceDevices& resource : container.devices) {
      PutDevices(resource, [&] { return resources->add_devices(); });
    }
  }
  return rpc::Encode(response);
}

std::string EncodedAllocatable(const std::vector<ResourceDevices>& resources) {
  pb::AllocatableResourcesResponse response;
  for (const ResourceDevices& resource : resources) {
    PutDevices(resource, [&] { return response.add_devices(); });
  }
  return rpc::Encode(response);
}

std::shared_ptr<const std::string> EncodedList::Of(
    const std::shared_ptr<const PodResourcesList>& list) {
  if (list == list_) return whole_;
  std::vector<std::string> encoded;
  encoded.reserve(list->pods.size());
  std::size_t next = 0;  // Of those that are kept.
  for (const auto& pod : list->pods) {
    while (next < pods_.size() && IsBefore(*list_->pods[next], *pod)) ++next;
    if (next < pods_.size() && list_->pods[next] == pod) {
      encoded.push_back(std::move(pods_[next]));
    } else {
      encoded.push_back(encode_(*pod));
    }
  }
  pods_ = std::move(encoded);
  list_ = list;
  Join();
  return whole_;
}

void EncodedList::Join() {
  std::size_t bytes = 0;
  for (const std::string& pod : pods_) bytes += pod.size();
  auto whole = std::make_shared<std::string>();
  whole->reserve(bytes);
  for (const std::string& pod : pods_) *whole += pod;
  whole_ = std::move(whole);
}

void EncodedList::Clear() {
  list_.reset();
  pods_ = {};
  whole_.reset();
}

}  // namespace devmgr::podresources
