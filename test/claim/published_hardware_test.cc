// SPDX-License-Identifier: Apache-2.0
#include "claim/published_hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace devmgr::claim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kGpuDriver[] = "gpu.example.com";
constexpr char kPciAttribute[] = "resource.kubernetes.io/pciBusID";

std::string PciText(int number) {
  return "0000:3b:00." + std::to_string(number);
}
device::PhysicalIdentity PciOf(int number) {
  return *device::PciIdentity(PciText(number));
}

SliceDevice PublishedCard(const std::string& name, int number) {
  SliceDevice device;
  device.name = name;
  device.attributes.emplace(kPciAttribute, SharedText(PciText(number)));
  return device;
}

std::shared_ptr<ResourceSlice> SliceOf(std::vector<SliceDevice> devices,
                                       std::int64_t generation = 1) {
  auto slice = std::make_shared<ResourceSlice>();
  slice->driver = kGpuDriver;
  slice->pool = "pool";
  slice->pool_generation = generation;
  slice->node_name = "n1";
  slice->devices = std::move(devices);
  return slice;
}

class PublishedHardwareTest : public testing::Test {
 protected:
  void Publish(const std::string& name, std::shared_ptr<ResourceSlice> slice) {
    slices_.insert_or_assign({"", name}, std::move(slice));
    published_.Follow(slices_);
  }
  void Withdraw(const std::string& name) {
    slices_.erase({"", name});
    published_.Follow(slices_);
  }
  static std::vector<device::PhysicalIdentity> Of(
      const PublishedHardware& published, const std::string& device) {
    return published.Find({kGpuDriver, "pool", device}).identities;
  }
  std::vector<device::PhysicalIdentity> Of(const std::string& device) const {
    return Of(published_, device);
  }
  std::vector<std::string> With(int number) const {
    std::vector<std::string> names;
    published_.VisitDevicesWith(
        PciOf(number), [&](const state::DeviceKey& key, const auto& hardware) {
          EXPECT_THAT(hardware.identities, ElementsAre(PciOf(number)));
          names.push_back(std::get<2>(key));
        });
    return names;
  }
  std::vector<std::string> All(const PublishedHardware& published) const {
    std::vector<std::string> names;
    published.VisitDevices([&](const state::DeviceKey& key, const auto&) {
      names.push_back(std::get<2>(key));
    });
    return names;
  }

  ObjectMap<ResourceSlice> slices_;
  PublishedHardware published_{HardwareOptions(), "n1"};
};

TEST_F(PublishedHardwareTest, DevicesAreFoundByNameAndByHardware) {
  SliceDevice plain;
  plain.name = "plain";
  EXPECT_TRUE(published_.empty());
  Publish("s", SliceOf({PublishedCard("a", 0), PublishedCard("b", 1), plain}));
  EXPECT_FALSE(published_.empty());
  EXPECT_THAT(Of("a"), ElementsAre(PciOf(0)));
  EXPECT_THAT(Of("b"), ElementsAre(PciOf(1)));
  EXPECT_THAT(Of("plain"), IsEmpty());
  EXPECT_THAT(Of("missing"), IsEmpty());
  EXPECT_TRUE(published_.Find({"other.example.com", "pool", "a"}).empty());
  EXPECT_THAT(With(0), ElementsAre("a"));
  EXPECT_THAT(With(7), IsEmpty());
  EXPECT_THAT(All(published_), UnorderedElementsAre("a", "b"));
}

TEST_F(PublishedHardwareTest, FollowsWhatChanges) {
  Publish("s", SliceOf({PublishedCard("a", 0)}));
  Publish("t", SliceOf({PublishedCard("b", 1)}));
  const std::uint64_t version = published_.version();
  published_.Follow(slices_);
  EXPECT_EQ(published_.version(), version) << "nothing has changed";
  // The card got another name, and its slot another card.
  Publish("s", SliceOf({PublishedCard("c", 0), PublishedCard("a", 2)}));
  EXPECT_NE(published_.version(), version);
  EXPECT_THAT(With(0), ElementsAre("c"));
  EXPECT_THAT(Of("a"), ElementsAre(PciOf(2)));
  EXPECT_THAT(With(1), ElementsAre("b"));
  Withdraw("s");
  EXPECT_THAT(Of("a"), IsEmpty());
  EXPECT_THAT(With(0), IsEmpty());
  EXPECT_THAT(With(1), ElementsAre("b"));
  Withdraw("t");
  EXPECT_TRUE(published_.empty());
  EXPECT_THAT(All(published_), IsEmpty());
}

// While a driver replaces its pool both generations may be there.
TEST_F(PublishedHardwareTest, TheNewestGenerationOfAPoolCounts) {
  Publish("new", SliceOf({PublishedCard("a", 1)}, 2));
  Publish("old", SliceOf({PublishedCard("a", 0)}, 1));
  EXPECT_THAT(Of("a"), ElementsAre(PciOf(1)));
  Withdraw("new");
  EXPECT_THAT(Of("a"), ElementsAre(PciOf(0)));
}

// An address says nothing of hardware on other nodes.
TEST_F(PublishedHardwareTest, OnlyDevicesOfThisNodeHaveHardware) {
  auto elsewhere = SliceOf({PublishedCard("e", 0)});
  elsewhere->node_name = "n2";
  Publish("elsewhere", elsewhere);
  auto everywhere = SliceOf({PublishedCard("f", 1)});
  everywhere->node_name = "";
  everywhere->all_nodes = true;
  Publish("everywhere", everywhere);
  auto by_device = SliceOf({PublishedCard("g", 2), PublishedCard("h", 3)});
  by_device->node_name = "";
  by_device->per_device_node_selection = true;
  by_device->devices[0].node_name = SharedText("n1");
  by_device->devices[1].node_name = SharedText("n2");
  Publish("by-device", by_device);
  EXPECT_THAT(All(published_), ElementsAre("g"));
  EXPECT_THAT(Of("h"), IsEmpty());
  // Without a name of the node, every node may be this one; none is not.
  PublishedHardware anywhere(HardwareOptions(), "");
  anywhere.Follow(slices_);
  EXPECT_THAT(All(anywhere), UnorderedElementsAre("e", "g", "h"));
}

TEST_F(PublishedHardwareTest, NothingIsRecognisedWhereThatIsOff) {
  HardwareOptions off;
  off.one_holder = false;
  PublishedHardware published(off, "n1");
  slices_.insert_or_assign({"", "s"}, SliceOf({PublishedCard("a", 0)}));
  published.Follow(slices_);
  EXPECT_FALSE(published.options().one_holder);
  EXPECT_TRUE(published.empty());
  EXPECT_THAT(Of(published, "a"), IsEmpty());
}

TEST_F(PublishedHardwareTest, DriversThatShareByIntentHaveNone) {
  HardwareOptions shared;
  shared.shared = {kGpuDriver};
  PublishedHardware published(shared, "n1");
  slices_.insert_or_assign({"", "s"}, SliceOf({PublishedCard("a", 0)}));
  published.Follow(slices_);
  slices_.erase({"", "s"});
  published.Follow(slices_);
  EXPECT_TRUE(published.empty());
}

}  // namespace
}  // namespace devmgr::claim
