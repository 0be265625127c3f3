// SPDX-License-Identifier: Apache-2.0
#include "state/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "state/record_builders.h"

namespace devmgr::state {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kDriver[] = "gpu.example.com";

std::shared_ptr<PodRecord> MakePod(const std::string& name, PodPhase phase) {
  auto pod = std::make_shared<PodRecord>();
  pod->uid = PodUid{"uid-" + name};
  pod->name = ObjectName{"default", name};
  pod->phase = phase;
  return pod;
}

std::shared_ptr<ClaimRecord> MakeClaim(const std::string& name,
                                       std::set<PodUid> pods) {
  auto claim = std::make_shared<ClaimRecord>();
  claim->uid = ClaimUid{"uid-" + name};
  claim->name = ObjectName{"default", name};
  claim->pods = std::move(pods);
  return claim;
}

PreparedDevice Device(const std::string& pool, const std::string& device,
                      std::vector<std::string> cdi) {
  PreparedDevice prepared;
  prepared.pool = pool;
  prepared.device = device;
  prepared.cdi_device_ids = std::move(cdi);
  return prepared;
}

TEST(PodInfoOfTest, EveryPhaseHasItsState) {
  const State state;
  const std::pair<PodPhase, PodState> table[] = {
      {PodPhase::kWaiting, PodState::kWaiting},
      {PodPhase::kPreparing, PodState::kPreparing},
      {PodPhase::kReady, PodState::kReady},
      {PodPhase::kRejected, PodState::kRejected},
      {PodPhase::kReleasing, PodState::kReleasing},
  };
  for (const auto& [phase, expected] : table) {
    EXPECT_EQ(PodInfoOf(*MakePod("p", phase), state).state, expected);
  }
}

TEST(PodInfoOfTest, NamesContainersAndClaims) {
  State state;
  auto claim = MakeClaim("gpu-claim", {});
  state.claims.insert_or_assign(claim->uid, claim);
  auto pod = MakePod("p", PodPhase::kReady);
  pod->first_seen_ms = 1'500;
  pod->claims = {claim->uid, ClaimUid{"uid-lost"}};
  pod->needs.resize(2);
  pod->needs[0].name = "init";
  pod->needs[1].name = "main";

  const PodInfo info = PodInfoOf(*pod, state);
  EXPECT_EQ(info.name.ToString(), "default/p");
  EXPECT_EQ(info.uid.value, "uid-p");
  EXPECT_EQ(info.first_seen.time_since_epoch(),
            std::chrono::milliseconds(1500));
  EXPECT_THAT(info.containers, ElementsAre("init", "main"));
  EXPECT_THAT(info.claims, ElementsAre("gpu-claim", "uid-lost"));
  EXPECT_THAT(info.reason, IsEmpty());
}

TEST(PodInfoOfTest, RejectionTellsWhy) {
  auto pod = MakePod("p", PodPhase::kRejected);
  pod->reason = "InvalidPod";
  pod->message = "spec.containers: required value";
  const PodInfo info = PodInfoOf(*pod, State());
  EXPECT_EQ(info.reason, "InvalidPod");
  EXPECT_EQ(info.message, "spec.containers: required value");
}

TEST(ClaimInfoOfTest, ShowsHoldersDevicesAndDrivers) {
  State state;
  auto pod = MakePod("p", PodPhase::kReady);
  state.pods.insert_or_assign(pod->uid, pod);
  auto claim = MakeClaim("c", {pod->uid, PodUid{"uid-unknown"}});
  DriverRecord& driver = claim->drivers[kDriver];
  driver.phase = DriverPhase::kPrepared;
  driver.devices = {Device("pool", "gpu-1", {"v/c=a", "v/c=b"}),
                    Device("pool", "gpu-0", {"v/c=b", "v/c=c"})};

  const ClaimInfo info = ClaimInfoOf(*claim, state);
  EXPECT_EQ(info.name.ToString(), "default/c");
  EXPECT_EQ(info.uid.value, "uid-c");
  EXPECT_EQ(info.state, ClaimState::kPrepared);
  EXPECT_THAT(info.pods, ElementsAre("default/p", "uid-unknown"));
  ASSERT_EQ(info.drivers.size(), 1u);
  EXPECT_EQ(info.drivers[0].driver, kDriver);
  EXPECT_EQ(info.drivers[0].state, ClaimState::kPrepared);
  EXPECT_THAT(info.drivers[0].devices, ElementsAre("pool/gpu-1", "pool/gpu-0"));
  EXPECT_THAT(info.drivers[0].cdi_devices,
              ElementsAre("v/c=a", "v/c=b", "v/c=c"));
}

TEST(ClaimInfoOfTest, StateIsTheLeastAdvancedDriver) {
  const State state;
  auto claim = MakeClaim("c", {});
  EXPECT_EQ(ClaimInfoOf(*claim, state).state, ClaimState::kPrepared);
  claim->drivers["a"].phase = DriverPhase::kPrepared;
  EXPECT_EQ(ClaimInfoOf(*claim, state).state, ClaimState::kPrepared);
  claim->drivers["b"].phase = DriverPhase::kUnpreparing;
  EXPECT_EQ(ClaimInfoOf(*claim, state).state, ClaimState::kUnpreparing);
  claim->drivers["c"].phase = DriverPhase::kPreparing;
  EXPECT_EQ(ClaimInfoOf(*claim, state).state, ClaimState::kPreparing);
}

TEST(DevicesOfTest, OneRowPerDeviceWithAllItsHolders) {
  State state;
  auto a = MakePod("a", PodPhase::kReady);
  auto b = MakePod("b", PodPhase::kReady);
  state.pods.insert_or_assign(a->uid, a);
  state.pods.insert_or_assign(b->uid, b);
  auto first = MakeClaim("c1", {b->uid});
  first->drivers[kDriver].devices = {Device("pool", "gpu-1", {"v/c=1"})};
  // Two claims may share a device, as different shares of it.
  auto second = MakeClaim("c2", {a->uid, b->uid});
  second->drivers[kDriver].devices = {Device("pool", "gpu-1", {"v/c=1-b"}),
                                      Device("pool", "gpu-0", {"v/c=0"})};
  state.claims.insert_or_assign(first->uid, first);
  state.claims.insert_or_assign(second->uid, second);

  const std::vector<DeviceInfo> devices = DevicesOf(state);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].device, "gpu-0");
  EXPECT_THAT(devices[0].used_by, ElementsAre("default/a", "default/b"));
  EXPECT_EQ(devices[1].driver, kDriver);
  EXPECT_EQ(devices[1].pool, "pool");
  EXPECT_EQ(devices[1].device, "gpu-1");
  EXPECT_THAT(devices[1].used_by, ElementsAre("default/a", "default/b"));
  EXPECT_THAT(devices[1].cdi_devices, ElementsAre("v/c=1", "v/c=1-b"));
}

