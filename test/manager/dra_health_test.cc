// SPDX-License-Identifier: Apache-2.0
//
// What pods and embedders learn of the health of devices that claims hold.
#include <algorithm>
#include <chrono>
#include <thread>

#include "common/boot_id.h"
#include "manager/dra_health_fixture.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(DraHealthTest, AHolderIsToldOfEachChange) {  // DRA-142
  Start(2);
  EXPECT_THAT(StatusOf("p0"),
              ElementsAre("c claim:c0 d.example.com/pool-1/dev-0 Unknown"));
  Report({Of("dev-0", kGood), Of("dev-1", kGood)});
  EXPECT_THAT(Told(), ElementsAre(ElementsAre(PodUid{"u-p0"}, PodUid{"u-p1"})));
  Report({Of("dev-0", kBad, "too hot"), Of("dev-1", kGood)});
  EXPECT_THAT(Told(), ElementsAre(ElementsAre(PodUid{"u-p0"})));
  EXPECT_THAT(
      StatusOf("p0"),
      ElementsAre("c claim:c0 d.example.com/pool-1/dev-0 Unhealthy: too hot"));
  EXPECT_THAT(
      MessagesOf("DeviceUnhealthy"),
      ElementsAre(AllOf(HasSubstr("'pool-1/dev-0'"), HasSubstr(kDriver))));
  EXPECT_THAT(MessagesOf("DeviceUnhealthy"),
              ElementsAre(HasSubstr("does not work: too hot")));
  Report({Of("dev-0", kBad, "too hot"), Of("dev-1", kGood)});
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_THAT(MessagesOf("DeviceHealthy"), IsEmpty());
  Report({Of("dev-0", kGood), Of("dev-1", kGood)});
  Told();
  EXPECT_THAT(MessagesOf("DeviceHealthy"),
              ElementsAre(AllOf(HasSubstr("'pool-1/dev-0'"), HasSubstr(kDriver),
                                HasSubstr("works again"))));
}

TEST_F(DraHealthTest, NobodyIsToldOfADeviceThatNobodyHolds) {  // DRA-143
  Start(1);
  Report({Of("dev-7", kGood)});
  EXPECT_THAT(Told(), IsEmpty());
  // It is known all the same to who gets it then.
  node_.drivers.Prepares("c7", {Device("dev-7")});
  node_.Publish(ClaimYaml("c7", "u-c7", {kDriver}, {"u-p7"}) +
                PodYaml("p7", "u-p7", {"c7"}));
  ASSERT_TRUE(node_.WaitFor("p7", PodState::kReady));
  EXPECT_THAT(StatusOf("p7"),
              ElementsAre("c claim:c7 d.example.com/pool-1/dev-7 Healthy"));
  EXPECT_TRUE(WaitForKept(ElementsAre("dev-7 Healthy ")));
}

TEST_F(DraHealthTest, AllWhoShareADeviceAreTold) {  // DRA-146, DRA-147
  node_.drivers.Prepares("c0", {Device("dev", {}, {}, "share-1")});
  node_.drivers.Prepares("c1", {Device("dev", {}, {}, "share-2")});
  Start(ClaimYaml("c0", "u-c0", {kDriver}, {"u-p0", "u-p1"}) +
            ClaimYaml("c1", "u-c1", {kDriver}, {"u-p2"}) +
            PodYaml("p0", "u-p0", {"c0"}) + PodYaml("p1", "u-p1", {"c0"}) +
            PodYaml("p2", "u-p2", {"c1"}),
        3);
  Report({Of("dev", kBad)});
  EXPECT_THAT(Told(), ElementsAre(ElementsAre(PodUid{"u-p0"}, PodUid{"u-p1"},
                                              PodUid{"u-p2"})));
}

