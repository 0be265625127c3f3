// SPDX-License-Identifier: Apache-2.0
#include "shim/held_devices.h"

#include <devmgr/cri_shim.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cdi/cdi_world.h"

namespace devmgr::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

HeldDevices Some() {
  HeldDevices held;
  held.devices = {{"r.com/a", "0"}, {"r.com/a", "x\"y"}, {"r.com/b", "1"}};
  held.cdi_devices = {"v.com/c=1", "v.com/c=2"};
  return held;
}

TEST(HeldDevicesTest, AreWrittenAndReadAgain) {
  EXPECT_EQ(ReadHeld(WriteHeld(Some())), Some());
  EXPECT_EQ(WriteHeld(HeldDevices()), "{}");
  HeldDevices held;
  held.devices = {{"r.com/a", "0"}};
  EXPECT_EQ(WriteHeld(held), R"({"resources":{"r.com/a":["0"]}})");
}

TEST(HeldDevicesTest, WhatCannotBeReadSaysNothing) {
  for (const char* text :
       {"", "x", "[]", "7", R"({"resources": 7})", R"({"resources": {"r": 7}})",
        R"({"resources": {"r": [7, ""]}})", R"({"resources": {"": ["0"]}})",
        R"({"cdi": "v.com/c=1"})", R"({"cdi": [7, {}]})"}) {
    EXPECT_EQ(ReadHeld(text), HeldDevices()) << text;
  }
  EXPECT_THAT(
      ReadHeld(R"({"cdi": [7, "v.com/c=1"], "resources": []})").cdi_devices,
      ElementsAre("v.com/c=1"));
}

TEST(HeldDevicesTest, AreAddedAndTakenAway) {
  HeldDevices held;
  held.devices = {{"r.com/a", "0"}, {"r.com/a", "7"}};
  held.cdi_devices = {"v.com/c=1", "v.com/c=7"};
  held.Remove(Some());
  EXPECT_THAT(held.devices, ElementsAre(Pair("r.com/a", "7")));
  EXPECT_THAT(held.cdi_devices, ElementsAre("v.com/c=7"));
  held.Add(Some());
  EXPECT_EQ(held.devices.size(), 4u);
  held.Remove(HeldDevices(held));
  EXPECT_TRUE(held.empty());
}

TEST(HeldDevicesTest, AreThoseOfAllContainersOfAPod) {
  ContainerDevices first;
  first.resources = {{"r.com/a", {"0", "x\"y"}}};
  first.cdi_devices = {{"v.com/c=1", {}}};
  ContainerDevices second;
  second.resources = {{"r.com/b", {"1"}}};
  second.annotations = {{"cdi.k8s.io/plugin", "v.com/c=2", "r.com/b"}};
  EXPECT_EQ(HeldBy(PodDevices{{"ns", "p"}, {"u"}, {first, second}}), Some());
}

TEST(HeldDevicesTest, AnnotationsTellThem) {
  EXPECT_EQ(HeldByAnnotations({{"other", "v.com/c=3"}}), HeldDevices());
  const HeldDevices held = HeldByAnnotations(
      {{std::string(kDevicesAnnotation), R"({"resources":{"r.com/a":["0"]}})"},
       {"cdi.k8s.io/x", "v.com/c=1"}});
  EXPECT_THAT(held.devices, ElementsAre(Pair("r.com/a", "0")));
  EXPECT_THAT(held.cdi_devices, ElementsAre("v.com/c=1"));
}

class HeldByConfigTest : public ::testing::Test {
 protected:
  HeldByConfigTest() {
    host_.AddChar("/dev/x", 240, 1);
    host_.AddChar("/dev/y", 240, 2);
    host_.AddChar("/dev/control", 240, 9);
    host_.AddChar("/dev/null", 1, 3);
  }
  std::set<std::string> Names(const std::string& nodes,
                              const std::string& rules = "") {
    config_.oci = R"({"linux": {"devices": [)" + nodes +
                  R"(], "resources": {"devices": [)" + rules + "]}}}";
    return HeldByConfig(config_, *registry_, host_.Host()).cdi_devices;
  }
  static std::string Node(const std::string& path, int minor) {
    return fmt::format(
        R"({{"path": "{}", "type": "c", "major": 240, "minor": {}}})", path,
        minor);
  }

  FakeCdiHost host_;
  /// `1` and `2` have a node of their own and a common one; `all` has all.
  std::shared_ptr<const CdiRegistry> registry_ = MakeRegistry(
      {{"/etc/cdi/v.yaml",
        SpecText({{"1", "deviceNodes: [{path: /dev/x}]"},
                  {"2", "deviceNodes: [{path: /dev/y}]"},
                  {"all", "deviceNodes: [{path: /dev/x}, {path: /dev/y}]"},
                  {"gone", "deviceNodes: [{path: /dev/none}]"}},
                 "containerEdits: {deviceNodes: [{path: /dev/control}, {path: "
                 "/dev/null}]}\n")}});
  RuntimeContainerConfig config_;
};

TEST_F(HeldByConfigTest, ADeviceIsHeldWithAllItsNodes) {
  EXPECT_THAT(Names(""), IsEmpty());
  EXPECT_THAT(Names(Node("/dev/control", 9)), IsEmpty());
  EXPECT_THAT(Names(Node("/dev/renamed", 1)), IsEmpty());
  EXPECT_THAT(Names(Node("/dev/renamed", 1) + "," + Node("/dev/control", 9)),
              ElementsAre("v.com/c=1"));
  EXPECT_THAT(Names(Node("/dev/x", 1) + "," + Node("/dev/y", 2) + "," +
                    Node("/dev/control", 9)),
              ElementsAre("v.com/c=1", "v.com/c=2", "v.com/c=all"));
}

TEST_F(HeldByConfigTest, APrivilegedContainerHasTheNodesOfTheHost) {
  EXPECT_THAT(Names(Node("/dev/x", 1) + "," + Node("/dev/control", 9),
                    R"({"allow": true, "access": "rwm"})"),
              IsEmpty());
}

TEST_F(HeldByConfigTest, NamesAndAnnotationsCount) {
  config_.cdi_devices = {"v.com/c=gone"};
  config_.annotations = {
      {std::string(kDevicesAnnotation), R"({"resources":{"r.com/a":["0"]}})"}};
  EXPECT_THAT(Names(""), ElementsAre("v.com/c=gone"));
  config_.oci = "no JSON";
  const HeldDevices held = HeldByConfig(config_, *registry_, host_.Host());
  EXPECT_THAT(held.devices, ElementsAre(Pair("r.com/a", "0")));
  EXPECT_THAT(held.cdi_devices, ElementsAre("v.com/c=gone"));
}

}  // namespace
}  // namespace devmgr::shim
