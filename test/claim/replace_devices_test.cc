// SPDX-License-Identifier: Apache-2.0
//
// A container that starts again gives back devices that do not work: those that
// it alone has, of the resources that are named, and nothing else.
#include "claim/replace_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "claim/container_answer.h"
#include "support/builders.h"
#include "support/status_matchers.h"
#include "support/test_ledger.h"

namespace devmgr::claim {
namespace {

using device::ContainerKind;
using device::ReservationPhase;
using state::DeviceHold;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFaultyGpu[] = "example.com/gpu";
constexpr char kGoodNic[] = "example.com/nic";

DeviceHold Committed(const std::string& container, const std::string& resource,
                     const std::vector<std::string>& ids) {
  DeviceHold hold;
  hold.container = container;
  hold.resource = resource;
  hold.phase = ReservationPhase::kCommitted;
  for (const std::string& id : ids) hold.devices.push_back({.id = id});
  hold.edits.env = {{"DEVICES", ids.front(), {}}};
  hold.pre_start = true;
  return hold;
}

class ReplaceDevicesTest : public testing::Test {
 protected:
  /// A Ready pod.
  void Put(std::vector<DeviceHold> holds) {
    auto pod = std::make_shared<state::PodRecord>();
    pod->uid = PodUid{"u-P"};
    pod->name = NameOf("P");
    pod->phase = state::PodPhase::kReady;
    pod->boot_id = ledger_.boot_id();
    std::set<ContainerName> named;
    for (const DeviceHold& hold : holds) {
      if (!named.insert(hold.container).second) continue;
      pod->needs.push_back(
          {hold.container, hold.kind != ContainerKind::kApp, {}});
    }
    pod->holds = std::move(holds);
    const auto answer =
        AnswerFor(*pod, [](const ClaimUid&) { return nullptr; });
    ASSERT_THAT(answer, IsOk());
    pod->answer = *answer;
    state::Decision decision;
    decision.kind = state::DecisionKind::kAllocated;
    decision.changes = {state::PutPod{pod}};
    ledger_.Take(decision);
  }
  absl::StatusOr<state::Decision> GiveBack(
      const std::string& container, const std::set<ResourceName>& resources) {
    return GiveBackFaulty(ledger_.state(), PodUid{"u-P"},
                          ContainerName(container), resources,
                          ledger_.boot_id());
  }
  const state::PodRecord& Record() const {
    return *ledger_.state().FindPod(PodUid{"u-P"});
  }