TEST_F(DraHealthTest, WhatHappensAtOnceIsToldAtOnce) {
  Start(3);
  node_.RunAndWait([&] {
    for (int i = 0; i < 1'000; ++i) {
      Report({Of("dev-0", i % 2 == 0 ? kGood : kBad),
              Of("dev-1", i % 2 == 0 ? kBad : kGood)});
    }
  });
  std::set<PodUid> all;
  for (const auto& pods : Told()) all.insert(pods.begin(), pods.end());
  EXPECT_EQ(all, (std::set<PodUid>{{"u-p0"}, {"u-p1"}}));
  EXPECT_THAT(StatusOf("p0"), ElementsAre(HasSubstr("Unhealthy")));
}

TEST_F(DraHealthTest, TheEndOfTheStreamMakesDevicesUnknown) {  // DRA-173
  Start(1);
  Report({Of("dev-0", kGood)});
  Told();
  node_.drivers.LoseHealth(kDriver);
  EXPECT_THAT(Told(), ElementsAre(ElementsAre(PodUid{"u-p0"})));
  EXPECT_THAT(StatusOf("p0"), ElementsAre(HasSubstr("Unknown")));
  EXPECT_THAT(MessagesOf("DriverHealthLost"), SizeIs(1));
  Report({Of("dev-0", kGood)});
  EXPECT_THAT(Told(), ElementsAre(ElementsAre(PodUid{"u-p0"})));
  EXPECT_THAT(StatusOf("p0"), ElementsAre(HasSubstr("Healthy")));
}

// DRA-160
TEST_F(DraHealthTest, AHealthyDeviceIsShownWithItsMessage) {
  node_.drivers.Prepares("c1", {Device("dev-1")});
  Start(ClaimYaml("c1", "u-c1", {kDriver}, {"u-p0"}) +
            PodYaml("p0", "u-p0", {"c1"}),
        1);
  Report({Of("dev-1", kGood, "59 °C")});
  Told();
  EXPECT_THAT(
      StatusOf("p0"),
      ElementsAre("c claim:c1 d.example.com/pool-1/dev-1 Healthy: 59 °C"));
}

// The kubelet notices only when somebody reads.
TEST_F(DraHealthTest, TheEndOfALeaseIsTold) {
  Start(1);
  Report({Of("dev-0", kGood, "", 1)});
  ASSERT_TRUE(node_.WaitUntil("its lease ended", [&] {
    return StatusOf("p0") ==
           std::vector<std::string>{
               "c claim:c0 d.example.com/pool-1/dev-0 Unknown"};
  }));
  std::size_t told = 0;
  ASSERT_TRUE(node_.WaitUntil("its pod was told", [&] {
    node_.RunAndWait([&] { told = listener_.told.size(); });
    return told >= 2;
  }));
}

/// Container `c` names two requests of a claim, and `all` all of it.
constexpr char kManyNames[] = R"(
apiVersion: v1
kind: Pod
metadata: {name: p0, uid: u-p0}
spec:
  initContainers:
  - name: init
    resources: {claims: [{name: first, request: big}]}
  - name: sidecar
    restartPolicy: Always
    resources: {claims: [{name: first, request: small}]}
  containers:
  - name: c
    resources: {claims: [{name: second}, {name: first, request: big}]}
  - name: none
  resourceClaims:
  - {name: first, resourceClaimName: c0}
  - {name: second, resourceClaimName: c1}
---
)";

// DRA-161
TEST_F(DraHealthTest, AClaimFromATemplateIsShownByThePodsNameForIt) {
  node_.drivers.Prepares("p0-gpu-x7k2q", {Device("dev-0")});
  Start(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
      "metadata:\n  name: p0-gpu-x7k2q\n  uid: u-c0\n"
      "  ownerReferences: [{apiVersion: v1, kind: Pod, name: p0, uid: u-p0, "
      "controller: true}]\n"
      "status:\n  allocation: {devices: {results: [{request: r, driver: "
      "d.example.com, pool: pool-1, device: dev-0}]}}\n"
      "  reservedFor: [{resource: pods, name: p0, uid: u-p0}]\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p0, uid: u-p0}\n"
      "spec:\n  containers: [{name: c, resources: {claims: [{name: gpu}]}}]\n"
      "  resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]\n"
      "status: {resourceClaimStatuses: [{name: gpu, resourceClaimName: "
      "p0-gpu-x7k2q}]}\n---\n",
      1);
  Report({Of("dev-0", kGood)});
  Told();
  EXPECT_THAT(StatusOf("p0"),
              ElementsAre("c claim:gpu d.example.com/pool-1/dev-0 Healthy"));
}

