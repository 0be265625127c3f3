// SPDX-License-Identifier: Apache-2.0
#include "device/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace devmgr::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kUuid[] = "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c";

std::string PciOf(const std::string& text) {
  const auto identity = PciIdentity(text);
  return identity.has_value() ? identity->text : "none";
}

std::string UuidOf(const std::string& text) {
  const auto identity = UuidIdentity(text);
  return identity.has_value() ? identity->text : "none";
}

std::vector<std::string> TextsOf(const Hardware& hardware) {
  std::vector<std::string> texts;
  for (const auto& identity : hardware.identities) {
    texts.push_back(identity.text);
  }
  return texts;
}

Hardware OfAttributes(SortedMap<DeviceAttribute> attributes) {
  SliceDevice device;
  device.attributes = std::move(attributes);
  return HardwareOf(device, {});
}

TEST(HardwareTest, SpellingsOfAPciAddressAreOne) {
  for (const char* same : {"0000:3b:00.0", "0000:3B:00.0", "3b:00.0",
                           "00000000:3B:00.0", "0:3b:00.0"}) {
    EXPECT_EQ(PciOf(same), "pci:0000:3b:00.0") << same;
  }
  EXPECT_EQ(PciOf("10000:e1:1f.7"), "pci:10000:e1:1f.7");
  for (const char* wrong :
       {"", "3b", "3b:00", "3b:00.", "3b:0.0", "3b:000.0", "g0:00.0",
        ":3b:00.0", "0000:3b:00.00", "a:0000:3b:00.0", "000000000:3b:00.0",
        "pci3b:00.0"}) {
    EXPECT_EQ(PciOf(wrong), "none") << wrong;
  }
}

TEST(HardwareTest, SpellingsOfAUuidAreOne) {
  const std::string uuid = kUuid;
  EXPECT_EQ(UuidOf(uuid), "uuid:" + uuid);
  EXPECT_EQ(UuidOf("4CF8DB2D-06C0-7D70-1A51-E59B25B2C16C"), "uuid:" + uuid);
  EXPECT_EQ(UuidOf("GPU-" + uuid), "uuid:" + uuid);
  for (const std::string& wrong :
       {std::string(), std::string("0"), uuid + "0", uuid.substr(1), "x" + uuid,
        std::string("00000000-0000-0000-0000-000000000000")}) {
    EXPECT_EQ(UuidOf(wrong), "none") << wrong;
  }
}

TEST(HardwareTest, AttributesTellWhichHardwareADeviceIs) {
  const Hardware gpu = OfAttributes(
      {{"resource.kubernetes.io/pciBusID", SharedText("0000:3B:00.0")},
       {"resource.kubernetes.io/pcieRoot", SharedText("pci0000:3a")},
       {"resource.kubernetes.io/numaNode", std::int64_t{1}},
       {"gpu.example.com/uuid", SharedText(std::string("GPU-") + kUuid)}});
  EXPECT_THAT(TextsOf(gpu),
              ElementsAre("pci:0000:3b:00.0", std::string("uuid:") + kUuid));
  EXPECT_FALSE(gpu.part);
  EXPECT_THAT(TextsOf(OfAttributes({{"model", SharedText("3b:00.0")},
                                    {"uuid", std::int64_t{7}}})),
              IsEmpty());
}

TEST(HardwareTest, OfSeveralFunctionsEachCounts) {
  const Hardware both =
      OfAttributes({{"resource.kubernetes.io/pciBusID",
                     RareVector<SharedText>(std::vector<SharedText>{
                         SharedText("3b:00.0"), SharedText("3b:00.1")})}});
  EXPECT_THAT(TextsOf(both),
              ElementsAre("pci:0000:3b:00.0", "pci:0000:3b:00.1"));
}

// A part excludes what has all of the hardware, and no other part.
TEST(HardwareTest, PartsShareTheirHardware) {
  const Hardware whole = OfAttributes({{"pciAddress", SharedText("3b:00.0")}});
  const Hardware by_parent =
      OfAttributes({{"pciAddress", SharedText("3b:00.0")},
                    {"parentUUID", SharedText("GPU-1")}});
  SliceDevice device;
  device.attributes.emplace("pciAddress", SharedText("3b:00.0"));
  DeviceCounterConsumption counters;
  counters.counter_set = "gpu-0";
  device.consumes_counters = RareVector<DeviceCounterConsumption>{counters};
  const Hardware by_counters = HardwareOf(device, {});
  EXPECT_TRUE(by_parent.part);
  EXPECT_TRUE(by_counters.part);
  EXPECT_EQ(FindClash(by_parent, by_counters), nullptr);
  ASSERT_NE(FindClash(by_parent, whole), nullptr);
  EXPECT_EQ(IdentityText(*FindClash(whole, by_counters)),
            "PCI address 0000:3b:00.0");
}

TEST(HardwareTest, IdsOfPluginsThatAreIdentities) {
  EXPECT_THAT(TextsOf(HardwareOf(DeviceId("0000:3B:00.0"))),
              ElementsAre("pci:0000:3b:00.0"));
  EXPECT_THAT(TextsOf(HardwareOf(DeviceId(std::string("GPU-") + kUuid))),
              ElementsAre(std::string("uuid:") + kUuid));
  EXPECT_TRUE(HardwareOf(DeviceId(std::string("MIG-") + kUuid)).part);
  for (const char* opaque : {"", "0", "gpu-0", "3b:00.0", "a::b"}) {
    EXPECT_TRUE(HardwareOf(DeviceId(opaque)).empty()) << opaque;
  }
}

