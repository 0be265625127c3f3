// SPDX-License-Identifier: Apache-2.0
#include "control/local_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "control/held_devices.h"
#include "control/release.h"
#include "state/record_builders.h"

namespace devmgr::control {
namespace {

using state::kDriver;
using state::kPodA;
using state::LocalClaimRecord;
using state::MakeLocalClaim;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const ObjectName kPod{"default", "a"};

std::shared_ptr<Pod> MakePodObject(const std::string& uid) {
  auto pod = std::make_shared<Pod>();
  pod->metadata.ns = kPod.ns;
  pod->metadata.name = kPod.name;
  pod->metadata.uid = uid;
  return pod;
}

ObjectName NameOf(const LocalClaimRecord& record) {
  return record.object->metadata.FullName();
}

class LocalObjectsTest : public ::testing::Test {
 protected:
  void Put(LocalClaimRecord record) {
    state_.Put(std::make_shared<const LocalClaimRecord>(std::move(record)));
  }
  /// A claim of the source, allocated here.
  LocalClaimRecord OfSource(const std::string& uid) const {
    LocalClaimRecord record = MakeLocalClaim(uid);
    record.origin = state::ClaimOrigin::kSource;
    record.pod = {};
    record.mappings.clear();
    auto object = std::make_shared<ResourceClaim>(*record.object);
    object->metadata.annotations.clear();
    object->metadata.owner_references.clear();
    record.object = object;
    return record;
  }
  ObjectSnapshot Show() {
    ObjectSnapshot shown = source_;
    local_.Show(state_, &shown);
    return shown;
  }

