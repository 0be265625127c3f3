// SPDX-License-Identifier: Apache-2.0
#include "claim/pod_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/builders.h"

namespace devmgr::claim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = Verdict::Kind;

class PodPlanTest : public testing::Test {
 protected:
  PlanResult Plan(const Pod& pod,
                  const std::vector<ResourceClaim>& claims) const {
    return PlanPod(pod, SnapshotOf(claims), options_);
  }

  /// The pod waits, for exactly these things.
  static void ExpectWait(const PlanResult& result, const std::string& reason,
                         const std::string& text,
                         const std::vector<WaitingFor>& waiting_for) {
    EXPECT_EQ(result.verdict.kind, Kind::kWait) << result.verdict.message;
    EXPECT_EQ(result.verdict.reason, reason);
    EXPECT_THAT(result.verdict.message, HasSubstr(text));
    EXPECT_EQ(result.verdict.waiting_for, waiting_for);
  }

  static void ExpectReject(const PlanResult& result, const std::string& reason,
                           const std::string& text) {
    EXPECT_EQ(result.verdict.kind, Kind::kReject) << result.verdict.message;
    EXPECT_EQ(result.verdict.reason, reason);
    EXPECT_THAT(result.verdict.message, HasSubstr(text));
    EXPECT_THAT(result.verdict.waiting_for, SizeIs(1));
  }

  static std::vector<std::string> ClaimsOf(const PlanResult& result) {
    EXPECT_EQ(result.verdict.kind, Kind::kAdmit) << result.verdict.message;
    std::vector<std::string> uids;
    for (const PlannedClaim& claim : result.plan.claims) {
      uids.push_back(claim.uid.value);
    }
    return uids;
  }

  PlanOptions options_;
};

WaitingFor ForClaim(const std::string& name) {
  return {WaitingFor::Kind::kClaim, "ns/" + name};
}

TEST_F(PodPlanTest, PodWithoutNeedsIsAdmittedWithAllItsContainers) {
  const Pod pod = PodBuilder().InitContainer("i").Container("c");
  const PlanResult result = Plan(pod, {});
  EXPECT_THAT(ClaimsOf(result), IsEmpty());
  EXPECT_THAT(result.plan.needs,
              ElementsAre(state::ContainerNeed{"i", true, {}},
                          state::ContainerNeed{"c", false, {}}));
}

// DRA-041
TEST_F(PodPlanTest, ADirectClaimNeedsNoOwner) {
  const Pod pod = PodBuilder().Claim("c1", "C").Claim("c2", "D");
  EXPECT_THAT(ClaimsOf(Plan(pod, {ClaimForP("C"), ClaimForP("D").OwnedBy(Owner(
                                                      "u-other", "other"))})),
              ElementsAre("u-C", "u-D"));
}

// DRA-042
TEST_F(PodPlanTest, AClaimMadeFromATemplateIsAdmittedWhenThePodOwnsIt) {
  const Pod pod = PodBuilder().Template("c1").Made("c1", "C");
  EXPECT_THAT(ClaimsOf(Plan(pod, {ClaimForP("C").OwnedBy(Owner("u-P"))})),
              ElementsAre("u-C"));
}

// DRA-043
TEST_F(PodPlanTest, ATemplateThatNeedsNoClaimAddsNothing) {
  const Pod pod = PodBuilder()
                      .Template("c1")
                      .Made("c1", std::nullopt)
                      .Container("c")
                      .Uses("c1");
  const PlanResult result = Plan(pod, {});
  EXPECT_THAT(ClaimsOf(result), IsEmpty());
  EXPECT_THAT(result.plan.needs,
              ElementsAre(state::ContainerNeed{"c", false, {}}));
}

// DRA-044
TEST_F(PodPlanTest, WaitsForAClaimThatIsNotMadeYet) {
  const Pod pod = PodBuilder().Template("c1");
  ExpectWait(Plan(pod, {}), "ClaimNotCreated",
             "pod \"ns/P\": ResourceClaim not created yet",
             {{WaitingFor::Kind::kPod, "ns/P"}});
}