TEST(HardwareTest, ReplicasAreNoHardware) {
  const DeviceId replica(std::string("GPU-") + kUuid + "::3");
  EXPECT_TRUE(IsReplica(replica));
  EXPECT_TRUE(HardwareOf(replica).empty());
  const std::vector<NodeFacts> nodes = {{"/dev/nvidia0", "c", 195, 0}};
  EXPECT_TRUE(HardwareOf({replica}, nodes, {}).empty());
  for (const char* single : {"a", "a::", "::3", "a:3", "a::x"}) {
    EXPECT_FALSE(IsReplica(DeviceId(single))) << single;
  }
}

TEST(HardwareTest, ControlNodesAreNoHardware) {
  const std::vector<NodeFacts> nodes = {
      {"/dev/nvidiactl", "c", 195, 255},
      {"/dev/nvidia-uvm", "c", 508, 0},
      {"/dev/nvidia-uvm-tools", "c", 508, 1},
      {"/dev/nvidia-modeset", "c", 195, 254},
      {"/dev/nvidia-caps/nvidia-cap1", "c", 511, 1},
      {"/dev/kfd", "c", 511, 0},
      {"/dev/fuse", "c", 10, 229},
      {"/dev/vfio/vfio", "c", 10, 196},
      {"/dev/nvidia1", "c", 195, 1}};
  EXPECT_THAT(TextsOf(HardwareOf(nodes, HardwareOptions())),
              ElementsAre("node:c195:1"));
  HardwareOptions options;
  options.control_nodes = {"/dev/nvidia*"};
  EXPECT_THAT(
      TextsOf(HardwareOf(std::vector<NodeFacts>({nodes.front(), nodes.back()}),
                         options)),
      IsEmpty());
}

// Card and render node of one GPU have their device in common.
TEST(HardwareTest, NodesOfAGraphicsCardAreOne) {
  const std::string gpu = "/devices/pci0000:00/0000:00:01.0/0000:3b:00.0";
  const Hardware card =
      HardwareOf(std::vector<NodeFacts>{{"/dev/dri/card1", "c", 226, 1, gpu}},
                 HardwareOptions());
  const Hardware render = HardwareOf(
      std::vector<NodeFacts>{{"/dev/dri/renderD128", "c", 226, 128, gpu}},
      HardwareOptions());
  ASSERT_NE(FindClash(card, render), nullptr);
  EXPECT_EQ(FindClash(card, render)->text, "pci:0000:3b:00.0");
  const std::string soc = "/devices/platform/soc/3d00000.gpu";
  const Hardware soc_card =
      HardwareOf(std::vector<NodeFacts>{{"/dev/dri/card0", "c", 226, 0, soc}},
                 HardwareOptions());
  const Hardware soc_render = HardwareOf(
      std::vector<NodeFacts>{{"/dev/dri/renderD129", "c", 226, 129, soc}},
      HardwareOptions());
  ASSERT_NE(FindClash(soc_card, soc_render), nullptr);
  EXPECT_EQ(FindClash(card, soc_card), nullptr);
}

// Several ports or disks hang on one controller.
TEST(HardwareTest, ADiskIsNotItsController) {
  const std::string controller = "/devices/pci0000:00/0000:00:1f.2";
  EXPECT_THAT(TextsOf(HardwareOf(
                  std::vector<NodeFacts>{{"/dev/sda", "b", 8, 0, controller}},
                  HardwareOptions())),
              ElementsAre("node:b8:0"));
  EXPECT_THAT(TextsOf(HardwareOf(
                  std::vector<NodeFacts>{{"/dev/ttyS0", "c", 4, 64,
                                          "/devices/platform/serial8250"}},
                  HardwareOptions())),
              ElementsAre("node:c4:64"));
}

// For those who know the device from elsewhere: a UUID as it is spelled.
TEST(HardwareTest, NamesForJoins) {
  const std::string gpu = std::string("GPU-") + kUuid;
  EXPECT_EQ(NamesOf(DeviceId(gpu)), (HardwareNames{gpu, ""}));
  EXPECT_EQ(NamesOf(DeviceId(gpu + "::3")), (HardwareNames{gpu, ""}));
  EXPECT_EQ(NamesOf(DeviceId("0000:3B:00.0")),
            (HardwareNames{"", "0000:3b:00.0"}));
  EXPECT_EQ(NamesOf(DeviceId("7")), HardwareNames());
  SliceDevice device;
  device.attributes = {{"gpu.example.com/uuid", SharedText(gpu)},
                       {"model", SharedText("x")},
                       {"pciBusID", SharedText("3b:00.0")}};
  EXPECT_EQ(NamesOf(device, {}), (HardwareNames{gpu, "0000:3b:00.0"}));
  device.attributes = {{"pciBusID", SharedText("nowhere")},
                       {"uuid", SharedText("none")}};
  EXPECT_EQ(NamesOf(device, {}), HardwareNames());
  EXPECT_EQ(NamesOf(OfAttributes({{"uuid", SharedText(gpu)}})),
            (HardwareNames{kUuid, ""}));
}

TEST(HardwareTest, OwnersThatShareByIntent) {
  HardwareOptions options;
  options.shared = {"rdma/*", "d.example.com"};
  EXPECT_TRUE(IsSharedByIntent("rdma/hca", options));
  EXPECT_TRUE(IsSharedByIntent("d.example.com", options));
  EXPECT_FALSE(IsSharedByIntent("e.example.com", options));
}

}  // namespace
}  // namespace devmgr::device
