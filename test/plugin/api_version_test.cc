// SPDX-License-Identifier: Apache-2.0
#include "plugin/api_version.h"

#include <devmgr/wire/deviceplugin/v1beta1/deviceplugin.pb.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/status_codes.h"
#include "support/status_matchers.h"

namespace devmgr::plugin {
namespace {

namespace v1beta1 = devmgr::wire::deviceplugin::v1beta1;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const ApiVersion& V1Beta1() { return ApiVersions().front(); }

TEST(PluginApiVersionTest, FindsTheVersionOrNamesBoth) {
  ASSERT_THAT(FindApiVersion("v1beta1"), IsOk());
  EXPECT_EQ((*FindApiVersion("v1beta1"))->name, "v1beta1");
  EXPECT_THAT(FindApiVersion("v1alpha2").status(),
              StatusIs(kInvalid,
                       "requested API version \"v1alpha2\" is not supported by "
                       "kubelet. Supported version is [\"v1beta1\"]"));
  EXPECT_THAT(FindApiVersion(std::string(100'000, '\x1b')).status(),
              StatusIs(kInvalid, testing::Not(HasSubstr("\x1b"))));
}

TEST(PluginApiVersionTest, ChoosesAmongWhatAPluginLists) {
  EXPECT_THAT(ChooseApiVersion({"v2", "v1beta1"}), IsOk());
  EXPECT_THAT(ChooseApiVersion({"v1alpha", "v2"}).status(),
              StatusIs(kInvalid,
                       "manager version, v1beta1, is not among plugin "
                       "supported versions [v1alpha v2]"));
  EXPECT_THAT(ChooseApiVersion({}).status(), StatusIs(kInvalid));
}

void Add(v1beta1::ListAndWatchResponse& list, const std::string& id,
         const std::string& health, const std::vector<std::int64_t>& numa) {
  auto* device = list.add_devices();
  device->set_id(id);
  device->set_health(health);
  for (const auto node : numa) {
    device->mutable_topology()->add_nodes()->set_id(node);
  }
}

// DP-047
TEST(DecodeListTest, OnlyTheVeryWordIsHealthy) {
  v1beta1::ListAndWatchResponse list;
  for (const char* health : {"healthy", "HEALTHY", "", "Degraded", "Healthy"}) {
    Add(list, std::string("d-") + health, health, {});
  }
  const auto decoded = V1Beta1().decode_list(list.SerializeAsString());
  ASSERT_THAT(decoded, IsOk());
  ASSERT_EQ(decoded->devices.size(), 5u);
  for (const auto& device : decoded->devices) {
    EXPECT_EQ(device.health == device::Health::kHealthy,
              device.id == "d-Healthy");
  }
  EXPECT_EQ(decoded->problems.count, 0u);
}

// DP-058
TEST(DecodeListTest, KeepsTheOrderAndSortsNodes) {
  v1beta1::ListAndWatchResponse list;
  Add(list, "b", "Healthy", {2, 0, 2, -1});
  Add(list, "a", "Unhealthy", {});
  const auto decoded = V1Beta1().decode_list(list.SerializeAsString());
  ASSERT_THAT(decoded, IsOk());
  EXPECT_THAT(
      decoded->devices,
      ElementsAre(device::Device{"b", device::Health::kHealthy, {-1, 0, 2}},
                  device::Device{"a", device::Health::kUnhealthy, {}}));
}

TEST(DecodeListTest, AnEmptyListIsOne) {
  const auto decoded = V1Beta1().decode_list("");
  ASSERT_THAT(decoded, IsOk());
  EXPECT_THAT(decoded->devices, IsEmpty());
}

// W-29
TEST(DecodeListTest, LeavesOutWhatCannotBeADeviceAndSaysWhy) {
  v1beta1::ListAndWatchResponse list;
  Add(list, "", "Healthy", {});
  Add(list, "good", "Healthy", {});
  Add(list, std::string(device::kMaxIdLength + 1, 'x'), "Healthy", {});
  Add(list, "\xff", "Healthy", {});
  Add(list, "large", std::string(kMaxDeviceBytes, 'h'), {});
  // A device whose ID is longer than the device.
  const std::string garbled("\x0a\x02\x0a\x7f", 4);
  const auto decoded =
      V1Beta1().decode_list(list.SerializeAsString() + garbled);
  ASSERT_THAT(decoded, IsOk());
  ASSERT_EQ(decoded->devices.size(), 1u);
  EXPECT_EQ(decoded->devices[0].id, "good");
  EXPECT_EQ(decoded->problems.count, 5u);
  EXPECT_THAT(decoded->problems.texts,
              ElementsAre(HasSubstr("empty"), HasSubstr("1025 bytes"),
                          HasSubstr("UTF-8"), HasSubstr("device 5 of the list"),
                          "device 6 of the list is garbled"));
}

TEST(DecodeListTest, TellsTheFirstProblemsAndCountsTheRest) {
  v1beta1::ListAndWatchResponse list;
  for (int i = 0; i < 1'000; ++i) Add(list, "", "", {});
  const auto decoded = V1Beta1().decode_list(list.SerializeAsString());
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->problems.count, 1'000u);
  EXPECT_EQ(decoded->problems.texts.size(), ListProblems::kMaxTexts);
}

TEST(DecodeListTest, SkipsFieldsItDoesNotKnow) {
  v1beta1::ListAndWatchResponse list;
  Add(list, "a", "Healthy", {});
  const std::string later = std::string("\xc2\x3e\x05later") + "\xc8\x3e\x07";
  const auto decoded =
      V1Beta1().decode_list(later + list.SerializeAsString() + later);
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->devices.size(), 1u);
}

TEST(DecodeListTest, RefusesWhatIsNoList) {
  for (const std::string& bytes :
       {std::string("\x0a\x7f"), std::string("\xff\xff\xff\xff"),
        std::string("\x0a\xff\xff\xff\xff\x0f"), std::string("\x0c")}) {
    EXPECT_THAT(V1Beta1().decode_list(bytes).status(), StatusIs(kInvalid));
  }
}

TEST(DecodeListTest, RefusesMoreDevicesThanThereCanBe) {
  std::string bytes;
  for (std::size_t i = 0; i <= kMaxDevices; ++i)
    bytes += std::string("\x0a\0", 2);
  EXPECT_THAT(V1Beta1().decode_list(bytes).status(),
              StatusIs(kInvalid, HasSubstr("more than 1000000 devices")));
}

TEST(DecodeAllocateTest, ReadsTheFirstContainerAndSorts) {
  v1beta1::AllocateResponse response;
  auto* container = response.add_container_responses();
  (*container->mutable_envs())["B"] = "2";
  (*container->mutable_envs())["A"] = "1";
  container->add_cdi_devices()->set_name("a.com/b=c");
  (*response.add_container_responses()->mutable_envs())["C"] = "3";
  const auto edits = V1Beta1().decode_allocate(response.SerializeAsString());
  ASSERT_THAT(edits, IsOk());
  EXPECT_THAT(edits->env,
              ElementsAre(NamedValue{"A", "1"}, NamedValue{"B", "2"}));
  EXPECT_THAT(edits->cdi_devices, ElementsAre("a.com/b=c"));
}

// DP-070
TEST(DecodeAllocateTest, RefusesAnAnswerWithoutContainer) {
  EXPECT_THAT(
      V1Beta1().decode_allocate("").status(),
      StatusIs(kInvalid, "no containers return in allocation response"));
  EXPECT_THAT(V1Beta1().decode_allocate(std::string("\x0a\0", 2)), IsOk());
}

TEST(DecodeAllocateTest, RefusesGarbageAndFloods) {
  EXPECT_THAT(V1Beta1().decode_allocate("\x0a\x7f").status(),
              StatusIs(kInvalid));
  EXPECT_THAT(V1Beta1().decode_allocate("\x0a\x01\xff").status(),
              StatusIs(kInvalid));
  EXPECT_THAT(
      V1Beta1().decode_allocate(std::string(kMaxAnswerBytes + 1, 'x')).status(),
      StatusIs(kInvalid, HasSubstr("1048577 bytes")));
}

TEST(DecodePreferredTest, TakesAdviceAndNone) {
  v1beta1::PreferredAllocationResponse response;
  EXPECT_THAT(*V1Beta1().decode_preferred(response.SerializeAsString()),
              IsEmpty());
  auto* container = response.add_container_responses();
  for (const std::string& id :
       {std::string("b"), std::string(device::kMaxIdLength + 1, 'x'),
        std::string("a")}) {
    container->add_device_ids(id);
  }
  EXPECT_THAT(*V1Beta1().decode_preferred(response.SerializeAsString()),
              ElementsAre("b", "a"));
  EXPECT_THAT(V1Beta1().decode_preferred("\x0a\x02\x0a\x7f").status(),
              StatusIs(kInvalid));
}

}  // namespace
}  // namespace devmgr::plugin
