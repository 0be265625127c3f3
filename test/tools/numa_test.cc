// SPDX-License-Identifier: Apache-2.0
//
// get numa, and the alignment that explain pod shows.
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class NumaTest : public CommandLineTest {
 protected:
  NumaTest() {
    NumaInfo& numa = node_.numa;
    numa.options.policy = TopologyPolicy::kSingleNumaNode;
    for (const int id : {0, 2}) {
      NumaNodeInfo node;
      node.id = id;
      node.cpus = {4 * id, 4 * id + 1, 4 * id + 3};
      node.memory_bytes = 3U << 20;
      node.distances = id == 0 ? std::vector<std::uint32_t>{10, 21}
                               : std::vector<std::uint32_t>{21, 10};
      numa.nodes.push_back(node);
    }
    numa.nodes[1].devices = {{"example.com/gpu", false, 4, 1, 3},
                             {"gpu.example.com", true, 2, 0, 2}};
    numa.nowhere = {{"example.com/nic", false, 1, 0, 1}};
  }
};

TEST_F(NumaTest, NodesAreShownWithDistancesCpusAndDevices) {
  const Result result = Run({"get", "numa"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("single-numa-node, scope container"));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("0-1,3"), HasSubstr("8-9,11"), HasSubstr("10 21"),
                    HasSubstr("3 MiB"),
                    HasSubstr("1 of 4 example.com/gpu used, 1 not healthy; 0 "
                              "of 2 gpu.example.com used"),
                    HasSubstr("none")));
}

TEST_F(NumaTest, OneNodeByItsNumber) {
  const Result result = Run({"get", "numa", "2"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("8-9,11"), Not(HasSubstr("0-1,3")),
                                Not(HasSubstr("example.com/nic"))));
  EXPECT_EQ(Run({"get", "numa", "1"}).code, 3);
  EXPECT_EQ(Run({"get", "numa", "-o", "name"}).out, "numa/0\nnuma/2\n");
}

TEST_F(NumaTest, ForPrograms) {
  const auto document = RunJson({"get", "numa"});
  EXPECT_EQ(document["kind"], "NumaNodeList");
  EXPECT_EQ(document["topology"]["policy"], "single-numa-node");
  EXPECT_EQ(document["items"][1]["metadata"]["name"], "2");
  EXPECT_EQ(document["items"][1]["status"]["distances"][0], 21);
  EXPECT_EQ(document["items"][1]["status"]["devices"][1]["driver"],
            "gpu.example.com");
  EXPECT_EQ(document["devicesOnNoNode"][0]["resource"], "example.com/nic");
}

TEST_F(NumaTest, WhatIsWrongIsNoted) {
  node_.numa.nodes.clear();
  node_.numa.problems = {"devices/system/node/online: is no list"};
  const Result result = Run({"get", "numa"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("is no list"), HasSubstr("are not known")));
}

TEST_F(NumaTest, ExplainShowsHintsTheirMergeAndTheResult) {
  node_.pods.push_back(MakePod("default", "p", PodState::kRejected));
  PodAlignmentInfo alignment;
  alignment.options.policy = TopologyPolicy::kRestricted;
  alignment.admitted = false;
  alignment.message = "no set of NUMA nodes is preferred for all";
  ContainerAlignmentInfo container;
  container.container = "c";
  TopologyHintsInfo gpus;
  gpus.provider = "device";
  gpus.resource = "example.com/gpu";
  gpus.hints = {{NumaMask::OfNode(0), true},
                {NumaMask::OfNode(0) | NumaMask::OfNode(1), false}};
  gpus.count = 7;
  TopologyHintsInfo claim;
  claim.provider = "claim";
  claim.resource = "own";
  claim.hints.emplace();
  claim.informative = true;
  TopologyHintsInfo nics;
  nics.provider = "device";
  nics.resource = "example.com/nic";
  container.resources = {gpus, nics, claim};
  container.merged = {NumaMask::OfNode(0), false};
  container.admitted = false;
  alignment.containers = {container};
  node_.alignments[node_.pods.back().uid] = alignment;
  const Result result = Run({"explain", "pod", "p"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("NUMA alignment"), HasSubstr("refused"),
                    HasSubstr("no set of NUMA nodes is preferred for all"),
                    HasSubstr("{0}* {0-1} and 5 more"), HasSubstr("no opinion"),
                    HasSubstr("claim (only shown)"),
                    HasSubstr("none: no set of nodes serves the request")));
  const auto document = RunJson({"explain", "pod", "p"});
  const auto& shown = document["alignment"]["containers"][0];
  EXPECT_EQ(shown["resources"][0]["hints"][0]["nodes"][0], 0);
  EXPECT_EQ(shown["resources"][0]["hintCount"], 7);
  EXPECT_FALSE(shown["resources"][1].contains("hints"));
  EXPECT_EQ(shown["resources"][2]["merged"], false);
  EXPECT_EQ(shown["merged"]["preferred"], false);
}

}  // namespace
}  // namespace devmgr::ctl
