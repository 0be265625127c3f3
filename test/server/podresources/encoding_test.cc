// SPDX-License-Identifier: Apache-2.0
#include "server/podresources/encoding.h"

#include <devmgr/wire/podresources/v1/podresources.pb.h>
#include <devmgr/wire/podresources/v1alpha1/podresources.pb.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/podresources/resources.h"

namespace devmgr::podresources {
namespace {

namespace pb = wire::podresources::v1;
namespace old = wire::podresources::v1alpha1;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <typename Message>
Message Parsed(const std::string& bytes) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message;
}

/// `resource=id@node`, without the node where there is no topology.
template <typename Devices>
std::vector<std::string> Texts(const Devices& devices) {
  std::vector<std::string> texts;
  for (const auto& device : devices) {
    EXPECT_EQ(device.device_ids_size(), 1);
    std::string text =
        fmt::format("{}={}", device.resource_name(), device.device_ids(0));
    if constexpr (requires { device.topology(); }) {
      if (device.has_topology()) {
        EXPECT_EQ(device.topology().nodes_size(), 1);
        text += fmt::format("@{}", device.topology().nodes(0).id());
      }
    }
    texts.push_back(text);
  }
  return texts;
}

// BO-119, BO-120, DP-123
TEST(EncodingTest, ADeviceIsThereOncePerNodeAndOnceWithoutAny) {
  const std::vector<ResourceDevice> devices = {{"both", {0, 1}}, {"none", {}}};
  const auto list =
      Parsed<pb::ListPodResourcesResponse>(EncodedPod(*PodWith("p", devices)));
  ASSERT_EQ(list.pod_resources_size(), 1);
  EXPECT_EQ(list.pod_resources(0).name(), "p");
  EXPECT_EQ(list.pod_resources(0).namespace_(), "default");
  ASSERT_EQ(list.pod_resources(0).containers_size(), 1);
  const pb::ContainerResources& main = list.pod_resources(0).containers(0);
  EXPECT_EQ(main.name(), "main");
  EXPECT_THAT(Texts(main.devices()),
              ElementsAre("example.com/gpu=both@0", "example.com/gpu=both@1",
                          "example.com/gpu=none"));
  EXPECT_THAT(main.dynamic_resources(), IsEmpty());
  const auto allocatable =
      Parsed<pb::AllocatableResourcesResponse>(EncodedAllocatable(
          {{"example.com/fpga", {{"0", {3}}}}, {kGpu, devices}}));
  EXPECT_THAT(Texts(allocatable.devices()),
              ElementsAre("example.com/fpga=0@3", "example.com/gpu=both@0",
                          "example.com/gpu=both@1", "example.com/gpu=none"));
  EXPECT_EQ(allocatable.cpu_ids_size() + allocatable.memory_size(), 0);
}

// BO-121
TEST(EncodingTest, DevicesOfClaimsHaveTheirOwnNames) {
  auto pod = PodWith("p");
  pod->containers[0].claims = {
      {{"default", "c"},
       ClaimUid{"u"},
       {{"gpu.example.com", "pool", "d1", "", {"v.com/c=x", "v.com/c=z"}},
        {"gpu.example.com", "pool", "d2", "share", {"v.com/c=y"}}}}};
  const auto got = Parsed<pb::GetPodResourcesResponse>(EncodedGet(*pod));
  const auto& claims = got.pod_resources().containers(0).dynamic_resources();
  ASSERT_EQ(claims.size(), 1);
  EXPECT_EQ(claims[0].claim_name(), "c");
  EXPECT_EQ(claims[0].claim_namespace(), "default");
  ASSERT_EQ(claims[0].claim_resources_size(), 2);
  const pb::ClaimResource& first = claims[0].claim_resources(0);
  EXPECT_EQ(first.driver_name(), "gpu.example.com");
  EXPECT_EQ(first.pool_name(), "pool");
  EXPECT_EQ(first.device_name(), "d1");
  EXPECT_FALSE(first.has_share_id());
  ASSERT_EQ(first.cdi_devices_size(), 2);
  EXPECT_EQ(first.cdi_devices(1).name(), "v.com/c=z");
  const pb::ClaimResource& second = claims[0].claim_resources(1);
  EXPECT_EQ(second.share_id(), "share");
  ASSERT_EQ(second.cdi_devices_size(), 1);
  EXPECT_EQ(second.cdi_devices(0).name(), "v.com/c=y");
}

// BO-126
TEST(EncodingTest, V1alpha1HasNamesAndDevicesOfAppContainersOnly) {
  auto pod = PodWith("p", {{"0", {0, 1}}});
  pod->containers[0].claims = {{{"default", "c"}, ClaimUid{"u"}, {}}};
  pod->containers.push_back({"proxy", true, {{kGpu, {{"1", {}}}}}, {}});
  const std::string bytes = EncodedOldPod(*pod);
  const auto list = Parsed<old::ListPodResourcesResponse>(bytes);
  ASSERT_EQ(list.pod_resources_size(), 1);
  EXPECT_EQ(list.pod_resources(0).name(), "p");
  EXPECT_EQ(list.pod_resources(0).namespace_(), "default");
  ASSERT_EQ(list.pod_resources(0).containers_size(), 1);
  const old::ContainerResources& main = list.pod_resources(0).containers(0);
  EXPECT_EQ(main.name(), "main");
  EXPECT_THAT(Texts(main.devices()),
              ElementsAre("example.com/gpu=0", "example.com/gpu=0"));
  // Not either where v1 has more.
  const auto as_v1 = Parsed<pb::ListPodResourcesResponse>(bytes);
  const pb::ContainerResources& more = as_v1.pod_resources(0).containers(0);
  EXPECT_FALSE(more.devices(0).has_topology());
  EXPECT_EQ(more.dynamic_resources_size(), 0);
}

std::vector<std::string>& Encoded() {
  static std::vector<std::string> names;
  return names;
}
std::string EncodeAndNote(const PodResources& pod) {
  Encoded().push_back(pod.name.name);
  return EncodedPod(pod);
}

TEST(EncodedListTest, EncodesOnlyPodsThatAreNew) {
  Encoded().clear();
  EncodedList list(EncodeAndNote);
  const auto a = PodWith("a");
  const auto b = PodWith("b", {{"0", {}}});
  const auto d = PodWith("d");
  const auto first = ListOf({a, b, d});
  EXPECT_EQ(*list.Of(first), EncodedPod(*a) + EncodedPod(*b) + EncodedPod(*d));
  EXPECT_EQ(list.Of(first), list.Of(first)) << "is made anew";
  EXPECT_EQ(list.Of(first)->size(), list.Of(ListOf({a, b, d}))->size());
  EXPECT_THAT(Encoded(), ElementsAre("a", "b", "d"));
  // One has changed, one has come, one has gone.
  Encoded().clear();
  const auto changed = PodWith("b", {{"1", {}}});
  const auto c = PodWith("c");
  EXPECT_EQ(*list.Of(ListOf({changed, c, d})),
            EncodedPod(*changed) + EncodedPod(*c) + EncodedPod(*d));
  EXPECT_THAT(Encoded(), ElementsAre("b", "c"));
  EXPECT_EQ(*list.Of(ListOf({})), "");
  list.Clear();
  Encoded().clear();
  EXPECT_EQ(*list.Of(ListOf({a})), EncodedPod(*a));
  EXPECT_THAT(Encoded(), ElementsAre("a"));
}

}  // namespace
}  // namespace devmgr::podresources
