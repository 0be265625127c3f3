// SPDX-License-Identifier: Apache-2.0
#include "server/podresources/decoding.h"

#include <devmgr/wire/podresources/v1/podresources.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/podresources/encoding.h"
#include "server/podresources/resources.h"
#include "support/status_matchers.h"

namespace devmgr::podresources {
namespace {

namespace pb = wire::podresources::v1;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DecodingTest, WhatWasEncodedIsReadAgain) {
  auto pod = PodWith("p", {{"0", {0, 1}}, {"1", {}}});
  pod->containers[0].claims = {
      {{"default", "c"},
       {},
       {{"gpu.example.com", "pool", "d", "share", {"v.com/c=x"}}}}};
  const auto list = DecodedList(EncodedPod(*pod) + EncodedPod(*PodWith("q")));
  ASSERT_THAT(list.status(), IsOk());
  ASSERT_THAT(*list, SizeIs(2));
  EXPECT_EQ((*list)[0].name, pod->name);
  ASSERT_THAT((*list)[0].containers, SizeIs(1));
  EXPECT_EQ((*list)[0].containers[0].resources, pod->containers[0]);
  EXPECT_EQ((*list)[1].name.name, "q");
  const auto got = DecodedGet(EncodedGet(*pod));
  ASSERT_THAT(got.status(), IsOk());
  EXPECT_EQ(got->containers[0].resources, pod->containers[0]);
  const auto older = DecodedOldList(EncodedOldPod(*PodWith("p", {{"0", {1}}})));
  ASSERT_THAT(older.status(), IsOk());
  EXPECT_THAT((*older)[0].containers[0].resources.devices,
              ElementsAre(ResourceDevices{kGpu, {{"0", {}}}}));
  const std::vector<ResourceDevices> devices = {
      {"example.com/a", {{"0", {1, 3}}}}, {kGpu, {{"0", {}}}}};
  EXPECT_EQ(DecodedAllocatable(EncodedAllocatable(devices))->devices, devices);
}

// As old kubelets tell of them, and as no server should.
TEST(DecodingTest, DevicesOfOneResourceComeTogether) {
  pb::AllocatableResourcesResponse response;
  const auto add = [&](const char* resource, std::vector<std::string> ids,
                       std::vector<std::int64_t> nodes) {
    pb::ContainerDevices* to = response.add_devices();
    to->set_resource_name(resource);
    for (const std::string& id : ids) to->add_device_ids(id);
    for (const std::int64_t node : nodes) {
      to->mutable_topology()->add_nodes()->set_id(node);
    }
  };
  add("r", {"1", "0"}, {1, 0});
  add("s", {}, {4});
  add("s", {"0"}, {});
  add("r", {"0"}, {0, 2});
  const auto allocatable = DecodedAllocatable(response.SerializeAsString());
  ASSERT_THAT(allocatable.status(), IsOk());
  EXPECT_THAT(
      allocatable->devices,
      ElementsAre(ResourceDevices{"r", {{"1", {0, 1}}, {"0", {0, 1, 2}}}},
                  ResourceDevices{"s", {{"0", {}}}}));
}

TEST(DecodingTest, CpusAndMemoryOfKubeletsAreRead) {
  pb::GetPodResourcesResponse response;
  pb::PodResources* pod = response.mutable_pod_resources();
  pod->add_cpu_ids(4);
  pb::ContainerResources* main = pod->add_containers();
  main->add_cpu_ids(2);
  pb::ContainerMemory* memory = main->add_memory();
  memory->set_memory_type("memory");
  memory->set_size(1024);
  memory->mutable_topology()->add_nodes()->set_id(0);
  *pod->add_memory() = *memory;
  const auto got = DecodedGet(response.SerializeAsString());
  ASSERT_THAT(got.status(), IsOk());
  const ListedMemory listed{"memory", 1024, {0}};
  EXPECT_THAT(got->cpu_ids, ElementsAre(4));
  EXPECT_THAT(got->memory, ElementsAre(listed));
  EXPECT_THAT(got->containers[0].cpu_ids, ElementsAre(2));
  EXPECT_THAT(got->containers[0].memory, ElementsAre(listed));
}

TEST(DecodingTest, WhatIsNoAnswerIsAnError) {
  EXPECT_THAT(DecodedList("\xff").status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(DecodedOldList("\x0a\x05").status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(DecodedAllocatable("\xff").status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const auto empty = DecodedGet("");
  ASSERT_THAT(empty.status(), IsOk());
  EXPECT_EQ(empty->name, ObjectName());
  EXPECT_THAT(empty->containers, IsEmpty());
}

}  // namespace
}  // namespace devmgr::podresources