  state::State state_;
  ObjectSnapshot source_;
  LocalObjects local_;
};

TEST_F(LocalObjectsTest, AreThoseOfTheSourceWhereNothingWasDecided) {
  source_.pods.insert_or_assign(kPod, MakePodObject("other"));
  EXPECT_TRUE(Show().pods.SharesAllWith(source_.pods));
}

TEST_F(LocalObjectsTest, HaveClaimsThatWereMadeAndTheirNamesInThePod) {
  source_.pods.insert_or_assign(kPod, MakePodObject(kPodA.value));
  const LocalClaimRecord special = MakeLocalClaim("c1");
  LocalClaimRecord made = MakeLocalClaim("c2");
  made.origin = state::ClaimOrigin::kTemplate;
  made.pod_claim = "own";
  made.mappings.clear();
  Put(special);
  Put(made);
  ObjectSnapshot shown = Show();
  EXPECT_THAT(shown.claims, SizeIs(2));
  EXPECT_EQ(shown.claims.at(NameOf(special)), special.object);
  const PodStatus& status = shown.pods.at(kPod)->status;
  ASSERT_TRUE(status.extended_resource_claim_status.has_value());
  EXPECT_EQ(status.extended_resource_claim_status->resource_claim_name,
            NameOf(special).name);
  EXPECT_EQ(status.extended_resource_claim_status->request_mappings,
            special.mappings);
  ASSERT_THAT(status.resource_claim_statuses, SizeIs(1));
  EXPECT_EQ(status.resource_claim_statuses[0].name, "own");
  EXPECT_EQ(WithLocalStatus(*source_.pods.at(kPod), state_)
                .status.resource_claim_statuses[0]
                .resource_claim_name,
            NameOf(made).name);

  // Another pod of that name has none of it.
  source_.pods.insert_or_assign(kPod, MakePodObject("another"));
  EXPECT_EQ(Show().pods.at(kPod), source_.pods.at(kPod));
  state_.Erase(special.uid);
  state_.Erase(made.uid);
  EXPECT_THAT(Show().claims, IsEmpty());
}

TEST_F(LocalObjectsTest, WhatDidNotChangeStaysTheSamePointer) {
  source_.pods.insert_or_assign(kPod, MakePodObject(kPodA.value));
  Put(MakeLocalClaim("c1"));
  const ObjectSnapshot before = Show();
  source_.pods.insert_or_assign(ObjectName{"default", "b"},
                                MakePodObject("pod-x"));
  const ObjectSnapshot after = Show();
  EXPECT_EQ(after.pods.at(kPod), before.pods.at(kPod));
  EXPECT_NE(after.pods.at(kPod), source_.pods.at(kPod));
  EXPECT_TRUE(after.claims == before.claims);
}

TEST_F(LocalObjectsTest, GiveClaimsOfTheSourceTheirAllocation) {
  const LocalClaimRecord record = OfSource("c1");
  auto unallocated = std::make_shared<ResourceClaim>(*record.object);
  unallocated->status = {};
  unallocated->metadata.labels = {{"new", "label"}};
  source_.claims.insert_or_assign(NameOf(record), unallocated);
  Put(record);
  const auto shown = Show().claims.at(NameOf(record));
  EXPECT_EQ(shown->status.allocation, record.object->status.allocation);
  EXPECT_EQ(shown->status.reserved_for, record.object->status.reserved_for);
  EXPECT_EQ(shown->metadata.labels, unallocated->metadata.labels);
  // Another claim of that name is not allocated by this.
  unallocated = std::make_shared<ResourceClaim>(*unallocated);
  unallocated->metadata.uid = "c2";
  source_.claims.insert_or_assign(NameOf(record), unallocated);
  EXPECT_EQ(Show().claims.at(NameOf(record)), unallocated);
  // Without an object it stays while it is in use.
  source_.claims.clear();
  EXPECT_EQ(Show().claims.at(NameOf(record)), record.object);
}

// API-063, API-064
TEST_F(LocalObjectsTest, ClaimsHaveWhatDriversSayOfTheirDevices) {
  const LocalClaimRecord record = MakeLocalClaim("c1");
  const ObjectName name = NameOf(record);
  Put(record);
  const auto& result = record.object->status.allocation->results.at(0);
  const auto say = [&](const std::string& uid, const std::string& device) {
    ClaimDeviceStatus status{uid, {}};
    status.devices.push_back({result.driver,
                              result.pool,
                              device,
                              result.share_id,
                              {},
                              R"({"up":true})",
                              {}});
    source_.device_statuses.insert_or_assign(
        name, std::make_shared<const ClaimDeviceStatus>(std::move(status)));
  };
  const auto said = [&] { return Show().claims.at(name)->status.devices; };
  EXPECT_THAT(said(), IsEmpty());
  say("c1", result.device);
  ASSERT_THAT(said(), SizeIs(1));
  EXPECT_EQ(said()[0].data, R"({"up":true})");
  const auto before = Show().claims.at(name);
  EXPECT_EQ(Show().claims.at(name), before) << "nothing changed";
  say("c1", "another");
  EXPECT_THAT(said(), IsEmpty()) << "it is not allocated";
  say("c0", result.device);
  EXPECT_THAT(said(), IsEmpty()) << "of an earlier claim of that name";
  say("c1", result.device);
  EXPECT_THAT(said(), SizeIs(1));
  source_.device_statuses.erase(name);
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(LocalObjectsTest, WhatAFileSaysOfDevicesIsReplacedByItsDriver) {
  const LocalClaimRecord record = MakeLocalClaim("c1");
  const ObjectName name = NameOf(record);
  auto claim = std::make_shared<ResourceClaim>(*record.object);
  const auto& result = claim->status.allocation->results.at(0);
  claim->status.devices.push_back(
      {result.driver, result.pool, result.device, result.share_id, {}, "", {}});
  source_.claims.insert_or_assign(name, claim);
  EXPECT_EQ(Show().claims.at(name), claim);
  source_.device_statuses.insert_or_assign(
      name,
      std::make_shared<const ClaimDeviceStatus>(ClaimDeviceStatus{"c1", {}}));
  EXPECT_THAT(Show().claims.at(name)->status.devices, IsEmpty());
}

class HeldDevicesTest : public LocalObjectsTest {
 protected:
  bool IsHeld(const std::string& device) {
    return held_.Follow(state_, Show()).Find({kDriver, "pool", device}) !=
           nullptr;
  }
  HeldDevices held_;
};

TEST_F(HeldDevicesTest, AreThoseOfObjectsAndOfTheLedger) {
  EXPECT_FALSE(IsHeld("gpu-c1"));
  Put(MakeLocalClaim("c1"));
  EXPECT_TRUE(IsHeld("gpu-c1"));
  state_.Erase(state::LocalClaimUid{"c1"});
  EXPECT_FALSE(IsHeld("gpu-c1"));

  // A claim of a file that is gone, and that a driver has yet to unprepare.
  state::ClaimRecord claim =
      state::MakeClaim(state::DriverPhase::kUnpreparing, std::set<PodUid>{});
  claim.drivers[kDriver].allocated = {{"pool", "gpu-7", false},
                                      {"pool", "gpu-8", true}};
  state_.Put(std::make_shared<const state::ClaimRecord>(claim));
  EXPECT_TRUE(IsHeld("gpu-7"));
  EXPECT_FALSE(IsHeld("gpu-8")) << "it is shared";
  state_.Erase(claim.uid);
  EXPECT_FALSE(IsHeld("gpu-7"));
}

TEST_F(HeldDevicesTest, AClaimThatIsAllocatedAnewHoldsBothUntilTheOldIsGone) {
  Put(MakeLocalClaim("c1"));
  state::ClaimRecord claim =
      state::MakeClaim(state::DriverPhase::kUnpreparing, std::set<PodUid>{});
  claim.uid.value = "c1";
  claim.drivers[kDriver].allocated = {{"pool", "gpu-old", false}};
  state_.Put(std::make_shared<const state::ClaimRecord>(claim));
  EXPECT_TRUE(IsHeld("gpu-c1"));
  EXPECT_TRUE(IsHeld("gpu-old"));
  state_.Erase(claim.uid);
  EXPECT_TRUE(IsHeld("gpu-c1"));
  EXPECT_FALSE(IsHeld("gpu-old"));
}

class LocalReleaseTest : public LocalObjectsTest {};

TEST_F(LocalReleaseTest, AL090WaitsForTheDriverThatHasTheClaim) {
  Put(OfSource("c1"));
  state::ClaimRecord claim =
      state::MakeClaim(state::DriverPhase::kUnpreparing, {});
  claim.uid.value = "c1";
  state_.Put(std::make_shared<const state::ClaimRecord>(claim));
  EXPECT_THAT(ReleaseClaims(state_, 0).changes, IsEmpty());
  state_.Erase(claim.uid);
  const state::Decision decision = ReleaseClaims(state_, 0);
  EXPECT_EQ(decision.kind, state::DecisionKind::kClaimsReleased);
  ASSERT_THAT(decision.changes, SizeIs(1));
  EXPECT_TRUE(
      std::holds_alternative<state::EraseLocalClaim>(decision.changes[0]));
}

TEST_F(LocalReleaseTest, APodThatIsThereKeepsItsClaims) {
  Put(MakeLocalClaim("c1"));
  state_.Put(std::make_shared<const state::PodRecord>(
      state::MakePod(kPodA, "a", state::PodPhase::kWaiting)));
  EXPECT_THAT(ReleaseClaims(state_, 0).changes, IsEmpty());
  // Unless it gives them back, or is rejected.
  EXPECT_THAT(UnwindClaims(state_, kPodA, 0).changes, SizeIs(1));
  state_.Put(std::make_shared<const state::PodRecord>(
      state::MakePod(kPodA, "a", state::PodPhase::kReady)));
  EXPECT_THAT(UnwindClaims(state_, kPodA, 0).changes, IsEmpty());
  state_.Put(std::make_shared<const state::PodRecord>(
      state::MakePod(kPodA, "a", state::PodPhase::kRejected)));
  EXPECT_THAT(ReleaseClaims(state_, 0).changes, SizeIs(1));
}

}  // namespace
}  // namespace devmgr::control
