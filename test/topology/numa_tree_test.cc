// SPDX-License-Identifier: Apache-2.0
#include "topology/numa_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "support/fake_sysfs.h"
#include "support/status_matchers.h"
#include "topology/masks.h"

namespace devmgr::topology {
namespace {

using absl::StatusCode;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string PathOf(int node, std::string_view file) {
  return fmt::format("devices/system/node/node{}/{}", node, file);
}

/// Nodes with two CPUs each, 10 from themselves and 21 from all others.
FakeSysfs MachineWith(const std::vector<int>& nodes) {
  FakeSysfs files;
  files["devices/system/node/online"] =
      fmt::format("{}\n", fmt::join(nodes, ","));
  files["devices/system/node/possible"] = "0-63\n";
  for (const int node : nodes) {
    files[PathOf(node, "cpulist")] =
        fmt::format("{}-{}\n", 2 * node, 2 * node + 1);
    files[PathOf(node, "meminfo")] = fmt::format(
        "Node {} MemTotal:       1024 kB\nNode {} MemFree: 1 kB\n", node, node);
    std::vector<int> row;
    for (const int other : nodes) row.push_back(other == node ? 10 : 21);
    files[PathOf(node, "distance")] = fmt::format("{}\n", fmt::join(row, " "));
  }
  return files;
}

NumaTree Read(const FakeSysfs& files) {
  auto tree = ReadNumaTree(files);
  EXPECT_THAT(tree, IsOk());
  return tree.ok() ? *std::move(tree) : NumaTree();
}

constexpr Options kClosest = {.policy = Policy::kBestEffort,
                              .prefer_closest = true,
                              .max_numa_nodes = 64};
constexpr Options kPlain = {.policy = Policy::kBestEffort,
                            .max_numa_nodes = 64};

TEST(NumaTreeTest, NodesAreInTheOrderOfTheirNumbers) {  // BO-153
  std::vector<int> nodes(12);
  std::iota(nodes.begin(), nodes.end(), 0);
  const NumaTree tree = Read(MachineWith(nodes));
  EXPECT_EQ(tree.ids(), std::vector<std::int64_t>(nodes.begin(), nodes.end()));
  EXPECT_THAT(tree.warnings, IsEmpty());
  // Neither without the file that lists them.
  FakeSysfs files = MachineWith(nodes);
  files.Remove("devices/system/node/online");
  EXPECT_EQ(Read(files).ids(), tree.ids());
  EXPECT_THAT(Read(files).warnings, ElementsAre(HasSubstr("is absent")));
}

TEST(NumaTreeTest, WhatANodeHasIsRead) {
  FakeSysfs files = MachineWith({0, 1});
  files[PathOf(1, "hugepages/hugepages-2048kB/nr_hugepages")] = "16\n";
  files[PathOf(1, "hugepages/hugepages-1048576kB/nr_hugepages")] = "2\n";
  const NumaTree tree = Read(files);
  ASSERT_EQ(tree.nodes.size(), 2u);
  const NumaNode& node = tree.nodes[1];
  EXPECT_EQ(node.id, 1);
  EXPECT_THAT(node.cpus, ElementsAre(2, 3));
  EXPECT_EQ(node.memory_bytes, 1024u * 1024u);
  EXPECT_THAT(node.hugepages, ElementsAre(Pair(2048, 16), Pair(1048576, 2)));
  EXPECT_FALSE(tree.synthetic);
  EXPECT_THAT(tree.warnings, IsEmpty());
}

TEST(NumaTreeTest, WithoutNodesTheMachineIsOneNode) {  // BO-154
  FakeSysfs files;
  files["devices/system/cpu/online"] = "0-3\n";
  const NumaTree tree = Read(files);
  EXPECT_TRUE(tree.synthetic);
  ASSERT_EQ(tree.nodes.size(), 1u);
  EXPECT_EQ(tree.nodes[0].id, 0);
  EXPECT_THAT(tree.nodes[0].cpus, ElementsAre(0, 1, 2, 3));
  ASSERT_THAT(MachineOf(tree, kClosest), IsOk());
  EXPECT_EQ(MachineOf(tree, kClosest)->distances.Of(0, 0), 10u);
  EXPECT_TRUE(Read(FakeSysfs()).synthetic);
  files["devices/system/node/online"] = "\n";
  EXPECT_TRUE(Read(files).synthetic);
}

TEST(NumaTreeTest, RowsOfDistancesAreByPosition) {  // BO-155
  const NumaTree tree = Read(MachineWith({0, 2}));
  ASSERT_TRUE(tree.distances.has_value());
  EXPECT_EQ(tree.distances->Of(0, 2), 21u);
  EXPECT_EQ(tree.distances->Of(2, 0), 21u);
  EXPECT_EQ(tree.distances->Of(2, 2), 10u);
  EXPECT_EQ(tree.mask(), MaskOf({0, 2}));
  EXPECT_THAT(tree.warnings, IsEmpty());
}

TEST(NumaTreeTest, RowsWithANumberPerIdAreTaken) {  // BO-155
  FakeSysfs files = MachineWith({0, 2});
  files[PathOf(0, "distance")] = "10 99 21\n";
  files[PathOf(2, "distance")] = "21 99 10\n";
  const NumaTree tree = Read(files);
  ASSERT_TRUE(tree.distances.has_value());
  EXPECT_EQ(tree.distances->Of(0, 2), 21u);
  EXPECT_EQ(tree.distances->Of(2, 0), 21u);
}

TEST(NumaTreeTest, ADeviceWithoutANodeHasNone) {  // BO-156
  FakeSysfs files = MachineWith({0, 1});
  const std::string path = "bus/pci/devices/0000:3b:00.0/numa_node";
  files[path] = "-1\n";
  const NumaTree tree = Read(files);
  const auto node = [&](std::string_view address = "0000:3b:00.0") {
    return NumaNodeOfPciDevice(files, address, tree);
  };
  ASSERT_THAT(node(), IsOk());
  EXPECT_EQ(*node(), std::nullopt);
  EXPECT_EQ(ShownNode(*node(), tree), std::nullopt);
  EXPECT_EQ(ShownNode(*node(), Read(MachineWith({3}))), 3);
  files[path] = "1\n";
  EXPECT_EQ(*node(), 1);
  for (const char* wrong : {"65535\n", "2\n", "-2\n", "one\n", ""}) {
    files[path] = wrong;
    EXPECT_THAT(node(), StatusIs(StatusCode::kInvalidArgument, HasSubstr(path)))
        << wrong;
  }
  EXPECT_THAT(node("0000:ff:00.0"), StatusIs(StatusCode::kNotFound));
  EXPECT_THAT(node("../../../etc"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no address")));
}

TEST(NumaTreeTest, ANodeWithoutCpusIsKept) {  // BO-157
  FakeSysfs files = MachineWith({0, 1});
  files[PathOf(1, "cpulist")] = "\n";
  const NumaTree tree = Read(files);
  ASSERT_EQ(tree.nodes.size(), 2u);
  EXPECT_THAT(tree.nodes[1].cpus, IsEmpty());
  EXPECT_THAT(tree.warnings, ElementsAre("NUMA node 1 has no CPUs"));
}

TEST(NumaTreeTest, WrongDistancesMatterWhereTheyAreUsed) {  // BO-158
  for (const char* wrong : {"10 -1\n", "10 x\n", "10 9\n", "10 256\n", "\n",
                            "10\n", "10 21 21\n", "10  21\n"}) {
    FakeSysfs files = MachineWith({0, 1});
    files[PathOf(1, "distance")] = wrong;
    const NumaTree tree = Read(files);
    EXPECT_FALSE(tree.distances.has_value()) << wrong;
    EXPECT_THAT(tree.warnings, ElementsAre(HasSubstr("node1/distance")))
        << wrong;
    EXPECT_THAT(
        MachineOf(tree, kClosest),
        StatusIs(StatusCode::kFailedPrecondition, HasSubstr("node1/distance")))
        << wrong;
    EXPECT_THAT(MachineOf(tree, kPlain), IsOk()) << wrong;
    EXPECT_THAT(MachineOf(tree, {.prefer_closest = true}), IsOk()) << wrong;
  }
}

TEST(NumaTreeTest, AbsentDistancesMatterWhereTheyAreUsed) {
  FakeSysfs files = MachineWith({0, 1});
  files.Remove(PathOf(0, "distance"));
  const NumaTree tree = Read(files);
  EXPECT_THAT(MachineOf(tree, kClosest),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("distances of NUMA nodes are not known: "
                                 "devices/system/node/node0/distance")));
  EXPECT_THAT(MachineOf(tree, kPlain), IsOk());
}

TEST(NumaTreeTest, OddDistancesAreReportedAndTaken) {
  FakeSysfs files = MachineWith({0, 1});
  files[PathOf(0, "distance")] = "11 21\n";
  files[PathOf(1, "distance")] = "20 10\n";
  const NumaTree tree = Read(files);
  EXPECT_TRUE(tree.distances.has_value());
  EXPECT_THAT(tree.warnings, Contains(HasSubstr("node 0 is 11 from itself")));
  EXPECT_THAT(tree.warnings,
              Contains("NUMA node 1 is 21 from node 0, which is 20 from it"));
}

TEST(NumaTreeTest, TooManyNodesForAPolicyAreRefused) {  // BO-151
  std::vector<int> nodes(9);
  std::iota(nodes.begin(), nodes.end(), 0);
  const NumaTree tree = Read(MachineWith(nodes));
  EXPECT_THAT(MachineOf(tree, {.policy = Policy::kRestricted}),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("more than 8 NUMA Nodes")));
  EXPECT_THAT(MachineOf(tree, {}), IsOk());
  EXPECT_THAT(MachineOf(tree, kPlain), IsOk());
}

TEST(NumaTreeTest, AllIdsOfAMaskCanBeUsedAndNoOthers) {
  EXPECT_EQ(Read(MachineWith({0, 63})).mask(), MaskOf({0, 63}));
  EXPECT_THAT(ReadNumaTree(MachineWith({0, 64})),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("NUMA node 64 in devices/system/node: ids "
                                 "above 63 are not supported")));
  FakeSysfs files = MachineWith({0, 100});
  files.Remove("devices/system/node/online");
  EXPECT_THAT(ReadNumaTree(files), StatusIs(StatusCode::kInvalidArgument,
                                            HasSubstr("NUMA node 100")));
}

TEST(NumaTreeTest, ATreeThatContradictsItselfIsRefused) {
  const auto refused = [](auto change, const char* text) {
    FakeSysfs files = MachineWith({0, 1});
    change(files);
    EXPECT_THAT(ReadNumaTree(files),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  refused(
      [](FakeSysfs& files) { files["devices/system/node/online"] = "0-2\n"; },
      "online lists node 2, and there is no devices/system/node/node2");
  refused([](FakeSysfs& files) { files["devices/system/node/online"] = "\n"; },
          "lists no node, and there is devices/system/node/node0");
  refused(
      [](FakeSysfs& files) { files["devices/system/node/online"] = "0,a\n"; },
      "online has '0,a', which is no list");
  refused([](FakeSysfs& files) { files[PathOf(1, "cpulist")] = "1-2\n"; },
          "node1/cpulist lists CPU 1, which node 0 has, too");
  refused([](FakeSysfs& files) { files[PathOf(1, "cpulist")] = "3-2\n"; },
          "node1/cpulist has '3-2'");
}

TEST(NumaTreeTest, AFileThatCannotBeReadIsAnError) {
  FakeSysfs files = MachineWith({0, 1});
  files.Fail(PathOf(1, "cpulist"), PermissionDeniedError("not for you"));
  EXPECT_THAT(ReadNumaTree(files),
              StatusIs(StatusCode::kPermissionDenied, "not for you"));
}

TEST(NumaTreeTest, NodesThatAreNotOnlineAreLeftOut) {
  FakeSysfs files = MachineWith({0, 1});
  files[PathOf(2, "cpulist")] = "4\n";
  files["devices/system/node/node01/cpulist"] = "0\n";
  files["devices/system/node/nodes/cpulist"] = "0\n";
  const NumaTree tree = Read(files);
  EXPECT_THAT(tree.ids(), ElementsAre(0, 1));
  EXPECT_THAT(tree.warnings, ElementsAre("NUMA node 2 is not online"));
}

TEST(NumaTreeTest, WhatIsNotKnownOfMemoryIsAWarning) {
  FakeSysfs files = MachineWith({0, 1});
  files.Remove(PathOf(0, "meminfo"));
  files[PathOf(1, "meminfo")] = "Node 1 MemTotal: many kB\n";
  files[PathOf(1, "hugepages/hugepages-2048kB/nr_hugepages")] = "x\n";
  const NumaTree tree = Read(files);
  EXPECT_EQ(tree.nodes[0].memory_bytes, std::nullopt);
  EXPECT_EQ(tree.nodes[1].memory_bytes, std::nullopt);
  EXPECT_THAT(tree.warnings,
              ElementsAre(HasSubstr("node0/meminfo cannot be read"),
                          HasSubstr("node1/meminfo has no line"),
                          HasSubstr("hugepages-2048kB")));
}

TEST(NumaTreeTest, ThisMachineCanBeRead) {
  const auto tree = ReadNumaTree(*HostSysfs());
  ASSERT_THAT(tree, IsOk());
  EXPECT_FALSE(tree->nodes.empty());
}

}  // namespace
}  // namespace devmgr::topology
