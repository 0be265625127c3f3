// SPDX-License-Identifier: Apache-2.0
#include "upkeep/node_status_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace devmgr::upkeep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class StatusSink : public ObjectSink {
 public:
  void DeleteResourceSlices(const std::string&,
                            std::function<void(absl::Status)>) override {}
  void SetNodeStatus(const NodeDeviceStatus& status) override {
    set.push_back(status);
  }
  void ReportProblems(
      std::function<void(const std::string&, const std::string&)> to) override {
    report = std::move(to);
  }
  std::vector<NodeDeviceStatus> set;
  std::function<void(const std::string&, const std::string&)> report;
};

ResourceInfo Resource(const char* name, ResourceState state,
                      std::int64_t capacity, std::int64_t allocatable) {
  ResourceInfo info;
  info.name = ResourceName(name);
  info.owner = ResourceOwner::kDevicePlugin;
  info.state = state;
  info.capacity = capacity;
  info.allocatable = allocatable;
  return info;
}

class NodeStatusKeeperTest : public ::testing::Test {
 protected:
  void Start(bool keeps_zeroes = false) {
    keeper_.emplace(NodeStatusKeeper::Parts{executor_,
                                            events_,
                                            &sink_,
                                            "n1",
                                            {"DRAOptionalNodeOperations"},
                                            keeps_zeroes,
                                            [this] { return resources_; }});
    keeper_->Start();
  }
  /// What was set last for the resource.
  std::optional<NodeResourceAmounts> Set(const char* name) const {
    return sink_.set.back().resources.at(ResourceName(name));
  }

  ManualExecutor executor_;
  std::vector<std::string> heard_;
  events::EventLog events_{
      executor_, 100, [] { return WallTime(); },
      [this](const EventInfo& event) {
        heard_.push_back(event.reason + " " + event.object_kind + " " +
                         event.object.ToString() + ": " + event.message);
      }};
  StatusSink sink_;
  std::vector<ResourceInfo> resources_;
  std::optional<NodeStatusKeeper> keeper_;
};

TEST_F(NodeStatusKeeperTest, SetsWhatTheNodeHasAndCanDo) {
  resources_ = {Resource("v.com/gpu", ResourceState::kLive, 8, 7)};
  Start();
  EXPECT_THAT(sink_.set, SizeIs(0));
  executor_.Advance(NodeStatusKeeper::kPause);
  ASSERT_THAT(sink_.set, SizeIs(1));
  EXPECT_EQ(Set("v.com/gpu"), (NodeResourceAmounts{8, 7}));
  EXPECT_THAT(sink_.set[0].declared_features,
              ElementsAre("DRAOptionalNodeOperations"));
}

TEST_F(NodeStatusKeeperTest, ChangesWithinASecondAreOne) {
  Start();
  executor_.Advance(seconds(2));
  for (int i = 0; i < 10; ++i) {
    resources_ = {Resource("v.com/gpu", ResourceState::kLive, 8, i % 8)};
    keeper_->OnResources();
    executor_.Advance(milliseconds(50));
  }
  executor_.Advance(seconds(2));
  ASSERT_THAT(sink_.set, SizeIs(2));
  EXPECT_EQ(Set("v.com/gpu"), (NodeResourceAmounts{8, 1}));
}

TEST_F(NodeStatusKeeperTest, WhatIsTheSameIsNotSetAgain) {
  Start();
  executor_.Advance(seconds(2));
  keeper_->OnResources();
  executor_.Advance(seconds(2));
  EXPECT_THAT(sink_.set, SizeIs(1));
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(NodeStatusKeeperTest, APluginThatIsGoneCountsUntilItsGracePeriodIsOver) {
  resources_ = {Resource("v.com/gpu", ResourceState::kStopped, 8, 0)};
  Start();
  executor_.Advance(seconds(2));
  EXPECT_EQ(Set("v.com/gpu"), (NodeResourceAmounts{8, 0}));
  resources_ = {Resource("v.com/gpu", ResourceState::kForgotten, 0, 0)};
  keeper_->OnResources();
  executor_.Advance(seconds(2));
  EXPECT_EQ(Set("v.com/gpu"), std::nullopt);
}

TEST_F(NodeStatusKeeperTest, AsAKubeletItKeepsZeroes) {
  resources_ = {Resource("v.com/gpu", ResourceState::kForgotten, 0, 0)};
  Start(/*keeps_zeroes=*/true);
  executor_.Advance(seconds(2));
  EXPECT_EQ(Set("v.com/gpu"), (NodeResourceAmounts{0, 0}));
}

TEST_F(NodeStatusKeeperTest, WhatClassesServeIsTakenAway) {
  resources_ = {Resource("v.com/gpu", ResourceState::kLive, 8, 8)};
  resources_[0].owner = ResourceOwner::kDeviceClass;
  Start();
  executor_.Advance(seconds(2));
  EXPECT_EQ(Set("v.com/gpu"), std::nullopt);
}

TEST_F(NodeStatusKeeperTest, WhatNoPluginHasServedIsNotTouched) {
  resources_ = {Resource("v.com/gpu", ResourceState::kLive, 8, 8)};
  resources_[0].state.reset();
  Start();
  executor_.Advance(seconds(2));
  EXPECT_THAT(sink_.set.back().resources, SizeIs(0));
}

TEST_F(NodeStatusKeeperTest, ProblemsOfTheSinkAreEvents) {
  Start();
  sink_.report("ResourceOwnerConflict", "two agents");
  executor_.RunPending();
  EXPECT_THAT(heard_, ElementsAre("ResourceOwnerConflict Node n1: two agents"));
  keeper_.reset();
  sink_.report("ResourceOwnerConflict", "late");
  executor_.RunPending();
  EXPECT_THAT(heard_, SizeIs(1));
}

}  // namespace
}  // namespace devmgr::upkeep