// DRA-163. A container cannot ask for `base/sub`: that is no DNS label.
TEST_F(DraHealthTest, AContainerShowsTheDevicesOfItsRequest) {
  node_.drivers.Prepares("c0", {Device("dev-0", {"base"})});
  Start(ClaimYaml("c0", "u-c0", {kDriver}, {"u-p0"}) +
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p0, uid: u-p0}\n"
            "spec:\n  containers:\n"
            "  - {name: a, resources: {claims: [{name: g, request: base}]}}\n"
            "  - {name: b, resources: {claims: [{name: g, request: other}]}}\n"
            "  - {name: c, resources: {claims: [{name: g}]}}\n"
            "  resourceClaims: [{name: g, resourceClaimName: c0}]\n---\n",
        1);
  Report({Of("dev-0", kGood)});
  Told();
  EXPECT_THAT(StatusOf("p0"),
              ElementsAre("a claim:g/base d.example.com/pool-1/dev-0 Healthy",
                          "c claim:g d.example.com/pool-1/dev-0 Healthy"));
}

TEST_F(DraHealthTest, EachContainerShowsWhatItNames) {
  node_.drivers.Prepares(
      "c0", {Device("dev-0", {"big"}, {"x.com/gpu=0", "x.com/gpu=extra"}),
             Device("dev-1", {"small/b"}, {"x.com/gpu=1"}),
             Device("dev-2", {"other"}, {"x.com/gpu=2"})});
  // Two shares of a device are one device; who serves no request serves all.
  node_.drivers.Prepares("c1", {Device("dev-3", {}, {}, "share-1"),
                                Device("dev-3", {}, {}, "share-2")});
  Start(ClaimYaml("c0", "u-c0", {kDriver}, {"u-p0"}) +
            ClaimYaml("c1", "u-c1", {kDriver}, {"u-p0"}) + kManyNames,
        1);
  Report({Of("dev-0", kGood), Of("dev-1", kBad), Of("dev-3", kGood)});
  Told();
  EXPECT_THAT(StatusOf("p0"),
              ElementsAre("init claim:first/big x.com/gpu=0 Healthy",
                          "sidecar claim:first/small x.com/gpu=1 Unhealthy",
                          "c claim:first/big x.com/gpu=0 Healthy",
                          "c claim:second d.example.com/pool-1/dev-3 Healthy"));
}

constexpr char kExtended[] = R"(
apiVersion: v1
kind: Pod
metadata: {name: p0, uid: u-p0}
spec:
  containers:
  - name: c
    resources: {limits: {example.com/gpu: "1"}, requests: {example.com/gpu: "1"}}
status:
  extendedResourceClaimStatus:
    resourceClaimName: c0
    requestMappings:
    - {containerName: c, resourceName: example.com/gpu, requestName: container-0-request-0}
---
)";

TEST_F(DraHealthTest, ExtendedResourcesByClaimsAreShownToo) {
  node_.drivers.Prepares("c0",
                         {Device("dev-0", {"container-0-request-0"}, {})});
  Start(ClaimYaml("c0", "u-c0", {kDriver}, {"u-p0"}) + kExtended, 1);
  Report({Of("dev-0", kBad)});
  EXPECT_THAT(Told(), SizeIs(1));
  EXPECT_THAT(StatusOf("p0"),
              ElementsAre("c claim:c0/container-0-request-0 "
                          "d.example.com/pool-1/dev-0 Unhealthy"));
}

