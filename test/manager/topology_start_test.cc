// SPDX-License-Identifier: Apache-2.0
//
// On which machines a manager starts that is to align pods to NUMA nodes.
#include <devmgr/device_manager.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "support/numa_folder.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// What a manager says that is to start on a machine.
class TopologyStartTest : public ::testing::Test {
 protected:
  absl::Status Open(const NumaFolder& machine, const std::string& policy,
                    const std::map<std::string, std::string>& more = {}) {
    const auto topology = ParseTopologyOptions(policy, "", more);
    if (!topology.ok()) return topology.status();
    DeviceManagerOptions options;
    options.ledger.in_memory = true;
    options.sysfs_dir = machine.path();
    options.topology = *topology;
    return DeviceManager::Open(options).status();
  }
};

TEST_F(TopologyStartTest, TooManyNodesAreRefusedWithBothNumbers) {  // BO-151
  const NumaFolder machine(9);
  EXPECT_THAT(Open(machine, "restricted"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"restricted\""), HasSubstr("8"),
                             HasSubstr("this machine has 9"))));
  EXPECT_THAT(Open(machine, "none"), IsOk());
  EXPECT_THAT(Open(machine, "restricted", {{"max-allowable-numa-nodes", "9"}}),
              IsOk());
}

TEST_F(TopologyStartTest, OptionsOfAnEmbedderAreChecked) {  // BO-151
  DeviceManagerOptions options;
  options.ledger.in_memory = true;
  options.topology.max_numa_nodes = 7;
  EXPECT_THAT(DeviceManager::Open(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must not be less than 8, as 7 is")));
}

TEST_F(TopologyStartTest, BadDistancesMatterOnlyToWhoGoesByThem) {  // BO-158
  for (const char* row : {"10 -1\n", "10 x\n"}) {
    NumaFolder machine(2);
    machine.Write(NumaFolder::Node(0) + "/distance", row);
    EXPECT_THAT(
        Open(machine, "restricted", {{"prefer-closest-numa-nodes", "true"}}),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 HasSubstr("node0/distance")));
    EXPECT_THAT(Open(machine, "restricted"), IsOk());
  }
}

TEST_F(TopologyStartTest, BadNodesMatterOnlyWithAPolicy) {
  NumaFolder machine(2);
  machine.Write("devices/system/node/online", "0-x\n");
  EXPECT_THAT(Open(machine, "none"), IsOk());
  EXPECT_THAT(Open(machine, "best-effort"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"best-effort\""),
                             HasSubstr("devices/system/node/online"))));
}

}  // namespace
}  // namespace devmgr
