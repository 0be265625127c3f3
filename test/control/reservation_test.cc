// SPDX-License-Identifier: Apache-2.0
#include "control/reservation.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "control/admin_access.h"
#include "control/generated_claim.h"
#include "support/builders.h"
#include "support/status_matchers.h"

namespace devmgr::control {
namespace {

using Kind = Verdict::Kind;

constexpr char kNow[] = "2026-01-02T03:04:05Z";

Node ThisNode() {
  Node node;
  node.metadata.name = "n1";
  return node;
}

NodeSelector OnNode(const std::string& node) {
  NodeSelector selector;
  selector.terms.push_back({{}, {{"metadata.name", "In", {node}}}});
  return selector;
}

std::set<PodUid> Pods(const std::vector<std::string>& uids) {
  std::set<PodUid> pods;
  for (const std::string& uid : uids) pods.insert(PodUid{uid});
  return pods;
}

Settlement SettleFor(const ResourceClaim& claim,
                     const std::vector<std::string>& uids,
                     bool is_prepared = false) {
  const std::set<PodUid> pods = Pods(uids);
  return Settle(claim, {pods, is_prepared}, kNow);
}

/// A user's claim, allocated and protected.
ResourceClaim Allocated(const ResourceClaim& claim) {
  ResourceClaim allocated = Allocate(claim, *claim.status.allocation);
  allocated.status.devices.emplace_back().driver = kDriver;
  return allocated;
}

/// A claim that was made for pod `P`, and is reserved for it.
ResourceClaim MadeForP() {
  const Pod pod = PodBuilder().Template("gpu");
  ResourceClaim claim =
      GenerateClaim(pod, pod.spec.resource_claims[0], {}, "x2x4x");
  return Reserve(Allocate(claim, {}), pod);
}

TEST(CheckReservationTest, AL088AnotherPodIsAddedToAnAllocatedClaim) {
  ResourceClaim claim = Allocated(ClaimForP().From(kDriver));
  const Pod second = PodBuilder("Q");
  EXPECT_EQ(CheckReservation(second, claim, ThisNode()).kind, Kind::kAdmit);
  const ResourceClaim reserved = Reserve(claim, second);
  claim.status.reserved_for.push_back({"", "pods", "Q", "u-Q"});
  EXPECT_EQ(reserved, claim);
  EXPECT_EQ(Reserve(reserved, second), reserved);
}

TEST(CheckReservationTest, AL088WhatThisNodeDoesNotReachIsWaitedFor) {
  ResourceClaim claim = ClaimForP().From(kDriver);
  claim.status.allocation->node_selector = OnNode("n1");
  const Pod second = PodBuilder("Q");
  EXPECT_EQ(CheckReservation(second, claim, ThisNode()).kind, Kind::kAdmit);
  claim.status.allocation->node_selector = OnNode("n2");
  const Verdict verdict = CheckReservation(second, claim, ThisNode());
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_EQ(verdict.reason, "ClaimOnOtherNode");
  EXPECT_EQ(verdict.message,
            "ResourceClaim 'ns/C' is allocated devices that node 'n1' does not "
            "reach, by the allocation's nodeSelector");
  ASSERT_EQ(verdict.waiting_for.size(), 1U);
  EXPECT_EQ(verdict.waiting_for[0].name, "ns/C");
}

TEST(CheckReservationTest, AL089AClaimHas256PodsAtMost) {
  ResourceClaim claim = ClaimBuilder().From(kDriver);
  for (int i = 0; i < 255; ++i) {
    claim = Reserve(claim, PodBuilder(fmt::format("p{}", i)));
  }
  const Pod pod = PodBuilder("Q");
  EXPECT_EQ(CheckReservation(pod, claim, ThisNode()).kind, Kind::kAdmit);
  claim = Reserve(claim, PodBuilder("p255"));
  const Verdict verdict = CheckReservation(pod, claim, ThisNode());
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_EQ(verdict.message,
            "ResourceClaim 'ns/C' is reserved for 256 pods, at most 256 can "
            "have it");
  // One that has it already is not refused for the others.
  EXPECT_EQ(CheckReservation(PodBuilder("p7"), claim, ThisNode()).kind,
            Kind::kAdmit);
}

TEST(CheckReservationTest, AnOldClaimThatIsNotSharedHasOnePod) {
  ResourceClaim claim = ClaimForP();
  claim.spec.old.emplace();
  const Pod second = PodBuilder("Q");
  EXPECT_EQ(CheckReservation(second, claim, ThisNode()).kind, Kind::kWait);
  claim.status.allocation->shareable = true;
  EXPECT_EQ(CheckReservation(second, claim, ThisNode()).kind, Kind::kAdmit);
}

TEST(CheckReservationTest, WithoutAnAllocationThereIsNothingToReserve) {
  const ResourceClaim claim = ClaimBuilder().NotAllocated();
  const Verdict verdict = CheckReservation(PodBuilder(), claim, ThisNode());
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_EQ(verdict.reason, "ClaimNotAllocated");
}

TEST(CheckReservationTest, AL091APodThatHasEndedIsNeverAdded) {
  const ResourceClaim claim = ClaimForP();
  for (const char* phase : {"Succeeded", "Failed"}) {
    Pod pod = PodBuilder("Q");
    pod.status.phase = phase;
    EXPECT_EQ(CheckReservation(pod, claim, ThisNode()).kind, Kind::kReject);
  }
}

TEST(CheckReservationTest, AL114AClaimThatIsBeingDeletedTakesNoOtherPod) {
  ResourceClaim claim = ClaimForP();
  claim.metadata.deletion_timestamp = kNow;
  EXPECT_EQ(CheckReservation(PodBuilder(), claim, ThisNode()).kind,
            Kind::kAdmit);
  const Verdict verdict = CheckReservation(PodBuilder("Q"), claim, ThisNode());
  EXPECT_EQ(verdict.kind, Kind::kWait);
  EXPECT_EQ(verdict.message,
            "ResourceClaim 'ns/C' is being deleted since 2026-01-02T03:04:05Z: "
            "no other pod can have it");
}

TEST(SettleTest, AL090WhenTheLastPodLeavesTheDevicesAreFree) {
  const ResourceClaim claim = Allocated(ClaimForP().From(kDriver));
  const Settlement settled = SettleFor(claim, {});
  EXPECT_EQ(settled.fate, ClaimFate::kChanges);
  EXPECT_TRUE(settled.deallocated);
  ASSERT_EQ(settled.dropped.size(), 1U);
  EXPECT_EQ(settled.dropped[0].uid, "u-P");
  EXPECT_FALSE(settled.claim.status.allocation.has_value());
  EXPECT_TRUE(settled.claim.status.devices.empty());
  EXPECT_TRUE(settled.claim.status.reserved_for.empty());
  // A user's claim stays, with what protects it.
  EXPECT_EQ(settled.claim.metadata, claim.metadata);
  EXPECT_EQ(SettleFor(settled.claim, {}).fate, ClaimFate::kStays);
}

TEST(SettleTest, AL090AClaimThatWasMadeForThePodGoesWithIt) {
  const ResourceClaim claim = MadeForP();
  EXPECT_EQ(SettleFor(claim, {"u-P"}).fate, ClaimFate::kStays);
  const Settlement settled = SettleFor(claim, {});
  EXPECT_EQ(settled.fate, ClaimFate::kGoes);
  EXPECT_TRUE(settled.deallocated);
  // Allocated or not.
  const Pod pod = PodBuilder().Template("gpu");
  const ResourceClaim unused =
      GenerateClaim(pod, pod.spec.resource_claims[0], {}, "x2x4x");
  EXPECT_EQ(SettleFor(unused, {"u-P"}).fate, ClaimFate::kStays);
  EXPECT_EQ(SettleFor(unused, {}).fate, ClaimFate::kGoes);
}

TEST(SettleTest, AL090NothingIsReleasedWhileItIsPrepared) {
  const ResourceClaim claim = Allocated(ClaimForP().From(kDriver));
  const Settlement settled = SettleFor(claim, {}, true);
  EXPECT_EQ(settled.fate, ClaimFate::kStays);
  EXPECT_TRUE(settled.dropped.empty());
  // And then it is released, not forgotten.
  EXPECT_TRUE(SettleFor(settled.claim, {}).deallocated);
  // Those that leave while others stay go at once.
  const ResourceClaim shared = Reserve(claim, PodBuilder("Q"));
  EXPECT_EQ(SettleFor(shared, {"u-Q"}, true).dropped.size(), 1U);
}

TEST(SettleTest, AL090APreparedClaimOfAPodThatIsGoneIsDeletedInTheEnd) {
  const Settlement begun = SettleFor(MadeForP(), {}, true);
  EXPECT_EQ(begun.fate, ClaimFate::kChanges);
  EXPECT_EQ(begun.claim.metadata.deletion_timestamp, kNow);
  EXPECT_TRUE(begun.claim.status.allocation.has_value());
  EXPECT_EQ(SettleFor(begun.claim, {}, true).fate, ClaimFate::kStays);
  EXPECT_EQ(SettleFor(begun.claim, {}).fate, ClaimFate::kGoes);
}

TEST(SettleTest, AMadeClaimThatAnotherPodHasGoesAfterThatOne) {
  const ResourceClaim claim = Reserve(MadeForP(), PodBuilder("Q"));
  const Settlement begun = SettleFor(claim, {"u-Q"});
  EXPECT_EQ(begun.fate, ClaimFate::kChanges);
  EXPECT_EQ(begun.claim.metadata.deletion_timestamp, kNow);
  EXPECT_FALSE(begun.deallocated);
  EXPECT_EQ(SettleFor(begun.claim, {}).fate, ClaimFate::kGoes);
}

TEST(SettleTest, AL091SettlingTenTimesIsOneWrite) {
  ResourceClaim claim = Allocated(ClaimForP().For("u-Q", "Q"));
  int writes = 0;
  for (int i = 0; i < 10; ++i) {
    const Settlement settled = SettleFor(claim, {"u-P"});
    if (settled.fate != ClaimFate::kStays) ++writes;
    claim = settled.claim;
  }
  EXPECT_EQ(writes, 1);
  ASSERT_EQ(claim.status.reserved_for.size(), 1U);
  EXPECT_EQ(claim.status.reserved_for[0].uid, "u-P");
  EXPECT_TRUE(claim.status.allocation.has_value());
}

TEST(SettleTest, AL114ADeletedClaimGoesWhenTheLastPodHasLeft) {
  ResourceClaim claim = Allocated(ClaimForP().From(kDriver));
  claim.metadata.deletion_timestamp = kNow;
  EXPECT_EQ(SettleFor(claim, {"u-P"}).fate, ClaimFate::kStays);
  const Settlement settled = SettleFor(claim, {});
  EXPECT_EQ(settled.fate, ClaimFate::kGoes);
  EXPECT_TRUE(settled.claim.metadata.finalizers.empty());
  EXPECT_FALSE(settled.claim.status.allocation.has_value());
}

TEST(SettleTest, AL114SoItDoesWhenTheReservationWasDroppedBeforeARestart) {
  ResourceClaim claim = Allocated(ClaimBuilder().From(kDriver));
  claim.metadata.deletion_timestamp = kNow;
  const Settlement settled = SettleFor(claim, {});
  EXPECT_EQ(settled.fate, ClaimFate::kGoes);
  EXPECT_TRUE(settled.deallocated);
}

TEST(SettleTest, AL114FinalizersOfOthersKeepIt) {
  ResourceClaim claim = Allocated(ClaimForP().From(kDriver));
  claim.metadata.deletion_timestamp = kNow;
  claim.metadata.finalizers.emplace_back("example.com/mine");
  const Settlement settled = SettleFor(claim, {});
  EXPECT_EQ(settled.fate, ClaimFate::kChanges);
  EXPECT_EQ(settled.claim.metadata.finalizers,
            std::vector<std::string>{"example.com/mine"});
  EXPECT_EQ(SettleFor(settled.claim, {}).fate, ClaimFate::kStays);
}

TEST(SettleTest, AnAllocatedClaimThatNoPodHadYetStaysAllocated) {
  const ResourceClaim claim = Allocated(ClaimBuilder().From(kDriver));
  EXPECT_EQ(SettleFor(claim, {}).fate, ClaimFate::kStays);
}

TEST(SettleTest, ConsumersThatCannotBeJudgedStay) {
  ResourceClaim claim = Allocated(ClaimBuilder().For("", "P"));
  claim.status.reserved_for.push_back(
      {"scheduling.k8s.io", "podgroups", "g", "u-g"});
  EXPECT_EQ(SettleFor(claim, {}).fate, ClaimFate::kStays);
}

TEST(SettleTest, AnImmediateClaimKeepsItsDevicesUntilItIsDeleted) {
  ResourceClaim claim = Allocated(ClaimForP());
  claim.spec.old.emplace().is_immediate = true;
  const Settlement settled = SettleFor(claim, {});
  EXPECT_FALSE(settled.deallocated);
  EXPECT_TRUE(settled.claim.status.allocation.has_value());
  ResourceClaim deleted = settled.claim;
  deleted.metadata.deletion_timestamp = kNow;
  EXPECT_TRUE(SettleFor(deleted, {}).deallocated);
}

TEST(CheckAdminAccessTest, AL092NeedsTheLabelOfTheNamespace) {
  ResourceClaimSpec spec;
  spec.requests.emplace_back().name = "r";
  EXPECT_THAT(CheckAdminAccess(spec, "ns", {}, false), IsOk());
  spec.requests[0].admin_access = true;
  const auto refused = CheckAdminAccess(spec, "ns", {}, true);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "request 'r' wants adminAccess: admin access to devices requires "
            "the `resource.kubernetes.io/admin-access: true` label on the "
            "containing namespace 'ns'");
  EXPECT_FALSE(
      CheckAdminAccess(spec, "ns", {{kAdminAccessLabel, "yes"}}, true).ok());
  EXPECT_THAT(CheckAdminAccess(spec, "ns", {{kAdminAccessLabel, "true"}}, true),
              IsOk());
  const auto gated =
      CheckAdminAccess(spec, "ns", {{kAdminAccessLabel, "true"}}, false);
  EXPECT_EQ(gated.message(),
            "request 'r' wants adminAccess: the DRAAdminAccess feature gate is "
            "disabled");
}

}  // namespace
}  // namespace devmgr::control
