// SPDX-License-Identifier: Apache-2.0
#include "control/pool_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace devmgr::control {
namespace {

using What = WaitingFor::Kind;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ResourceSlice PoolSlice(const std::vector<std::string>& devices,
                        std::int64_t generation = 1, std::int64_t slices = 1) {
  ResourceSlice slice;
  slice.driver = "d";
  slice.pool = "p";
  slice.pool_generation = generation;
  slice.pool_slice_count = slices;
  slice.node_name = "n";
  for (const std::string& name : devices) {
    slice.devices.emplace_back().name = name;
  }
  return slice;
}

class ChangedPoolsTest : public ::testing::Test {
 protected:
  void Put(const std::string& name, ResourceSlice slice) {
    slice.metadata.name = name;
    now_.resource_slices.insert_or_assign(
        ObjectName{"", name},
        std::make_shared<const ResourceSlice>(std::move(slice)));
  }
  void Put(const std::string& name, const DeviceTaintRule& rule) {
    now_.device_taint_rules.insert_or_assign(
        ObjectName{"", name}, std::make_shared<const DeviceTaintRule>(rule));
  }
  /// Since the last call.
  std::set<WaitingFor> Changed() {
    const ObjectSnapshot before = std::exchange(before_, now_);
    return ChangedPools(before, now_, "n", {});
  }
  ObjectSnapshot now_;
  ObjectSnapshot before_;
};

auto Devices() {
  return UnorderedElementsAre(WaitingFor{What::kDevices, "d"},
                              WaitingFor{What::kDevices, "*"});
}
auto Fewer() {
  return UnorderedElementsAre(WaitingFor{What::kFewerDevices, "d"},
                              WaitingFor{What::kFewerDevices, "*"});
}
auto TaintOf(const std::string& device) {
  return UnorderedElementsAre(WaitingFor{What::kTaint, device},
                              WaitingFor{What::kTaint, "d"},
                              WaitingFor{What::kTaint, "*"});
}

TEST_F(ChangedPoolsTest, AL149DevicesThatComeChangeAndGo) {
  Put("s", PoolSlice({"a"}));
  EXPECT_FALSE(Changed().empty());
  Put("s", PoolSlice({"a", "b"}, 2));
  EXPECT_THAT(Changed(), Devices());
  ResourceSlice same = PoolSlice({"a", "b"}, 3);
  same.metadata.uid = "another-uid";
  Put("s", same);
  EXPECT_THAT(Changed(), IsEmpty());
  same.devices[0].allow_multiple_allocations = true;
  Put("s", same);
  EXPECT_THAT(Changed(), Devices());
  same.devices.pop_back();
  Put("s", same);
  EXPECT_THAT(Changed(), Fewer());
  now_.resource_slices = {};
  EXPECT_THAT(Changed(), Fewer());
}

TEST_F(ChangedPoolsTest, AL155APoolHelpsOnceItIsComplete) {
  Put("s", PoolSlice({"a"}, 1, 2));
  EXPECT_THAT(Changed(), IsEmpty());
  Put("t", PoolSlice({"b"}, 1, 2));
  EXPECT_FALSE(Changed().empty());
  Put("s", PoolSlice({"a"}, 2, 2));
  EXPECT_THAT(Changed(), IsEmpty());
  Put("t", PoolSlice({"b"}, 2, 2));
  EXPECT_FALSE(Changed().empty());
}

TEST_F(ChangedPoolsTest, DevicesOfOtherNodesAreNone) {
  ResourceSlice slice = PoolSlice({"a"});
  slice.node_name = "other";
  Put("s", slice);
  EXPECT_THAT(Changed(), IsEmpty());
}

TEST_F(ChangedPoolsTest, AL152TaintsOfDevicesAndRules) {
  ResourceSlice slice = PoolSlice({"a", "b"});
  Put("s", slice);
  Changed();
  slice.devices[0].taints.push_back({"k", "v", "NoSchedule", ""});
  Put("s", slice);
  EXPECT_THAT(Changed(), IsEmpty()) << "a taint that comes helps no pod";
  ResourceSlice later = slice;
  later.devices[0].taints = PoolSlice({"a"}).devices[0].taints;
  Put("s", later);
  EXPECT_THAT(Changed(), TaintOf("d/p/a"));

  DeviceTaintRule rule;
  rule.device_selector.emplace().device = "b";
  rule.taint = {"k", "v", "NoExecute", ""};
  Put("r", rule);
  EXPECT_THAT(Changed(), IsEmpty());
  rule.taint.time_added = "2026-01-01T00:00:00Z";
  Put("r", rule);
  EXPECT_THAT(Changed(), IsEmpty());
  rule.device_selector->device = "a";
  Put("r", rule);
  EXPECT_THAT(Changed(), TaintOf("d/p/b"));
  now_.device_taint_rules = {};
  EXPECT_THAT(Changed(), TaintOf("d/p/a"));
}

/// As `get slices` shows them.
TEST_F(ChangedPoolsTest, PoolsThatContradictThemselvesAreInvalid) {
  using ::testing::ElementsAre;
  using ::testing::Pair;
  const auto invalid = [&] { return InvalidPools(now_, "n", {}); };
  Put("a", PoolSlice({"g0", "g1"}, 1, 2));
  EXPECT_THAT(invalid(), IsEmpty());
  Put("b", PoolSlice({"g1"}, 1, 2));
  EXPECT_THAT(invalid(),
              ElementsAre(Pair(Pair("d", "p"), "duplicate device name 'g1'")));
  // Of another node.
  EXPECT_THAT(InvalidPools(now_, "m", {}), IsEmpty());
  Put("b", PoolSlice({"g2"}, 1, 2));
  EXPECT_THAT(invalid(), IsEmpty());
}

}  // namespace
}  // namespace devmgr::control
