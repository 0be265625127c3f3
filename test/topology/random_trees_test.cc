// SPDX-License-Identifier: Apache-2.0
//
// Trees of /sys that no kernel would show: files that are missing, cut, of
// other nodes, or of no sense. What is read of them is sound.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/fake_sysfs.h"
#include "support/random_lives.h"
#include "topology/tree_invariants.h"

namespace devmgr::topology {
namespace {

const std::vector<std::string> kTexts = {"",
                                         "\n",
                                         "0\n",
                                         "1\n",
                                         "0-1\n",
                                         "0,2\n",
                                         "2-3",
                                         "1-0\n",
                                         "0-64\n",
                                         "63\n",
                                         "-1\n",
                                         "x\n",
                                         "10 21\n",
                                         "21 10\n",
                                         "10 21 21\n",
                                         "10  21\n",
                                         "9 10\n",
                                         "10 256\n",
                                         "255 10\n",
                                         "Node 0 MemTotal: 16 kB\n",
                                         "MemTotal: kB",
                                         "MemTotal: 18446744073709551615 kB\n",
                                         "4294967297\n",
                                         "0-65536\n",
                                         std::string("\0\xff", 2),
                                         "0-1,1-2\n",
                                         "4\n"};

const std::vector<std::string> kFiles = {
    "cpulist", "meminfo", "distance", "hugepages/hugepages-2048kB/nr_hugepages",
    "hugepages/x/nr_hugepages"};

const std::vector<std::string> kNodes = {"node0",  "node1",  "node2",
                                         "node63", "node64", "node01",
                                         "node",   "nodex",  "node-1"};

std::string TextFor(Luck& luck) {
  std::string text = luck.Pick(kTexts);
  // Cut at any byte.
  if (luck.Chance(12)) text.resize(luck.Below(text.size() + 1));
  return text;
}

TEST(RandomTreesTest, WhatIsReadIsSoundAndWhatIsRefusedNamesAFile) {
  int accepted = 0;
  int refused = 0;
  const bool all = LiveEach({.seed = 2'100, .lives = 3'000}, [&](Luck& luck) {
    FakeSysfs files;
    const std::string root = "devices/system/node/";
    if (luck.Chance(75)) files[root + "online"] = TextFor(luck);
    if (luck.Chance(25)) files["devices/system/cpu/online"] = TextFor(luck);
    const std::size_t count = luck.Below(10);
    for (std::size_t i = 0; i < count; ++i) {
      files[root + luck.Pick(kNodes) + "/" + luck.Pick(kFiles)] = TextFor(luck);
    }
    if (luck.Chance(6)) {
      files.Fail(root + luck.Pick(kNodes) + "/" + luck.Pick(kFiles),
                 absl::PermissionDeniedError("no"));
    }
    const auto tree = ReadNumaTree(files);
    if (!tree.ok()) {
      ++refused;
      EXPECT_FALSE(tree.status().message().empty());
      return;
    }
    ++accepted;
    EXPECT_EQ(BrokenInvariant(*tree), "");
    const auto machine = MachineOf(*tree, {.policy = Policy::kRestricted,
                                           .prefer_closest = true,
                                           .max_numa_nodes = 64});
    EXPECT_EQ(machine.ok(), tree->distances.has_value());
  });
  if (!all) return;
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace devmgr::topology
