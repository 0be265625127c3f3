// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/full_ledger.h"

#include <memory>
#include <utility>

#include "checkpoint/store_support.h"
#include "state/record_builders.h"
#include "state/state.h"
#include "support/status_matchers.h"

namespace devmgr::checkpoint {
namespace {

using state::DecisionKind;
using state::DriverPhase;
using state::MakeBatch;
using state::MakeClaim;
using state::MakePod;
using state::PodPhase;
using state::Put;

const PodUid kOtherPod{"7f0e1c52-0000-4000-8000-000000000002"};
const ClaimUid kOldClaim{"7f0e1c52-0000-4000-8000-000000000003"};

state::PodRecord ReadyPodWithEverything() {
  state::PodRecord pod = MakePod(state::kPodA, "a", PodPhase::kReady);
  auto answer = std::make_shared<PodDevices>(*pod.answer);
  ContainerDevices& main = answer->containers.back();
  main.env = {{"VISIBLE", "0,1"}, {"EMPTY", ""}};
  main.mounts = {{"/container", "/host", true}, {"/c2", "/h2", false}};
  main.devices = {{"/dev/x", "/dev/host-x", "rwm"}};
  main.annotations = {{"example.com/note", "text"}};
  pod.answer = std::move(answer);
  return pod;
}

state::ClaimRecord OldClaim(bool both_drivers) {
  state::ClaimRecord claim = MakeClaim(DriverPhase::kPrepared, {kOtherPod});
  claim.uid = kOldClaim;
  claim.name.name = "old";
  claim.drivers[state::kDriver].phase = DriverPhase::kUnpreparing;
  if (both_drivers) {
    claim.drivers["e.example.com"].phase = DriverPhase::kUnpreparing;
  }
  return claim;
}

state::PodRecord OtherPod(PodPhase phase) {
  state::PodRecord pod = MakePod(kOtherPod, "other", phase);
  if (!pod.claims.empty()) pod.claims = {kOldClaim};
  for (state::ContainerNeed& need : pod.needs) need.wants.clear();
  pod.first_seen_ms = 1'700'000'000'123;
  pod.first_seen_seq = 3;
  return pod;
}

state::PodRecord PodWithDevices(PodPhase phase,
                                std::vector<state::DeviceHold> holds) {
  state::PodRecord pod = MakePod({"pod-d"}, "d", phase);
  pod.claims.clear();
  pod.needs.clear();
  pod.holds = std::move(holds);
  return pod;
}

state::PodRecord ReadyPodWithDevices() {
  state::DeviceHold hold = state::MakeHold({"0", "1"});
  hold.pre_start = true;
  state::PodRecord pod = PodWithDevices(PodPhase::kReady, {hold});
  auto answer = std::make_shared<PodDevices>(*pod.answer);
  answer->containers.resize(1);
  ContainerDevices& main = answer->containers.front();
  main.cdi_devices.clear();
  main.env = {{"TPU", "0,1", "example.com/tpu"}};
  main.mounts = {{"/container", "/host", true, "example.com/tpu"}};
  main.devices = {{"/dev/x", "/dev/host-x", "rwm", "example.com/tpu"}};
  main.annotations = {{"example.com/note", "text", "example.com/tpu"}};
  main.resources = {{"example.com/tpu", {"0", "1"}}};
  pod.needs = {{main.name, main.init, {}}};
  pod.answer = std::move(answer);
  return pod;
}

std::vector<state::Batch> DevicePluginBatches() {
  using state::MakeHold;
  return {
      MakeBatch(12, DecisionKind::kBacking,
                {Put(state::ResourceRecord{"example.com/tpu",
                                           state::Backing::kPlugin, 5}),
                 Put(state::ResourceRecord{"example.com/gone",
                                           state::Backing::kClass, 6}),
                 state::EraseResource{"example.com/gone"}}),
      MakeBatch(
          13, DecisionKind::kReserve,
          {Put(PodWithDevices(
              PodPhase::kAllocating,
              {MakeHold({"0", "1"}, device::ReservationPhase::kReserved)}))}),
      MakeBatch(14, DecisionKind::kUnreserve,
                {Put(PodWithDevices(PodPhase::kWaiting, {}))}),
      MakeBatch(
          15, DecisionKind::kAllocated,
          {Put(PodWithDevices(PodPhase::kAdmitted, {MakeHold({"0", "1"})}))}),
      MakeBatch(16, DecisionKind::kPrepareIntent, {Put(ReadyPodWithDevices())}),
  };
}

state::ClaimRecord OwedClaim() {
  state::ClaimRecord claim = MakeClaim(DriverPhase::kUnpreparing, {});
  claim.uid = ClaimUid{"owed-claim"};
  claim.name.name = "owed";
  claim.network_attached = true;
  state::DriverRecord& driver = claim.drivers[state::kDriver];
  driver.debt = state::Debt{1'000, 3, "busy", {"default/a", "default/b"}};
  driver.skipped = {true, false};
  driver.handle.data = "handle";
  driver.handle.structured =
      StructuredResourceHandle{"{}", "{\"a\": 1}", "node-1", {{"{}", "gpu-0"}}};
  driver.allocated = {{"pool", "gpu-0", false}, {"pool", "gpu-1", true}};
  driver.void_cdi_device_ids = {"example.com/gpu=gpu-0"};
  claim.drivers["e.example.com"] = driver;
  claim.drivers["e.example.com"].skipped = {false, true};
  return claim;
}

/// What drivers owe, and what an operator said.
std::vector<state::Batch> OwedBatches() {
  state::ResourceRecord resource{"example.com/tpu", state::Backing::kClass, 7};
  resource.by_operator = "moving to DRA";
  state::ClaimRecord forgiven = OwedClaim();
  forgiven.drivers.erase("e.example.com");
  return {
      MakeBatch(17, DecisionKind::kDebt, {Put(OwedClaim())}),
      MakeBatch(18, DecisionKind::kForgiven, {Put(std::move(forgiven))}),
      MakeBatch(19, DecisionKind::kBacking, {Put(std::move(resource))}),
  };
}

/// Of the device of the claim, and of one that is gone.
state::Batch HealthBatch() {
  state::HealthRecord bad{
      state::kDriver, "pool", "gpu-0", device::Health::kUnhealthy,
      "too hot",      60'000, 7};
  state::HealthRecord gone = bad;
  gone.device = "gone";
  const state::DeviceKey key = gone.Key();
  return MakeBatch(
      20, DecisionKind::kHealth,
      {Put(std::move(bad)), Put(std::move(gone)), state::EraseHealth{key}});
}

}  // namespace

std::vector<state::Batch> FullLedger() {
  std::vector<state::Batch> batches = FullLedgerOfFormat2();
  state::State state = Project(batches);
  const state::SourceRecord kept{"directory /m", "marker", 7};
  const state::SourceRecord gone{"directory /gone", "", 8};
  state::ForeignHolderRecord held = state::MakeHolder("c0ffee", {"2", "4"});
  held.devices.emplace("example.com/other", "x");
  held.cdi_devices = {"v.com/c=1", "v.com/c=2"};
  state::ForeignHolderRecord freed = state::MakeHolder("gone", {"3"});
  freed.freed = "it hangs";
  for (state::Batch batch :
       {MakeBatch(22, DecisionKind::kSource, {Put(kept), Put(gone)}),
        MakeBatch(23, DecisionKind::kSource, {state::EraseSource{gone.Key()}}),
        MakeBatch(24, DecisionKind::kHolderFound,
                  {Put(held), Put(state::MakeHolder("gone", {"3"}))}),
        MakeBatch(25, DecisionKind::kHolderFreed, {Put(freed)}),
        MakeBatch(26, DecisionKind::kHolderGone,
                  {state::EraseHolder{{"gone"}}}),
        MakeBatch(27, DecisionKind::kClaimsAllocated,
                  {Put(state::MakeLocalClaim("local")),
                   Put(state::MakeLocalClaim("gone"))}),
        MakeBatch(28, DecisionKind::kClaimsReleased,
                  {state::EraseLocalClaim{{"gone"}}})}) {
    EXPECT_THAT(ApplyNew(state, batch), IsOk());
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::vector<state::Batch> FullLedgerOfFormat2() {
  std::vector<state::Batch> batches = FullLedgerOfFormat1();
  batches.push_back(MakeBatch(11, DecisionKind::kRepair,
                              {state::ErasePod{state::kPodB},
                               state::EraseIdentity{"Pod", {"default", "b"}}}));
  for (const state::Batch& batch : DevicePluginBatches()) {
    batches.push_back(batch);
  }
  for (const state::Batch& batch : OwedBatches()) batches.push_back(batch);
  batches.push_back(HealthBatch());
  state::State state;
  for (state::Batch& batch : batches) {
    EXPECT_THAT(ApplyNew(state, batch), IsOk());
  }
  batches.push_back(MakeBatch(21, DecisionKind::kRecovered, {}));
  return batches;
}

std::vector<state::Batch> FullLedgerOfFormat1() {
  state::ClaimRecord referenced = OldClaim(/*both_drivers=*/true);
  for (auto& [name, driver] : referenced.drivers) driver = {};
  std::vector<state::Batch> batches = state::PreparedPodBatches();
  batches[3].decision.changes.back() = Put(ReadyPodWithEverything());
  batches.push_back(MakeBatch(
      5, DecisionKind::kPrepareIntent,
      {Put(OtherPod(PodPhase::kPreparing)), Put(std::move(referenced))}));
  batches.push_back(
      MakeBatch(6, DecisionKind::kUnprepareIntent,
                {Put(OtherPod(PodPhase::kReleasing)), Put(OldClaim(true))}));
  batches.push_back(MakeBatch(7, DecisionKind::kUnprepareResult,
                              {Put(OldClaim(/*both_drivers=*/false))}));
  batches.push_back(
      MakeBatch(8, DecisionKind::kReject,
                {Put(MakePod(state::kPodB, "b", PodPhase::kRejected))}));
  batches.push_back(
      MakeBatch(9, DecisionKind::kIdentity,
                {Put(state::MakeIdentity("b", "pod-b")),
                 Put(state::IdentityRecord{
                     "DeviceClass", {"", "gpu"}, "class-gpu", -1})}));
  const PodUid gone{"gone"};
  const ClaimUid gone_claim{"gone-claim"};
  state::ClaimRecord claim = MakeClaim(DriverPhase::kUnpreparing, {});
  claim.uid = gone_claim;
  claim.name.name = "gone";
  batches.push_back(MakeBatch(
      10, DecisionKind::kRelease,
      {Put(MakePod(gone, "gone", PodPhase::kWaiting)), Put(std::move(claim)),
       Put(state::MakeIdentity("gone", "gone")), state::ErasePod{gone},
       state::EraseClaim{gone_claim},
       state::EraseIdentity{"Pod", {"default", "gone"}}}));
  return batches;
}

std::vector<state::Batch> FullLedgerOfFormat(int format) {
  if (format == 1) return FullLedgerOfFormat1();
  return format == 2 ? FullLedgerOfFormat2() : FullLedger();
}

}  // namespace devmgr::checkpoint