TEST_F(DraHealthTest, APodThatEndsShowsWhatHeldLast) {
  Start(1);
  Report({Of("dev-0", kBad, "broken")});
  Told();
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p0"));
  Told();
  EXPECT_THAT(
      StatusOf(listener_.last),
      ElementsAre("c claim:c0 d.example.com/pool-1/dev-0 Unhealthy: broken"));
}

// DRA-166
TEST_F(DraHealthTest, WithTheGateOffNobodyIsAsked) {
  node_.options.feature_gates["ResourceHealthStatus"] = false;
  Start(1);
  EXPECT_FALSE(node_.drivers.health_watched());
  EXPECT_THAT(StatusOf("p0"), IsEmpty());
}

// Off and on again while the pod runs: nothing is lost.
TEST_F(DraHealthTest, TheGateGovernsWhatIsShown) {
  Start(1);
  Report({Of("dev-0", kBad, "broken")});
  ASSERT_TRUE(WaitForKept(ElementsAre("dev-0 Unhealthy broken")));
  node_.options.feature_gates["ResourceHealthStatus"] = false;
  Restart();
  EXPECT_THAT(StatusOf("p0"), IsEmpty());
  EXPECT_THAT(Kept(), SizeIs(1));
  node_.options.feature_gates["ResourceHealthStatus"] = true;
  Restart();
  EXPECT_THAT(StatusOf("p0"), ElementsAre(HasSubstr("Unhealthy: broken")));
}

// DRA-164
TEST_F(DraHealthTest, WithTheOtherGateOffThereAreNoMessages) {
  node_.options.feature_gates["ResourceHealthStatusMessage"] = false;
  Start(1);
  Report({Of("dev-0", kBad, "too hot")});
  EXPECT_THAT(Told(), SizeIs(1));
  EXPECT_THAT(StatusOf("p0"),
              ElementsAre(AllOf(HasSubstr("Unhealthy"),
                                ::testing::Not(HasSubstr("too hot")))));
}

TEST_F(DraHealthTest, WhatWasToldLastIsShownAfterARestart) {  // DRA-157
  Start(2);
  Report({Of("dev-0", kBad, "broken"), Of("dev-1", kGood), Of("dev-9", kGood)});
  ASSERT_TRUE(
      WaitForKept(ElementsAre("dev-0 Unhealthy broken", "dev-1 Healthy ")));
  Told();
  Restart();
  EXPECT_THAT(StatusOf("p0"), ElementsAre(HasSubstr("Unhealthy: broken")));
  EXPECT_THAT(StatusOf("p1"), ElementsAre(HasSubstr("Healthy")));
  Told();
  // The same again is no news.
  Report({Of("dev-0", kBad, "broken"), Of("dev-1", kGood)});
  EXPECT_THAT(Told(), IsEmpty());
}

