// SPDX-License-Identifier: Apache-2.0
#include "conformance/pod_resources_messages.h"

#include <devmgr/wire/podresources/v1/podresources.pb.h>
#include <devmgr/wire/podresources/v1alpha1/podresources.pb.h>

#include <cstdint>
#include <initializer_list>

namespace devmgr::conformance {
namespace {

namespace pb = wire::podresources::v1;
namespace old = wire::podresources::v1alpha1;

template <typename Message>
std::shared_ptr<google::protobuf::MessageLite> Copy(const Message& message) {
  return std::make_shared<Message>(message);
}

void SetNodes(std::initializer_list<std::int64_t> ids, pb::TopologyInfo* to) {
  for (const std::int64_t id : ids) to->add_nodes()->set_id(id);
}

template <typename Device>
Device* AddDevice(const char* resource, const char* id, Device* to) {
  to->set_resource_name(resource);
  to->add_device_ids(id);
  return to;
}

void SetMemory(const char* type, std::uint64_t size, std::int64_t node,
               pb::ContainerMemory* to) {
  to->set_memory_type(type);
  to->set_size(size);
  SetNodes({node}, to->mutable_topology());
}

pb::DynamicResource Claim() {
  pb::DynamicResource claim;
  claim.set_claim_name("claim-a");
  claim.set_claim_namespace("default");
  for (const char* device : {"gpu-3", "gpu-4"}) {
    pb::ClaimResource* resource = claim.add_claim_resources();
    resource->set_driver_name("gpu.example.com");
    resource->set_pool_name("pool-0");
    resource->set_device_name(device);
  }
  claim.mutable_claim_resources(0)->add_cdi_devices()->set_name(
      "gpu.example.com/claim=a-0");
  claim.mutable_claim_resources(1)->set_share_id(
      "a671734a-e8e5-11e4-8fde-42010af09327");
  return claim;
}

pb::PodResources PodWithDevices() {
  pb::PodResources pod;
  pod.set_name("p1");
  pod.set_namespace_("default");
  pod.add_containers()->set_name("sidecar");
  pb::ContainerResources* main = pod.add_containers();
  main->set_name("main");
  for (const std::int64_t node : {0, 1}) {
    SetNodes({node}, AddDevice("example.com/gpu", "gpu-0", main->add_devices())
                         ->mutable_topology());
  }
  AddDevice("example.com/nic", "nic-3", main->add_devices());
  *main->add_dynamic_resources() = Claim();
  return pod;
}

pb::PodResources BarePod() {
  pb::PodResources pod;
  pod.set_name("p2");
  pod.set_namespace_("team-b");
  pod.add_containers()->set_name("main");
  return pod;
}

pb::PodResources PodWithResourcesOfItsOwn() {
  pb::PodResources pod;
  pod.set_name("p3");
  pod.set_namespace_("default");
  for (const std::int64_t cpu : {2, 3, 300}) pod.add_cpu_ids(cpu);
  SetMemory("hugepages-2Mi", 4194304, 1, pod.add_memory());
  pb::ContainerResources* main = pod.add_containers();
  main->set_name("main");
  main->add_cpu_ids(2);
  SetMemory("memory", 1073741824, 0, main->add_memory());
  return pod;
}

pb::AllocatableResourcesResponse Allocatable() {
  pb::AllocatableResourcesResponse response;
  SetNodes({0}, AddDevice("example.com/gpu", "gpu-0", response.add_devices())
                    ->mutable_topology());
  AddDevice("example.com/nic", "nic-3", response.add_devices());
  for (const std::int64_t cpu : {1, 2}) response.add_cpu_ids(cpu);
  SetMemory("memory", 8589934592, 0, response.add_memory());
  return response;
}

}  // namespace

Messages PodResourcesMessages() {
  Messages built;
  built["list request"] = Copy(pb::ListPodResourcesRequest());
  pb::ListPodResourcesResponse list;
  built["list response without pods"] = Copy(list);
  *list.add_pod_resources() = PodWithDevices();
  *list.add_pod_resources() = BarePod();
  built["list response"] = Copy(list);
  built["pod with devices"] = Copy(PodWithDevices());
  built["pod with resources of its own"] = Copy(PodWithResourcesOfItsOwn());
  built["allocatable request"] = Copy(pb::AllocatableResourcesRequest());
  built["allocatable response"] = Copy(Allocatable());
  pb::GetPodResourcesRequest get;
  get.set_pod_name("p2");
  get.set_pod_namespace("team-b");
  built["get request"] = Copy(get);
  pb::GetPodResourcesResponse got;
  *got.mutable_pod_resources() = BarePod();
  built["get response"] = Copy(got);
  pb::ContainerDevices devices;
  AddDevice("example.com/gpu", "gpu-0", &devices)->add_device_ids("gpu-1");
  SetNodes({0, 1}, devices.mutable_topology());
  built["devices of an older server"] = Copy(devices);
  return built;
}

Messages OldPodResourcesMessages() {
  Messages built;
  built["list request"] = Copy(old::ListPodResourcesRequest());
  old::ListPodResourcesResponse list;
  old::PodResources* pod = list.add_pod_resources();
  pod->set_name("p1");
  pod->set_namespace_("default");
  old::ContainerResources* main = pod->add_containers();
  main->set_name("main");
  AddDevice("example.com/gpu", "gpu-0", main->add_devices());
  AddDevice("example.com/nic", "nic-3", main->add_devices());
  pod->add_containers()->set_name("idle");
  pod = list.add_pod_resources();
  pod->set_name("p2");
  pod->set_namespace_("team-b");
  built["list response"] = Copy(list);
  return built;
}

}  // namespace devmgr::conformance
