// SPDX-License-Identifier: Apache-2.0
#include <devmgr/topology.h>
#include <gtest/gtest.h>

#include "server/convert.h"

namespace devmgr::server {
namespace {

template <typename Message>
Message Parsed(const Message& message) {
  Message copy;
  EXPECT_TRUE(copy.ParseFromString(message.SerializeAsString()));
  return copy;
}

TEST(ConvertTopologyTest, NumaNodesKeepEveryField) {
  NumaInfo info;
  info.options = {TopologyPolicy::kRestricted, TopologyScope::kPod, true, 34};
  info.nodes = {{0, {0, 1}, 1'024, {10, 21}, {{"r", false, 4, 3, 2}}},
                {63, {}, {}, {21, 10}, {}}};
  info.nowhere = {{"d", true, 1, 1, 1}};
  info.synthetic = true;
  info.problems = {"one", "two"};
  const NumaInfo back = FromProto(Parsed(ToProto(info)));
  EXPECT_EQ(back.options, info.options);
  EXPECT_EQ(back.nodes, info.nodes);
  EXPECT_EQ(back.nowhere, info.nowhere);
  EXPECT_TRUE(back.synthetic);
  EXPECT_EQ(back.problems, info.problems);
}

TEST(ConvertTopologyTest, AnAlignmentKeepsEveryField) {
  TopologyHintsInfo hints;
  hints.provider = "device";
  hints.resource = "r";
  hints.hints = {{NumaMask(1ULL << 63), true}, {std::nullopt, false}};
  hints.count = 70;
  hints.truncated = true;
  TopologyHintsInfo none = hints;
  none.hints.emplace();
  none.truncated = false;
  none.informative = true;
  TopologyHintsInfo no_opinion;
  PodAlignmentInfo info;
  info.options.policy = TopologyPolicy::kSingleNumaNode;
  info.admitted = false;
  info.message = "why";
  ContainerAlignmentInfo container;
  container.container = "c";
  container.resources = {hints, none, no_opinion};
  container.merged = {NumaMask(5), false};
  container.admitted = false;
  container.proven = false;
  info.containers = {container, {}};
  const PodAlignmentInfo back = FromProto(Parsed(ToProto(info)));
  EXPECT_EQ(back.options, info.options);
  EXPECT_FALSE(back.admitted);
  EXPECT_EQ(back.message, "why");
  ASSERT_EQ(back.containers.size(), 2u);
  const ContainerAlignmentInfo& first = back.containers[0];
  EXPECT_EQ(first.container, container.container);
  EXPECT_EQ(first.merged, container.merged);
  EXPECT_FALSE(first.admitted);
  EXPECT_FALSE(first.proven);
  ASSERT_EQ(first.resources.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const TopologyHintsInfo& got = first.resources[i];
    const TopologyHintsInfo& sent = container.resources[i];
    EXPECT_EQ(got.provider, sent.provider);
    EXPECT_EQ(got.resource, sent.resource);
    EXPECT_EQ(got.hints, sent.hints);
    EXPECT_EQ(got.count, sent.count);
    EXPECT_EQ(got.truncated, sent.truncated);
    EXPECT_EQ(got.informative, sent.informative);
  }
  EXPECT_TRUE(back.containers[1].admitted);
  EXPECT_FALSE(back.containers[1].merged.nodes.has_value());
}

}  // namespace
}  // namespace devmgr::server