  TestLedger ledger_;
};

TEST_F(ReplaceDevicesTest, AContainerGivesBackWhatDoesNotWork) {
  Put({Committed("main", kFaultyGpu, {"gpu-0", "gpu-1"}),
       Committed("main", kGoodNic, {"nic-0"}),
       Committed("side", kFaultyGpu, {"gpu-2"})});
  const auto decision = GiveBack("main", {kFaultyGpu});
  ASSERT_THAT(decision, IsOk());
  EXPECT_EQ(decision->kind, state::DecisionKind::kReplaced);
  EXPECT_THAT(decision->pods, ElementsAre(NameOf("P")));
  EXPECT_THAT(decision->message, HasSubstr("container 'main'"));
  EXPECT_THAT(decision->message, HasSubstr("gpu-0 of example.com/gpu"));
  EXPECT_THAT(decision->message, HasSubstr("gpu-1 of example.com/gpu"));
  EXPECT_THAT(decision->message, Not(HasSubstr("nic-0")));
  ASSERT_TRUE(ledger_.Take(*decision));
  // The devices can be had by others at once; the container's need is kept.
  EXPECT_EQ(ledger_.state().HolderOf(kFaultyGpu, {"gpu-0"}), nullptr);
  EXPECT_EQ(ledger_.state().HolderOf(kFaultyGpu, {"gpu-1"}), nullptr);
  EXPECT_NE(ledger_.state().HolderOf(kFaultyGpu, {"gpu-2"}), nullptr);
  EXPECT_NE(ledger_.state().HolderOf(kGoodNic, {"nic-0"}), nullptr);
  const DeviceHold& given_back = Record().holds[0];
  EXPECT_EQ(given_back.phase, ReservationPhase::kReleased);
  EXPECT_EQ(given_back.devices.size(), 2U);
  EXPECT_EQ(given_back.edits, device::ContainerEdits());
  EXPECT_FALSE(given_back.pre_start);
  // The pod stays Ready; the answer has no trace of what was given back.
  EXPECT_EQ(Record().phase, state::PodPhase::kReady);
  const ContainerDevices& main = Record().answer->containers.at(0);
  EXPECT_TRUE(main.devices_released);
  ASSERT_EQ(main.resources.size(), 1U);
  EXPECT_EQ(main.resources[0].name, kGoodNic);
  EXPECT_FALSE(Record().answer->containers.at(1).devices_released);
}

TEST_F(ReplaceDevicesTest, GivingBackTwiceChangesNothingMore) {
  Put({Committed("main", kFaultyGpu, {"gpu-0"})});
  ASSERT_TRUE(ledger_.Take(*GiveBack("main", {kFaultyGpu})));
  const auto again = GiveBack("main", {kFaultyGpu});
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(ledger_.Take(*again));
}

TEST_F(ReplaceDevicesTest, WithoutSuchDevicesThereIsNothingToDecide) {
  Put({Committed("main", kFaultyGpu, {"gpu-0"})});
  EXPECT_FALSE(ledger_.Take(*GiveBack("main", {kGoodNic})));
  EXPECT_FALSE(ledger_.Take(*GiveBack("main", {})));
  EXPECT_FALSE(ledger_.Take(*GiveBack("other", {kFaultyGpu})));
}

// An init container has handed it on: it cannot be taken from the one that
// runs with it.
TEST_F(ReplaceDevicesTest, ADeviceThatAnotherContainerHoldsStays) {
  DeviceHold warm = Committed("warm", kFaultyGpu, {"gpu-0", "gpu-1"});
  warm.kind = ContainerKind::kInit;
  const DeviceHold main = Committed("main", kFaultyGpu, {"gpu-1", "gpu-2"});
  Put({warm, main, Committed("warm", kGoodNic, {"gpu-1"})});
  EXPECT_FALSE(HoldsAlone(Record(), warm));
  EXPECT_FALSE(HoldsAlone(Record(), main));
  EXPECT_FALSE(ledger_.Take(*GiveBack("main", {kFaultyGpu})));
  EXPECT_FALSE(ledger_.Take(*GiveBack("warm", {kFaultyGpu})));
  // The same ID of another resource is another device.
  EXPECT_TRUE(ledger_.Take(*GiveBack("warm", {kGoodNic})));
}

TEST_F(ReplaceDevicesTest, WhatAnotherContainerHasGivenBackDoesNotCount) {
  DeviceHold warm = Committed("warm", kFaultyGpu, {"gpu-0"});
  warm.kind = ContainerKind::kInit;
  warm.phase = ReservationPhase::kReleased;
  Put({warm, Committed("main", kFaultyGpu, {"gpu-0"})});
  EXPECT_TRUE(ledger_.Take(*GiveBack("main", {kFaultyGpu})));
  EXPECT_EQ(ledger_.state().HolderOf(kFaultyGpu, {"gpu-0"}), nullptr);
}

TEST_F(ReplaceDevicesTest, OnlyAPodThatIsReadyInThisBootGivesBack) {
  EXPECT_THAT(GiveBack("main", {kFaultyGpu}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("u-P")));
  Put({Committed("main", kFaultyGpu, {"gpu-0"})});
  EXPECT_THAT(GiveBackFaulty(ledger_.state(), PodUid{"u-P"}, "main",
                             {kFaultyGpu}, "boot-2")
                  .status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not Ready in this boot")));
  auto releasing = std::make_shared<state::PodRecord>(Record());
  releasing->phase = state::PodPhase::kReleasing;
  releasing->answer = nullptr;
  state::Decision decision;
  decision.kind = state::DecisionKind::kUnprepareIntent;
  decision.changes = {state::PutPod{releasing}};
  ledger_.Take(decision);
  EXPECT_THAT(GiveBack("main", {kFaultyGpu}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_NE(ledger_.state().HolderOf(kFaultyGpu, {"gpu-0"}), nullptr);
}

}  // namespace
}  // namespace devmgr::claim
