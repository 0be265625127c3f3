// SPDX-License-Identifier: Apache-2.0
#include "device/merge_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace devmgr::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

template <typename T>
std::vector<T> Values(const std::vector<FromResource<T>>& parts) {
  std::vector<T> values;
  for (const FromResource<T>& part : parts) values.push_back(part.value);
  return values;
}

ContainerEdits Merged(const std::vector<ResourceEdits>& edits) {
  const MergedEdits merged = MergeEdits(edits);
  EXPECT_THAT(merged.conflicts, IsEmpty());
  return {.env = Values(merged.env),
          .mounts = Values(merged.mounts),
          .devices = Values(merged.devices),
          .annotations = Values(merged.annotations),
          .cdi_devices = Values(merged.cdi_devices)};
}

TEST(MergeEditsTest, PutsTheAnswersTogetherSorted) {  // DP-099
  const ContainerEdits merged =
      Merged({{"r2", {.env = {{"B", "2"}}, .devices = {{"/c", "/h3", "rw"}}}},
              {"r1",
               {.env = {{"C", "1"}, {"A", "3"}},
                .mounts = {{"/m2", "/h", true}, {"/m1", "/h", false}},
                .devices = {{"/b", "/h2", "r"}, {"/a", "/h1", "mrw"}},
                .annotations = {{"k", "v"}}}}});
  EXPECT_THAT(merged.env,
              ElementsAre(NamedValue{"A", "3"}, NamedValue{"B", "2"},
                          NamedValue{"C", "1"}));
  EXPECT_THAT(merged.mounts, ElementsAre(DeviceMount{"/m1", "/h", false},
                                         DeviceMount{"/m2", "/h", true}));
  EXPECT_THAT(merged.devices, ElementsAre(DeviceNode{"/a", "/h1", "mrw"},
                                          DeviceNode{"/b", "/h2", "r"},
                                          DeviceNode{"/c", "/h3", "rw"}));
  EXPECT_THAT(merged.annotations, ElementsAre(NamedValue{"k", "v"}));
}

TEST(MergeEditsTest, AnEmptyAnswerIsAnEmptyAnswer) {  // DP-100
  EXPECT_EQ(Merged({{"r", {}}}), ContainerEdits{});
}

TEST(MergeEditsTest, CdiNamesOccurOnceAndSorted) {  // DP-101, DP-102
  EXPECT_THAT(Merged({{"r", {.cdi_devices = {"v/c=b", "v/c=a"}}}}).cdi_devices,
              ElementsAre("v/c=a", "v/c=b"));
  EXPECT_THAT(Merged({{"r1", {.cdi_devices = {"v/c=a", "v/c=b"}}},
                      {"r2", {.cdi_devices = {"v/c=c", "v/c=a", "v/c=d"}}}})
                  .cdi_devices,
              ElementsAre("v/c=a", "v/c=b", "v/c=c", "v/c=d"));
}

TEST(MergeEditsTest, TheSameThingTwiceIsNoConflict) {  // DP-103
  const ResourceEdits one = {"r1",
                             {.env = {{"A", "1"}},
                              .mounts = {{"/m", "/h", true}},
                              .devices = {{"/d", "/h", "rw"}},
                              .annotations = {{"k", "v"}}}};
  EXPECT_EQ(Merged({one, {"r2", one.edits}}), one.edits);
}

// W-27, BO-107, BO-108
TEST(MergeEditsTest, TheFirstResourceWinsAConflict) {
  const MergedEdits merged = MergeEdits({{"r2",
                                          {.env = {{"A", "2"}},
                                           .mounts = {{"/m", "/h", false}},
                                           .devices = {{"/d", "/h2", "r"}},
                                           .annotations = {{"k", "w"}}}},
                                         {"r1",
                                          {.env = {{"A", "1"}},
                                           .mounts = {{"/m", "/h", true}},
                                           .devices = {{"/d", "/h1", "rw"}},
                                           .annotations = {{"k", "v"}}}}});
  EXPECT_THAT(merged.env,
              ElementsAre(FromResource<NamedValue>{{"A", "1"}, "r1"}));
  EXPECT_TRUE(merged.mounts[0].value.read_only);
  EXPECT_THAT(merged.devices,
              ElementsAre(FromResource<DeviceNode>{{"/d", "/h1", "rw"}, "r1"}));
  EXPECT_EQ(merged.annotations[0].value.value, "v");
  EXPECT_THAT(merged.conflicts,
              ElementsAre(EditConflict{"annotation", "k", "r1", "r2"},
                          EditConflict{"device", "/d", "r1", "r2"},
                          EditConflict{"env", "A", "r1", "r2"},
                          EditConflict{"mount", "/m", "r1", "r2"}));
  EXPECT_EQ(ConflictText(merged.conflicts[2]),
            "env 'A': the plugin of 'r2' wants it otherwise than that of "
            "'r1', which wins");
}

TEST(MergeEditsTest, APluginMayContradictItself) {
  const MergedEdits merged = MergeEdits(
      {{"r", {.mounts = {{"/m", "/first", false}, {"/m", "/then", false}}}}});
  EXPECT_EQ(merged.mounts[0].value.host_path, "/first");
  EXPECT_THAT(merged.conflicts,
              ElementsAre(EditConflict{"mount", "/m", "r", "r"}));
}

TEST(MergeEditsTest, KeepsMountsAsTheyAre) {  // DP-104
  EXPECT_THAT(Merged({{"r", {.mounts = {{"/in", "relative", true}}}}}).mounts,
              ElementsAre(DeviceMount{"/in", "relative", true}));
}

}  // namespace
}  // namespace devmgr::device
