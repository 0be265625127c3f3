// SPDX-License-Identifier: Apache-2.0
#include "view/slice_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

namespace devmgr::view {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class SliceViewsTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, std::int64_t generation, std::int64_t count,
           const std::string& node = "n1") {
    auto slice = std::make_shared<ResourceSlice>();
    slice->metadata.name = name;
    slice->driver = "gpu.example.com";
    slice->pool = "pool";
    slice->pool_generation = generation;
    slice->pool_slice_count = count;
    slice->node_name = node;
    slice->devices.resize(2);
    slice->devices[0].name = name + "-0";
    slice->devices[1].name = name + "-1";
    objects_.resource_slices.insert_or_assign(ObjectName{"", name},
                                              std::move(slice));
  }
  std::map<std::string, SliceInfo> Slices(bool hidden = false,
                                          const std::string& node = "n1") {
    std::map<std::string, SliceInfo> slices;
    for (SliceInfo& slice :
         SlicesOf(objects_, node, [&](std::string_view driver) {
           EXPECT_EQ(driver, "gpu.example.com");
           return hidden;
         })) {
      slices[slice.name] = slice;
    }
    return slices;
  }

  ObjectSnapshot objects_;
};

TEST_F(SliceViewsTest, APoolIsCompleteWithAllItsSlices) {
  Add("a", 1, 2);
  const SliceInfo alone = Slices().at("a");
  EXPECT_FALSE(alone.complete);
  EXPECT_EQ(alone.known_slices, 1);
  EXPECT_EQ(alone.pool_slices, 2);
  EXPECT_THAT(alone.devices, ElementsAre("a-0", "a-1"));
  Add("b", 1, 2);
  EXPECT_TRUE(Slices().at("a").complete);
  EXPECT_TRUE(Slices().at("b").complete);
}

TEST_F(SliceViewsTest, ANewerGenerationMakesTheOthersObsolete) {
  Add("a", 1, 2);
  Add("b", 2, 2);
  EXPECT_TRUE(Slices().at("a").obsolete);
  EXPECT_FALSE(Slices().at("b").obsolete);
  // Those of the old one do not count.
  EXPECT_FALSE(Slices().at("b").complete);
  Add("a", 2, 2);
  EXPECT_FALSE(Slices().at("a").obsolete);
  EXPECT_TRUE(Slices().at("a").complete);
}

TEST_F(SliceViewsTest, OtherNodesCountForTheirPoolOnly) {
  Add("a", 1, 2);
  Add("b", 1, 2, "n2");
  Add("c", 1, 2, "");
  EXPECT_THAT(Slices(), SizeIs(2));
  EXPECT_EQ(Slices().at("a").known_slices, 3);
  EXPECT_EQ(Slices().count("b"), 0u);
  EXPECT_THAT(Slices(false, ""), SizeIs(3));
}

TEST_F(SliceViewsTest, ASliceThatSaysNoCountIsComplete) {
  Add("a", 1, 0);
  EXPECT_TRUE(Slices().at("a").complete);
}

/// Of the newest generation: what is wrong with it is no fault of the others.
TEST_F(SliceViewsTest, AProblemIsThatOfThePool) {
  Add("a", 1, 2);
  Add("b", 2, 2);
  Add("c", 2, 2);
  const auto slices = SlicesOf(
      objects_, "n1", [](std::string_view) { return false; },
      {{{"gpu.example.com", "pool"}, "twice"}, {{"other", "pool"}, "no"}});
  ASSERT_THAT(slices, SizeIs(3));
  EXPECT_EQ(slices[0].problem, "");
  EXPECT_EQ(slices[1].problem, "twice");
  EXPECT_EQ(slices[2].problem, "twice");
}

TEST_F(SliceViewsTest, SlicesOfADriverThatIsAwayAreHidden) {
  Add("a", 1, 1);
  EXPECT_FALSE(Slices().at("a").hidden);
  EXPECT_TRUE(Slices(true).at("a").hidden);
  EXPECT_TRUE(Slices(true).at("a").complete);
}

}  // namespace
}  // namespace devmgr::view
