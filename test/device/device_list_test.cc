// SPDX-License-Identifier: Apache-2.0
//
// What plugins get wrong (W-29): told of, and kept from harming the rest.
#include "device/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/devices.h"
#include "device/id_order.h"
#include "support/random_lives.h"

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(CheckListTest, SortsNaturallyAndRemembersThePlaces) {
  const CheckedList checked =
      CheckList({Healthy("d10"), Healthy("d2"), Unhealthy("d1")}, {});
  EXPECT_THAT(checked.devices,
              ElementsAre(Unhealthy("d1"), Healthy("d2"), Healthy("d10")));
  EXPECT_THAT(checked.places, ElementsAre(2, 1, 0));
  EXPECT_EQ(checked.problems.count, 0u);
}

// Sorting has its short cuts; the order is that of IdLess all the same.
TEST(CheckListTest, SortsAsIdLessDoes) {
  const std::string letters = "0019ab-\x7f";
  const std::vector<std::string> prefixes = {"", "dev-", "gpu1", "7", "x0"};
  LiveEach({3, 500}, [&](Luck& luck) {
    const std::string& prefix = luck.Pick(prefixes);
    std::vector<Device> list;
    for (int n = 0; n < 20; ++n) {
      std::string id = prefix;
      for (auto left = luck.Below(5); left > 0; --left) {
        id += luck.Pick(letters);
      }
      if (luck.Below(50) == 0) id += "99999999999999999999";
      list.push_back(Healthy(id));
    }
    const CheckedList checked = CheckList(list, {});
    ASSERT_TRUE(std::is_sorted(
        checked.devices.begin(), checked.devices.end(),
        [](const Device& a, const Device& b) { return IdLess(a.id, b.id); }));
  });
}

TEST(CheckListTest, MakesOneOfTwoWithOneId) {
  const CheckedList checked = CheckList(
      {Healthy("a", {1}), Unhealthy("b"), Healthy("b"), Healthy("a", {0})},
      {0, 1});
  EXPECT_THAT(checked.devices, ElementsAre(Healthy("a", {0}), Unhealthy("b")));
  EXPECT_THAT(checked.places, IsEmpty());
  EXPECT_THAT(
      checked.problems.texts,
      ElementsAre("device 'a' is listed twice", "device 'b' is listed twice"));
}

TEST(CheckListTest, UnhealthyWinsWhereverItStands) {
  EXPECT_THAT(CheckList({Healthy("a"), Unhealthy("a")}, {}).devices,
              ElementsAre(Unhealthy("a")));
}

TEST(CheckListTest, DropsIdsThatCannotBeUsed) {
  const CheckedList checked =
      CheckList({Healthy(""), Healthy(std::string(kMaxIdLength + 1, 'x')),
                 Healthy("\xff"), Healthy("good")},
                {});
  EXPECT_THAT(checked.devices, ElementsAre(Healthy("good")));
  EXPECT_THAT(checked.problems.texts,
              ElementsAre("a device has an empty ID", HasSubstr("1025 bytes"),
                          HasSubstr("not UTF-8")));
}

TEST(CheckListTest, TellsOfIdsLongerThanDefinedAndKeepsThem) {
  const std::string id(kDefinedIdLength + 1, 'x');
  const CheckedList checked =
      CheckList({Healthy(id), Healthy(id.substr(1))}, {});
  EXPECT_THAT(checked.devices, SizeIs(2));
  EXPECT_THAT(checked.problems.texts, ElementsAre(HasSubstr("64 bytes")));
}

TEST(CheckListTest, TakesAwayNumaNodesThatDoNotExist) {
  const CheckedList checked =
      CheckList({Healthy("a", {7, 1, 0, 1}), Healthy("b", {9})}, {0, 1});
  EXPECT_THAT(checked.devices, ElementsAre(Healthy("a", {0, 1}), Healthy("b")));
  EXPECT_THAT(checked.problems.texts,
              ElementsAre("device 'a': there is no NUMA node 7",
                          "device 'b': there is no NUMA node 9"));
}

TEST(CheckListTest, AnyNodeMayExistOnAMachineThatTellsNone) {
  const CheckedList checked = CheckList({Healthy("a", {5, -1})}, {});
  EXPECT_THAT(checked.devices, ElementsAre(Healthy("a", {5})));
  EXPECT_THAT(checked.problems.texts,
              ElementsAre("device 'a': there is no NUMA node -1"));
}

TEST(CheckListTest, CountsProblemsAndListsTheFirst) {
  const CheckedList checked = CheckList(std::vector<Device>(1000), {});
  EXPECT_THAT(checked.devices, IsEmpty());
  EXPECT_EQ(checked.problems.count, 1000u);
  EXPECT_THAT(checked.problems.texts, SizeIs(ListProblems::kMaxTexts));
}

TEST(CheckDeviceIdTest, SaysWhatIsWrong) {
  EXPECT_EQ(CheckDeviceId("GPU-0::3"), "");
  EXPECT_EQ(CheckDeviceId(std::string(kMaxIdLength, 'x')), "");
  EXPECT_THAT(CheckDeviceId(""), HasSubstr("empty"));
  EXPECT_THAT(CheckDeviceId(std::string(kMaxIdLength + 1, 'x')),
              HasSubstr("1025 bytes"));
  EXPECT_THAT(CheckDeviceId("a\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(CheckDeviceId("a\nb"), HasSubstr("control"));
}

}  // namespace
}  // namespace devmgr::device
