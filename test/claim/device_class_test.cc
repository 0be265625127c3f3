// SPDX-License-Identifier: Apache-2.0
#include "claim/device_class.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace devmgr::claim {
namespace {

class DeviceClassTest : public testing::Test {
 protected:
  void Add(const std::string& name, const std::string& resource,
           const std::string& created) {
    DeviceClass item;
    item.metadata.name = name;
    item.metadata.creation_timestamp = created;
    item.extended_resource_name = resource;
    classes_.insert_or_assign({"", name},
                              std::make_shared<const DeviceClass>(item));
  }
  std::string OwnerOf(const std::string& resource) const {
    const auto owners = ClassesByResource(classes_);
    const auto owner = owners.find(resource);
    return owner != owners.end() ? owner->second->metadata.name : "";
  }

  ObjectMap<DeviceClass> classes_;
};

TEST_F(DeviceClassTest, OfSeveralWithOneNameTheNewestHasIt) {
  Add("a", "example.com/gpu", "2026-01-01T00:00:00Z");
  Add("b", "example.com/gpu", "2026-03-01T00:00:00Z");
  Add("c", "example.com/gpu", "2026-02-01T00:00:00Z");
  EXPECT_EQ(OwnerOf("example.com/gpu"), "b");
  // Its runner-up, when it goes, though nobody tells of that one again.
  classes_.erase({"", "b"});
  EXPECT_EQ(OwnerOf("example.com/gpu"), "c");
  // And when a loser goes, nothing changes.
  classes_.erase({"", "a"});
  EXPECT_EQ(OwnerOf("example.com/gpu"), "c");
}

TEST(DriversNamedByTest, FindsWhatSelectorsCompareTheDriverWith) {
  DeviceClass item;
  EXPECT_TRUE(DriversNamedBy(item).empty());
  item.selectors = {
      "device.driver == 'gpu.example.com' && true",
      "device.driver==\"nic.example.com\" || device.driver\t== 'x.example.com'",
      "device.driver != 'not.example.com'",
      "device.driver == name",
      "device.driver == 'never ends",
      "device.driver ==",
      "device.driver"};
  EXPECT_EQ(DriversNamedBy(item),
            (std::vector<std::string>{"gpu.example.com", "nic.example.com",
                                      "x.example.com"}));
}

TEST_F(DeviceClassTest, OfThoseOfOneAgeTheFirstByNameHasIt) {
  Add("b", "example.com/gpu", "2026-01-01T01:00:00+01:00");
  Add("a", "example.com/gpu", "2026-01-01T00:00:00Z");
  Add("c", "example.com/gpu", "");
  EXPECT_EQ(OwnerOf("example.com/gpu"), "a");
  EXPECT_EQ(OwnerOf("example.com/nic"), "");
}

TEST_F(DeviceClassTest, AgesAreMomentsAndNotTexts) {
  Add("a", "example.com/gpu", "2026-01-01T09:00:00+09:00");
  Add("b", "example.com/gpu", "2026-01-01T01:00:00Z");
  EXPECT_EQ(OwnerOf("example.com/gpu"), "b");
}

TEST_F(DeviceClassTest, AClassWithoutAnExplicitNameHasNone) {
  Add("a", "", "2026-01-01T00:00:00Z");
  EXPECT_TRUE(ClassesByResource(classes_).empty());
}

// AL-081
TEST_F(DeviceClassTest, EachClassHasItsImplicitNameWhateverItsExplicitOne) {
  Add("c", "example.com/gpu", "");
  Add("d", "", "");
  const ResourceClasses classes(classes_);
  EXPECT_EQ(classes.Find("deviceclass.resource.kubernetes.io/c"),
            classes_.at({"", "c"}).get());
  EXPECT_EQ(classes.Find("deviceclass.resource.kubernetes.io/d"),
            classes_.at({"", "d"}).get());
  EXPECT_EQ(classes.Find("example.com/gpu"), classes_.at({"", "c"}).get());
}

// AL-082
TEST_F(DeviceClassTest, WhoLosesTheExplicitNameKeepsTheImplicitOne) {
  Add("x", "example.com/gpu", "2026-01-01T00:00:00Z");
  Add("y", "example.com/gpu", "2026-01-02T00:00:00Z");
  const ResourceClasses classes(classes_);
  EXPECT_EQ(classes.Find("example.com/gpu"), classes_.at({"", "y"}).get());
  EXPECT_EQ(classes.Find("deviceclass.resource.kubernetes.io/x"),
            classes_.at({"", "x"}).get());
}

// AL-080c
TEST_F(DeviceClassTest, AClassWithALongNameHasNoImplicitOne) {
  const std::string name(80, 'c');
  Add(name, "", "");
  Add("d", "", "");
  const ResourceClasses classes(classes_);
  const std::string resource = "deviceclass.resource.kubernetes.io/" + name;
  EXPECT_EQ(classes.Find(resource), nullptr);
  EXPECT_NE(classes.WhyNone(resource).find("80 characters, 1 to 63"),
            std::string::npos)
      << classes.WhyNone(resource);
  EXPECT_NE(classes.Find("deviceclass.resource.kubernetes.io/d"), nullptr);
}

TEST_F(DeviceClassTest, ANameWithoutAClassSaysWhy) {
  Add("c", "example.com/gpu", "");
  const ResourceClasses classes(classes_);
  EXPECT_EQ(classes.Find("example.com/nic"), nullptr);
  EXPECT_EQ(classes.Find("cpu"), nullptr);
  EXPECT_EQ(classes.WhyNone("example.com/nic"),
            "no DeviceClass has the extendedResourceName 'example.com/nic'");
  EXPECT_EQ(classes.Find("deviceclass.resource.kubernetes.io/e"), nullptr);
  EXPECT_EQ(classes.WhyNone("deviceclass.resource.kubernetes.io/e"),
            "'deviceclass.resource.kubernetes.io/e' means the DeviceClass 'e', "
            "which does not exist");
}

}  // namespace
}  // namespace devmgr::claim