// As drivers of v1alpha3 and before answer.
TEST(DevicesOfTest, CdiNamesAloneAreNoDeviceButTheClaims) {
  State state;
  auto claim = MakeClaim("c", {});
  claim->drivers[kDriver].devices = {Device("", "", {"v/c=1"})};
  state.claims.insert_or_assign(claim->uid, claim);
  EXPECT_THAT(DevicesOf(state), IsEmpty());
  const ClaimInfo info = ClaimInfoOf(*claim, state);
  EXPECT_THAT(info.drivers.at(0).devices, IsEmpty());
  EXPECT_THAT(info.drivers.at(0).cdi_devices, ElementsAre("v/c=1"));
}

TEST(ResourcesOfTest, WhatIsBackedAndWhatIsHeld) {
  State state;
  auto pod = MakePod("a", PodPhase::kAdmitted);
  pod->holds = {MakeHold({"0", "1"})};
  state.Put(pod);
  auto record = std::make_shared<ResourceRecord>();
  record->name = "example.com/other";
  record->since_ms = 2'000;
  state.Put(record);
  const std::string resource = pod->holds.front().resource;

  const std::vector<ResourceInfo> resources = ResourcesOf(state);
  ASSERT_EQ(resources.size(), 2u);
  EXPECT_EQ(resources[0].name, "example.com/other");
  EXPECT_EQ(resources[0].owner, ResourceOwner::kDevicePlugin);
  EXPECT_EQ(resources[0].since.time_since_epoch(), std::chrono::seconds(2));
  EXPECT_EQ(resources[0].held, 0);
  EXPECT_EQ(resources[1].name, resource);
  EXPECT_EQ(resources[1].owner, std::nullopt);
  EXPECT_EQ(resources[1].held, 2);

  const std::vector<DeviceInfo> devices = DevicesOf(state);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1].resource, resource);
  EXPECT_EQ(devices[1].device, "1");
  EXPECT_THAT(devices[1].used_by, ElementsAre("default/a"));
}

