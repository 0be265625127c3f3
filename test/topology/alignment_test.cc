// SPDX-License-Identifier: Apache-2.0
#include "topology/alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "topology/masks.h"

namespace devmgr::topology {
namespace {

/// One GPU per node: the nodes that are still free serve one each.
std::vector<ResourceHints> OneGpuPerNode(
    const ContainerName& container,
    const std::vector<AlignedContainer>& before) {
  if (container.empty()) return ListsOf({{{P({0, 1})}}});
  std::vector<TopologyHint> hints;
  for (const int node : {0, 1}) {
    bool taken = false;
    for (const AlignedContainer& other : before) {
      taken = taken || other.merged.hint.nodes == MaskOf({node});
    }
    if (!taken) hints.push_back(P({node}));
  }
  return ListsOf({hints});
}

TEST(AlignmentTest, APodCanBeTooWideWhereItsContainersAreNot) {  // BO-150
  const std::vector<ContainerName> containers = {"a", "b"};
  const NumaMachine machine{FirstNodes(2)};
  const PodAlignment by_container = AlignPod(
      {.policy = Policy::kSingleNumaNode}, machine, containers, OneGpuPerNode);
  ASSERT_TRUE(by_container.admitted);
  ASSERT_EQ(by_container.containers.size(), 2u);
  EXPECT_EQ(by_container.containers[0].merged.hint, P({0}));
  EXPECT_EQ(by_container.containers[1].merged.hint, P({1}));
  EXPECT_EQ(by_container.containers[1].container, "b");
  const PodAlignment by_pod =
      AlignPod({.policy = Policy::kSingleNumaNode, .scope = Scope::kPod},
               machine, containers, OneGpuPerNode);
  EXPECT_FALSE(by_pod.admitted);
  ASSERT_EQ(by_pod.containers.size(), 1u);
  EXPECT_EQ(by_pod.containers[0].merged.hint, kAnyN);
}

TEST(AlignmentTest, TheFirstRefusalEndsIt) {  // BO-149: nothing is held here
  const PodAlignment pod =
      AlignPod({.policy = Policy::kSingleNumaNode}, NumaMachine{FirstNodes(2)},
               {"a", "b", "c", "d"}, OneGpuPerNode);
  EXPECT_FALSE(pod.admitted);
  ASSERT_EQ(pod.containers.size(), 3u);
  EXPECT_EQ(pod.containers.back().container, "c");
}

TEST(AlignmentTest, UnderThePodsScopeEachContainerHasTheSameHint) {
  const PodAlignment pod =
      AlignPod({.policy = Policy::kRestricted, .scope = Scope::kPod},
               NumaMachine{FirstNodes(2)}, {"a", "b"}, OneGpuPerNode);
  ASSERT_TRUE(pod.admitted);
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[0].merged.hint, P({0, 1}));
  EXPECT_EQ(pod.containers[1].merged.hint, P({0, 1}));
}

TEST(AlignmentTest, UnderNoneNoHintsAreAskedFor) {
  const PodAlignment pod =
      AlignPod({}, NumaMachine{FirstNodes(2)}, {"a"},
               [](const auto&, const auto&) -> std::vector<ResourceHints> {
                 ADD_FAILURE() << "asked";
                 return {};
               });
  EXPECT_TRUE(pod.admitted);
}

}  // namespace
}  // namespace devmgr::topology