TEST_F(DraHealthTest, AfterARestartItCountsForTheRestOfItsLease) {  // DRA-157
  Start(1);
  Report({Of("dev-0", kBad, "gone soon", 2'000)});
  ASSERT_TRUE(WaitForKept(ElementsAre("dev-0 Unhealthy gone soon")));
  Restart();
  // The rest may be over by now.
  EXPECT_TRUE(node_.WaitUntil("it is Unknown", [&] {
    return ::testing::Matches(ElementsAre(HasSubstr("Unknown")))(
        StatusOf("p0"));
  }));
}

// A driver repeats itself, and the ledger keeps news only: since when the last
// word counts is written when the manager stops.
TEST_F(DraHealthTest, ALeaseThatWasRenewedGoesOnAfterARestart) {
  Start(1);
  Report({Of("dev-0", kGood)});
  ASSERT_TRUE(WaitForKept(ElementsAre("dev-0 Healthy ")));
  node_.Sync();
  EXPECT_EQ(LeaseOf("dev-0").boot_id, "boot-1");
  const std::int64_t first = LeaseOf("dev-0").told_ms;
  while (BootMs() <= first) std::this_thread::yield();
  Report({Of("dev-0", kGood)});
  Told();
  StopListening();
  node_.Stop();
  EXPECT_GT(LeaseOf("dev-0").told_ms, first);
  node_.Start();
  Listen();
  EXPECT_THAT(StatusOf("p0"), ElementsAre(HasSubstr("Healthy")));
}

TEST_F(DraHealthTest, WhatRanOutWhileWeWereDownIsUnknownWithReasonAndTime) {
  Start(1);
  Report({Of("dev-0", kBad, "broken")});
  ASSERT_TRUE(WaitForKept(ElementsAre("dev-0 Unhealthy broken")));
  StopListening();
  node_.Stop();
  ToldEarlier("dev-0", std::chrono::milliseconds(61'000));
  node_.Start();
  Listen();
  ASSERT_THAT(StatusOf("p0"),
              ElementsAre(HasSubstr("Unknown: the driver's last report ran out "
                                    "while the manager was not running")));
  const ResourceHealth shown = node_.PodNamed("p0")
                                   .allocated_resources.front()
                                   .resources.front()
                                   .resources.front();
  EXPECT_NE(shown.since, WallTime());
  EXPECT_THAT(node_.manager().View()->Devices().front().health_reason,
              HasSubstr("ran out"));
  EXPECT_THAT(MessagesOf("DeviceUnhealthy"), IsEmpty());
  // What the driver says counts again, and is news.
  Told();
  Report({Of("dev-0", kBad, "broken")});
  EXPECT_THAT(Told(), SizeIs(1));
  EXPECT_THAT(StatusOf("p0"), ElementsAre(HasSubstr("Unhealthy: broken")));
  const auto boot_ms = BootMs();
  EXPECT_TRUE(WaitForLedger(
      [&] { return LeaseOf("dev-0").told_ms > boot_ms - 60'000; }));
}

// The reason goes with the claim.
TEST_F(DraHealthTest, WhatRanOutIsForgottenWithItsHolder) {
  Start(1);
  Report({Of("dev-0", kBad, "broken")});
  ASSERT_TRUE(WaitForKept(ElementsAre("dev-0 Unhealthy broken")));
  StopListening();
  node_.Reboot();
  Listen();
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p0"));
  EXPECT_TRUE(WaitForKept(IsEmpty()));
}

TEST_F(DraHealthTest, TheLedgerKeepsWhatIsHeldAndNews) {
  Start(1);
  Report({Of("dev-0", kGood), Of("dev-8", kGood)});
  ASSERT_TRUE(WaitForKept(ElementsAre("dev-0 Healthy ")));
  const std::size_t batches = node_.store.batches();
  for (int i = 0; i < 100; ++i) {
    Report({Of("dev-0", kGood), Of("dev-8", i % 2 == 0 ? kGood : kBad)});
  }
  Told();
  EXPECT_EQ(node_.store.batches(), batches);
  // News come together if they come fast.
  for (int i = 0; i < 100; ++i) {
    Report({Of("dev-0", kGood, std::to_string(i) + " degrees")});
  }
  ASSERT_TRUE(WaitForKept(ElementsAre("dev-0 Healthy 99 degrees")));
  EXPECT_LE(node_.store.batches(), batches + 3);
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p0"));
  EXPECT_TRUE(WaitForKept(IsEmpty()));
}

TEST_F(DraHealthTest, DevicesShowIt) {
  Start(2);
  Report({Of("dev-0", kBad, "broken")});
  Told();
  std::vector<std::string> shown;
  for (const DeviceInfo& device : node_.manager().View()->Devices()) {
    shown.push_back(device.device + " " + std::string(device.health->name()) +
                    " " + device.health_reason);
  }
  EXPECT_THAT(shown, ElementsAre("dev-0 Unhealthy broken", "dev-1 Unknown "));
}

// Of those who never tell anything, nothing is said either.
TEST_F(DraHealthTest, DevicesOfADriverThatTellsNothingHaveNone) {
  Start(1);
  for (const DeviceInfo& device : node_.manager().View()->Devices()) {
    EXPECT_EQ(device.health, std::nullopt);
  }
}

}  // namespace
}  // namespace devmgr