// Pods of Kubernetes 1.26 and 1.27: their status names no claims.
TEST_F(PodPlanTest, AClaimIsKnownByItsNameAndOwnerIfTheStatusSaysNothing) {
  const PlanOptions options{.claim_names_without_status = true};
  const Pod pod = PodBuilder().Template("c1");
  const auto plan = [&](const std::vector<ResourceClaim>& claims) {
    return PlanPod(pod, SnapshotOf(claims), options);
  };
  EXPECT_THAT(ClaimsOf(plan({ClaimForP("P-c1").OwnedBy(Owner("u-P"))})),
              ElementsAre("u-P-c1"));
  // Not made yet, or somebody else's: nothing is said against the pod.
  const std::vector<WaitingFor> waiting_for = {{WaitingFor::Kind::kPod, "ns/P"},
                                               ForClaim("P-c1")};
  ExpectWait(plan({}), "ClaimNotCreated", "ResourceClaim not created yet",
             waiting_for);
  ExpectWait(plan({ClaimForP("P-c1").OwnedBy(Owner("u-Q", "Q"))}),
             "ClaimNotCreated", "ResourceClaim not created yet", waiting_for);
  // Without the option the name means nothing.
  ExpectWait(Plan(pod, {ClaimForP("P-c1").OwnedBy(Owner("u-P"))}),
             "ClaimNotCreated", "ResourceClaim not created yet",
             {{WaitingFor::Kind::kPod, "ns/P"}});
}

TEST_F(PodPlanTest, AStatusThatNamesClaimsCounts) {
  const PlanOptions options{.claim_names_without_status = true};
  const Pod pod =
      PodBuilder().Template("c1").Template("c2").Made("c1", std::nullopt);
  ExpectWait(PlanPod(pod, SnapshotOf({ClaimForP("P-c2").OwnedBy(Owner("u-P"))}),
                     options),
             "ClaimNotCreated", "pod claim \"c2\"",
             {{WaitingFor::Kind::kPod, "ns/P"}, ForClaim("P-c2")});
}

TEST_F(PodPlanTest, HandlesNameTheDriversOfOldClaims) {
  ResourceClaim claim = ClaimBuilder("C").For("u-P");
  claim.status.allocation->resource_handles = {{kOtherDriver, {"h2", {}}},
                                               {kDriver, {"h1", {}}}};
  const PlanResult result = Plan(PodBuilder().Claim("c1", "C"), {claim});
  ASSERT_THAT(ClaimsOf(result), ElementsAre("u-C"));
  const PlannedClaim& planned = result.plan.claims.front();
  EXPECT_THAT(planned.drivers, ElementsAre(kDriver, kOtherDriver));
  EXPECT_EQ(planned.handles, claim.status.allocation->resource_handles);
}

// Only where drivers of Kubernetes 1.30 may be; what a driver does without
// stays.
TEST_F(PodPlanTest, HandlesOfTodaysClaimsAreForOldDriversOnly) {
  ResourceClaim claim = ClaimForP("C");
  AllocationResult& allocation = *claim.status.allocation;
  ASSERT_FALSE(allocation.results.empty());
  for (auto& result : allocation.results) result.skip_node_operations = {"*"};
  const StructuredResourceHandle handle{"", "", "node-1", {{"", "dev-1"}}};
  allocation.resource_handles = {{kDriver, {"", handle}}};
  options_.optional_operations = true;
  const Pod pod = PodBuilder().Claim("c1", "C");
  const auto planned = [&] { return Plan(pod, {claim}).plan.claims.at(0); };
  EXPECT_THAT(planned().handles, IsEmpty());
  options_.old_drivers = true;
  EXPECT_EQ(planned().handles, allocation.resource_handles);
  EXPECT_TRUE(planned().skipped.at(kDriver).prepare);
}

// DRA-045: the plan as a whole is not admitted, so claim 1 is not booked.
TEST_F(PodPlanTest, OneClaimThatIsNotMadeYetHoldsUpTheOthers) {
  const Pod pod = PodBuilder().Claim("c1", "C").Template("c2");
  ExpectWait(Plan(pod, {ClaimForP("C")}), "ClaimNotCreated",
             "ResourceClaim not created yet",
             {{WaitingFor::Kind::kPod, "ns/P"}});
}