TEST(ForeignHoldersOfTest, TheirDevicesStandAmongTheOthers) {
  State state;
  auto pod = MakePod("a", PodPhase::kAdmitted);
  pod->holds = {MakeHold({"1"})};
  state.Put(pod);
  const std::string resource = pod->holds.front().resource;
  ForeignHolderRecord holder;
  holder.id.value = "c1";
  holder.endpoint = "/run/runtime.sock";
  holder.pod = {"default", "stray"};
  holder.devices = {{resource, "0"}, {resource, "2"}, {resource, "10"}};
  holder.cdi_devices = {"v/c=1"};
  holder.since_ms = 5'000;
  holder.why = "no such pod";
  state.Put(std::make_shared<ForeignHolderRecord>(holder));

  const std::vector<DeviceInfo> devices = DevicesOf(state);
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_EQ(devices[0].device, "0");
  EXPECT_THAT(devices[0].used_by,
              ElementsAre("foreign container c1 (pod default/stray)"));
  EXPECT_EQ(devices[1].device, "1");
  EXPECT_THAT(devices[1].used_by, ElementsAre("default/a"));
  ASSERT_EQ(ResourcesOf(state).size(), 1u);
  EXPECT_EQ(ResourcesOf(state)[0].held, 4);

  const auto holders = ForeignHoldersOf(state);
  ASSERT_EQ(holders.size(), 1u);
  EXPECT_EQ(holders[0].holder.container_id, "c1");
  EXPECT_EQ(holders[0].endpoint, "/run/runtime.sock");
  EXPECT_EQ(holders[0].since.time_since_epoch(), std::chrono::seconds(5));
  EXPECT_THAT(holders[0].holder.resources,
              ElementsAre(HeldResource{resource, {"0", "2", "10"}}));
  EXPECT_THAT(holders[0].holder.cdi_devices, ElementsAre("v/c=1"));
  EXPECT_EQ(holders[0].holder.why, "no such pod");
  EXPECT_EQ(holders[0].freed, "");

  // The pod of the container has been given what it holds.
  ForeignHolderRecord own = holder;
  own.pod_uid = pod->uid;
  own.devices = {{resource, "1"}};
  state.Put(std::make_shared<ForeignHolderRecord>(own));
  ASSERT_EQ(DevicesOf(state).size(), 1u);
  EXPECT_THAT(
      DevicesOf(state)[0].used_by,
      ElementsAre("default/a", "foreign container c1 (pod default/stray)"));
  EXPECT_EQ(ResourcesOf(state)[0].held, 1);
}

TEST(DecisionInfoOfTest, NamesWhatWasDecided) {
  Batch batch;
  batch.seq = 7;
  batch.time_ms = 2'000;
  batch.decision.kind = DecisionKind::kPrepareIntent;
  batch.decision.pods = {{"default", "p"}};
  batch.decision.claims = {{"default", "c"}};
  batch.decision.message = "asks 1 driver";

  const DecisionInfo info = DecisionInfoOf(batch);
  EXPECT_EQ(info.sequence, 7u);
  EXPECT_EQ(info.time.time_since_epoch(), std::chrono::seconds(2));
  EXPECT_EQ(info.kind, devmgr::DecisionKind::kPrepareIntent);
  EXPECT_THAT(info.pods, ElementsAre("default/p"));
  EXPECT_THAT(info.claims, ElementsAre("default/c"));
  EXPECT_EQ(info.message, "asks 1 driver");
  EXPECT_THAT(info.uids, IsEmpty());
}

TEST(DecisionInfoOfTest, NamesTheUidsOfWhatItChanged) {
  std::vector<Batch> batches = PreparedPodBatches();
  for (Batch& batch : ReleasedPodBatches()) batches.push_back(batch);
  State state;
  std::vector<std::vector<std::string>> uids;
  for (Batch& batch : batches) {
    EXPECT_TRUE(ApplyNew(state, batch).ok());
    uids.push_back(DecisionInfoOf(batch).uids);
  }
  EXPECT_THAT(uids[0], ElementsAre("pod-a"));
  EXPECT_THAT(uids[3], ElementsAre("claim-gpu", "pod-a"));
  // An erased claim says in its undo who held it.
  Batch erased =
      MakeBatch(8, DecisionKind::kUnprepareResult, {EraseClaim{kGpu}});
  erased.undo = {Put(state::MakeClaim(DriverPhase::kUnpreparing, {kPodB}))};
  EXPECT_THAT(DecisionInfoOf(erased).uids, ElementsAre("claim-gpu", "pod-b"));
  EXPECT_THAT(uids[6], ElementsAre("pod-a"));
}

TEST(LedgerViewOfTest, HasAllThatTheLedgerHolds) {
  State state;
  for (const Batch& batch : PreparedPodBatches()) {
    EXPECT_TRUE(Apply(state, batch).ok());
  }
  const LedgerView view = LedgerViewOf(state, 2'000);
  EXPECT_EQ(view.sequence, 4u);
  EXPECT_EQ(view.time.time_since_epoch(), std::chrono::seconds(2));
  ASSERT_EQ(view.pods.size(), 1u);
  EXPECT_EQ(view.pods[0].state, PodState::kReady);
  ASSERT_EQ(view.claims.size(), 1u);
  EXPECT_EQ(view.claims[0].state, ClaimState::kPrepared);
  ASSERT_EQ(view.devices.size(), 1u);
  EXPECT_THAT(view.devices[0].used_by, ElementsAre("default/a"));
}

}  // namespace
}  // namespace devmgr::state