// DRA-046
TEST_F(PodPlanTest, RejectsAPodClaimWithNeitherNameNorTemplate) {
  const Pod pod = PodBuilder().EmptyClaim("c1");
  ExpectReject(Plan(pod, {}), "InvalidPod",
               "pod \"ns/P\", spec.resourceClaim \"c1\": none of the supported "
               "fields are set");
}

// DRA-047
TEST_F(PodPlanTest, WaitsForAMissingClaimObject) {
  const Pod pod = PodBuilder().Claim("c1", "C");
  ExpectWait(Plan(pod, {}), "ClaimNotFound", "fetch ResourceClaim C: not found",
             {ForClaim("C")});
}

TEST_F(PodPlanTest, WaitsForAClaimThatCannotBeRead) {
  const Pod pod = PodBuilder().Claim("c1", "C");
  ObjectSnapshot objects = SnapshotOf({});
  objects.unread_claims.insert_or_assign(
      {"ns", "C"}, {std::chrono::system_clock::time_point(
                        std::chrono::seconds(1'000'000'000)),
                    "connection refused"});
  ExpectWait(PlanPod(pod, objects, options_), "ClaimUnavailable",
             "fetch ResourceClaim C: not read since 2001-09-09T01:46:40Z: "
             "connection refused",
             {ForClaim("C")});
}

TEST_F(PodPlanTest, AClaimOfTheSameNameInAnotherNamespaceDoesNotCount) {
  ResourceClaim elsewhere = ClaimForP("C");
  elsewhere.metadata.ns = "other";
  const Pod pod = PodBuilder().Claim("c1", "C");
  ExpectWait(Plan(pod, {elsewhere}), "ClaimNotFound", "fetch ResourceClaim C",
             {ForClaim("C")});
}

// DRA-048
TEST_F(PodPlanTest, WaitsForTheReservationOfAClaimReservedForAnother) {
  const Pod pod = PodBuilder().Claim("c1", "C");
  ExpectWait(Plan(pod, {ClaimBuilder("C").From(kDriver).For("u-Q", "Q")}),
             "ClaimNotReserved",
             "pod P (u-P) is not allowed to use ResourceClaim C (u-C)",
             {ForClaim("C")});
}

// DRA-049: the pod was re-created under its name.
TEST_F(PodPlanTest, AReservationOfThePodsNameWithAnotherUidDoesNotCount) {
  const Pod pod = PodBuilder("P").Uid("u-new").Claim("c1", "C");
  ExpectWait(Plan(pod, {ClaimBuilder("C").From(kDriver).For("u-old", "P")}),
             "ClaimNotReserved", "is not allowed to use ResourceClaim C",
             {ForClaim("C")});
}

TEST_F(PodPlanTest, AReservationByUidCountsWhateverItsKindAndName) {
  ResourceClaim claim = ClaimBuilder("C").From(kDriver);
  claim.status.reserved_for = {{"x", "things", "other", "u-P"}};
  const Pod pod = PodBuilder().Claim("c1", "C");
  EXPECT_THAT(ClaimsOf(Plan(pod, {claim})), ElementsAre("u-C"));
}

TEST_F(PodPlanTest, AReservationWithoutUidCountsByNameForPodsOnly) {
  const Pod pod = PodBuilder().Claim("c1", "C");
  EXPECT_THAT(
      ClaimsOf(Plan(pod, {ClaimBuilder("C").From(kDriver).For("", "P")})),
      ElementsAre("u-C"));
  ResourceClaim claim = ClaimBuilder("C").From(kDriver);
  claim.status.reserved_for = {{"", "jobs", "P", ""}, {"", "pods", "Q", ""}};
  EXPECT_EQ(Plan(pod, {claim}).verdict.reason, "ClaimNotReserved");
}

// DRA-050
TEST_F(PodPlanTest, WaitsWhileAClaimIsMadeForAnotherPod) {
  const Pod pod = PodBuilder().Template("c1").Made("c1", "C");
  ExpectWait(Plan(pod, {ClaimForP("C").OwnedBy(Owner("u-other"))}),
             "ClaimNotOwned",
             "ResourceClaim ns/C was not created for Pod ns/P (Pod is not "
             "owner)",
             {ForClaim("C")});
}

TEST_F(PodPlanTest, WaitsWhileNobodyOwnsAClaimMadeFromATemplate) {
  const Pod pod = PodBuilder().Template("c1").Made("c1", "C");
  ExpectWait(Plan(pod, {ClaimForP("C")}), "ClaimNotOwned", "not owner",
             {ForClaim("C")});
}

// DRA-056
TEST_F(PodPlanTest, AClaimOfThePodsGroupIsThePodsWithTheGate) {
  OwnerReference owner = Owner("u-g", "g");
  owner.kind = "PodGroup";
  owner.api_version = "scheduling.k8s.io/v1alpha2";
  const ResourceClaim claim = ClaimForP("C").OwnedBy(owner);
  Pod pod = PodBuilder().Template("c1").Made("c1", "C");
  pod.spec.pod_group = "g";
  ExpectWait(Plan(pod, {claim}), "ClaimNotOwned", "(Pod is not owner)",
             {ForClaim("C")});
  options_.pod_groups = true;
  EXPECT_EQ(Plan(pod, {claim}).verdict.kind, Kind::kAdmit);
  pod.spec.pod_group = "h";
  ExpectWait(Plan(pod, {claim}), "ClaimNotOwned",
             "(neither Pod nor PodGroup h is the owner)", {ForClaim("C")});
  // DW-31: a pod of no group is of no group of that name either.
  pod.spec.pod_group = "";
  ExpectWait(Plan(pod, {claim}), "ClaimNotOwned", "(Pod is not owner)",
             {ForClaim("C")});
  owner.api_version = "other.example.com/v1";
  pod.spec.pod_group = "g";
  ExpectWait(Plan(pod, {ClaimForP("C").OwnedBy(owner)}), "ClaimNotOwned",
             "neither Pod nor PodGroup g", {ForClaim("C")});
}

TEST_F(PodPlanTest, AnOwnerThatIsNotTheControllerDoesNotCount) {
  OwnerReference owner = Owner("u-P");
  owner.controller = false;
  const Pod pod = PodBuilder().Template("c1").Made("c1", "C");
  ExpectWait(Plan(pod, {ClaimForP("C").OwnedBy(owner)}), "ClaimNotOwned",
             "not owner", {ForClaim("C")});
}

TEST_F(PodPlanTest, AnOwnerWithoutUidCountsByKindAndName) {
  const Pod pod = PodBuilder().Template("c1").Made("c1", "C");
  EXPECT_THAT(ClaimsOf(Plan(pod, {ClaimForP("C").OwnedBy(Owner("", "P"))})),
              ElementsAre("u-C"));
  OwnerReference job = Owner("", "P");
  job.kind = "Job";
  EXPECT_EQ(Plan(pod, {ClaimForP("C").OwnedBy(job)}).verdict.kind, Kind::kWait);
  EXPECT_EQ(Plan(pod, {ClaimForP("C").OwnedBy(Owner("", "Q"))}).verdict.kind,
            Kind::kWait);
}

// DRA-051
TEST_F(PodPlanTest, WaitsForTheAllocation) {
  const Pod pod = PodBuilder().Claim("c1", "C");
  ExpectWait(Plan(pod, {ClaimBuilder("C").For("u-P").NotAllocated()}),
             "ClaimNotAllocated", "ResourceClaim C: not allocated",
             {ForClaim("C")});
}

// DRA-052, DRA-070, DRA-078
TEST_F(PodPlanTest, DriversComeFromTheAllocationSortedOnceEach) {
  const Pod pod =
      PodBuilder().Claim("c1", "A").Claim("c2", "B").Claim("c3", "C");
  const PlanResult result = Plan(
      pod, {ClaimBuilder("A").For("u-P"),
            ClaimBuilder("B").For("u-P").From("z", "1").From("a", "2").From(
                "z", "3"),
            ClaimForP("C").AdminAccess()});
  ASSERT_THAT(ClaimsOf(result), ElementsAre("u-A", "u-B", "u-C"));
  EXPECT_THAT(result.plan.claims[0].drivers, IsEmpty());
  EXPECT_THAT(result.plan.claims[1].drivers, ElementsAre("a", "z"));
  EXPECT_THAT(result.plan.claims[2].drivers, ElementsAre(kDriver));
  EXPECT_EQ(result.plan.claims[2].name, NameOf("C"));
}

TEST_F(PodPlanTest, SeveralProblemsAreAllListed) {
  const Pod pod = PodBuilder().Claim("c1", "A").Claim("c2", "B").Template("c3");
  const PlanResult result =
      Plan(pod, {ClaimBuilder("B").For("u-P").NotAllocated()});
  EXPECT_EQ(result.verdict.kind, Kind::kWait);
  EXPECT_THAT(result.verdict.message,
              testing::AllOf(HasSubstr("fetch ResourceClaim A: not found"),
                             HasSubstr("ResourceClaim B: not allocated"),
                             HasSubstr("ResourceClaim not created yet")));
  EXPECT_THAT(
      result.verdict.waiting_for,
      testing::UnorderedElementsAre(WaitingFor{WaitingFor::Kind::kPod, "ns/P"},
                                    ForClaim("A"), ForClaim("B")));
}

TEST_F(PodPlanTest, ARejectionWinsOverWaits) {
  const Pod pod = PodBuilder().Claim("c1", "A").EmptyClaim("c2").Template("c3");
  ExpectReject(Plan(pod, {}), "InvalidPod",
               "none of the supported fields are set");
}

TEST_F(PodPlanTest, TwoPodClaimsThatNameOneObjectTakeItOnce) {
  const Pod pod = PodBuilder()
                      .Claim("c1", "C")
                      .Claim("c2", "C")
                      .Container("a")
                      .Uses("c1", "r1")
                      .Uses("c2", "r2");
  const PlanResult result = Plan(pod, {ClaimForP("C")});
  EXPECT_THAT(ClaimsOf(result), ElementsAre("u-C"));
  const ClaimUid uid{"u-C"};
  EXPECT_THAT(result.plan.needs[0].wants,
              ElementsAre(state::Want{uid, "r1", "", "c1"},
                          state::Want{uid, "r2", "", "c2"}));
}

TEST_F(PodPlanTest, WantsStandInPodClaimOrderNotInTheContainers) {
  const Pod pod = PodBuilder()
                      .Claim("c1", "A")
                      .Claim("c2", "B")
                      .Container("a")
                      .Uses("c2")
                      .Uses("c1", "r1");
  const PlanResult result = Plan(pod, {ClaimForP("A"), ClaimForP("B")});
  ASSERT_THAT(ClaimsOf(result), ElementsAre("u-A", "u-B"));
  EXPECT_THAT(result.plan.needs[0].wants,
              ElementsAre(state::Want{ClaimUid{"u-A"}, "r1", "", "c1"},
                          state::Want{ClaimUid{"u-B"}, "", "", "c2"}));
}

TEST(WorsenTest, KeepsTheWorseAndAddsWaitsUp) {
  const WaitingFor one{WaitingFor::Kind::kDriver, "one"};
  const WaitingFor two{WaitingFor::Kind::kDriver, "two"};
  const Verdict wait_one{Kind::kWait, "R1", "one", {one}};
  const Verdict wait_both{Kind::kWait, "R2", "both", {one, two}};
  const Verdict reject{Kind::kReject, "R3", "never", {}};

  Verdict verdict;
  Worsen(verdict, {});
  EXPECT_EQ(verdict.kind, Kind::kAdmit);
  Worsen(verdict, wait_one);
  Worsen(verdict, wait_both);
  EXPECT_EQ(verdict.reason, "R1");
  EXPECT_EQ(verdict.message, "one; both");
  EXPECT_THAT(verdict.waiting_for, ElementsAre(one, two));
  Worsen(verdict, reject);
  EXPECT_EQ(verdict.kind, Kind::kReject);
  EXPECT_EQ(verdict.message, "never");
  EXPECT_THAT(verdict.waiting_for, IsEmpty());
  Worsen(verdict, wait_one);
  EXPECT_EQ(verdict.message, "never");
}

}  // namespace
}  // namespace devmgr::claim
