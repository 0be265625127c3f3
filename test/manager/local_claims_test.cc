// SPDX-License-Identifier: Apache-2.0
//
// A node that allocates claims itself: from classes, slices and pods alone to
// containers with devices, and back.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"
#include "manager/recorded_metrics.h"

namespace devmgr {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// Class `gpu`, with the extended resource kGpu.
constexpr char kClass[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {extendedResourceName: example.com/gpu, selectors: [{cel: "
    "{expression: 'device.driver == \"d.example.com\"'}}]}\n---\n";

constexpr char kTemplate[] =
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: "
    "{name: t}\nspec: {metadata: {labels: {x: \"1\"}}, spec: {devices: "
    "{requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}\n---\n";

std::string Slice(int devices, const std::string& driver = kDriver) {
  std::string text = fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: "
      "s-{0}}}\nspec:\n  driver: {0}\n  nodeName: node-1\n  pool: {{name: "
      "node-1, generation: 1, resourceSliceCount: 1}}\n  devices: [",
      driver);
  for (int i = 0; i < devices; ++i) {
    text += fmt::format("{{name: gpu-{}}}, ", i);
  }
  return text + "]\n---\n";
}

std::string Claim(const std::string& name) {
  return fmt::format(
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: "
      "{0}, uid: u-{0}}}\nspec: {{devices: {{requests: [{{name: r, exactly: "
      "{{deviceClassName: gpu}}}}]}}}}\n---\n",
      name);
}

/// One container that uses the claim, or the claim of the template.
std::string ClaimPod(const std::string& name, const std::string& source,
                     const std::string& limits = "") {
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: u-{0}}}\nspec:\n"
      "  nodeName: node-1\n  resourceClaims: [{{name: own, {1}}}]\n"
      "  containers: [{{name: c, resources: {{claims: [{{name: own}}], limits: "
      "{{{2}}}}}}}]\n---\n",
      name, source, limits);
}

std::string GpuPod(const std::string& name, int count) {
  return DevicePod(name, {{kGpu, count}}, "  nodeName: node-1\n");
}

class LocalClaimsTest : public DeviceNodeTest {
 protected:
  LocalClaimsTest() {
    node_.options.node_name = "node-1";
    node_.drivers.Register(kDriver);
  }

  std::vector<state::LocalClaimRecord> Records() {
    std::vector<state::LocalClaimRecord> records;
    const state::State state = node_.store.Load();
    for (const auto& [uid, record] : state.local_claims) {
      records.push_back(*record);
    }
    return records;
  }
  /// Devices of the claims for this pod, in their order.
  std::vector<std::string> Allocated(const std::string& pod) {
    std::vector<std::string> devices;
    for (const auto& record : Records()) {
      const ResourceClaimStatus& status = record.object->status;
      for (const auto& consumer : status.reserved_for) {
        if (consumer.name != pod) continue;
        for (const auto& result : status.allocation->results) {
          devices.push_back(result.device);
        }
      }
    }
    std::sort(devices.begin(), devices.end());
    return devices;
  }
  ::testing::AssertionResult WaitUntilFree() {
    return node_.WaitUntil("no claims", [&] { return Records().empty(); });
  }
};

TEST_F(LocalClaimsTest, AL078ExtendedResourceOfAClassFromThePodAlone) {
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(3) + GpuPod("p", 2));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(1));
  const state::LocalClaimRecord& record = records[0];
  const ResourceClaim& claim = *record.object;
  EXPECT_EQ(record.origin, state::ClaimOrigin::kExtendedResources);
  EXPECT_THAT(claim.metadata.name, StartsWith("p-extended-resources-"));
  EXPECT_THAT(claim.metadata.annotations,
              ElementsAre(std::pair(
                  "resource.kubernetes.io/extended-resource-claim", "true")));
  ASSERT_THAT(claim.metadata.owner_references, SizeIs(1));
  EXPECT_EQ(claim.metadata.owner_references[0].uid, "u-p");
  EXPECT_TRUE(claim.metadata.owner_references[0].controller);
  EXPECT_THAT(Allocated("p"), ElementsAre("gpu-0", "gpu-1"));
  EXPECT_THAT(record.mappings, ElementsAre(ContainerExtendedResourceRequest{
                                   "c", kGpu, "container-0-request-0"}));
  // As an API server would show it.
  const auto pod = node_.manager().Objects()->pods.at({"default", "p"});
  ASSERT_TRUE(pod->status.extended_resource_claim_status.has_value());
  EXPECT_EQ(pod->status.extended_resource_claim_status->resource_claim_name,
            claim.metadata.name);
  EXPECT_THAT(node_.Resolve("p", "c"),
              ElementsAre("d.example.com/x=" + claim.metadata.name));
  EXPECT_THAT(MessagesOf("ClaimsAllocated"),
              ElementsAre(HasSubstr("d.example.com/node-1/gpu-0, "
                                    "d.example.com/node-1/gpu-1")));

  node_.Publish(std::string(kClass) + Slice(3));
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_TRUE(WaitUntilFree());
  // The ledger has it first.
  EXPECT_TRUE(node_.WaitUntil(
      "no claim", [&] { return node_.manager().Objects()->claims.empty(); }));
}

TEST_F(LocalClaimsTest, AL142WaitsNamingTheHolderUntilItLeaves) {
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(1) + GpuPod("a", 1));
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  node_.Publish(std::string(kClass) + Slice(1) + GpuPod("a", 1) +
                GpuPod("b", 1));
  ASSERT_TRUE(node_.WaitForReason("b", "CannotAllocateClaims"));
  EXPECT_THAT(node_.PodNamed("b").message,
              HasSubstr("request container-0-request-0: 1 device wanted, 0 "
                        "found; refused: 1 busy (held by pod default/a)"));
  EXPECT_THAT(Records(), SizeIs(1));
  node_.Publish(std::string(kClass) + Slice(1) + GpuPod("b", 1));
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  EXPECT_THAT(Allocated("b"), ElementsAre("gpu-0"));
}

TEST_F(LocalClaimsTest, AL087ClaimOfATemplateIsMadeOnceAndLastsOverARestart) {
  const std::string objects = std::string(kClass) + kTemplate + Slice(2) +
                              ClaimPod("p", "resourceClaimTemplateName: t");
  node_.Start();
  node_.Publish(objects);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  const auto records = Records();
  ASSERT_THAT(records, SizeIs(1));
  const ResourceClaim& claim = *records[0].object;
  EXPECT_THAT(claim.metadata.name, StartsWith("p-own-"));
  EXPECT_THAT(claim.metadata.labels, ElementsAre(std::pair("x", "1")));
  EXPECT_EQ(records[0].pod_claim, "own");
  const auto answer = node_.Resolve("p", "c");
  EXPECT_THAT(answer, ElementsAre("d.example.com/x=" + claim.metadata.name));

  node_.Restart();
  node_.Publish(objects);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(Records(), records);
  EXPECT_EQ(node_.Resolve("p", "c"), answer);
  node_.Reboot();
  node_.Publish(objects);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(Records(), records);
}

TEST_F(LocalClaimsTest, AL088AL090AL091SharedClaimIsAllocatedOnce) {
  const std::string objects = std::string(kClass) + Slice(2) + Claim("shared");
  const std::string source = "resourceClaimName: shared";
  node_.Start();
  node_.Publish(objects + ClaimPod("a", source) + ClaimPod("b", source));
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  ASSERT_THAT(Records(), SizeIs(1));
  EXPECT_THAT(Allocated("a"), ElementsAre("gpu-0"));
  EXPECT_THAT(Allocated("b"), ElementsAre("gpu-0"));
  const auto shown =
      node_.manager().Objects()->claims.at({"default", "shared"});
  EXPECT_TRUE(shown->status.allocation.has_value());
  EXPECT_THAT(shown->status.reserved_for, SizeIs(2));

  node_.Publish(objects + ClaimPod("b", source));
  ASSERT_TRUE(node_.WaitUntilGone("a"));
  ASSERT_TRUE(node_.WaitUntil("one consumer", [&] {
    return Records().size() == 1 &&
           Records()[0].object->status.reserved_for.size() == 1;
  }));
  EXPECT_THAT(Allocated("b"), ElementsAre("gpu-0"));

  node_.Publish(objects);
  ASSERT_TRUE(node_.WaitUntilGone("b"));
  ASSERT_TRUE(WaitUntilFree());
  ASSERT_TRUE(node_.WaitUntil("not allocated", [&] {
    return !node_.manager()
                .Objects()
                ->claims.at({"default", "shared"})
                ->status.allocation.has_value();
  }));
}

/// As its finalizer has it below an API server: a driver that looks for the
/// claim of what it has prepared finds it.
TEST_F(LocalClaimsTest, AL114AClaimThatIsInUseOutlivesItsManifest) {
  const std::string objects = std::string(kClass) + Slice(1);
  const std::string pod = ClaimPod("p", "resourceClaimName: c");
  node_.Start();
  node_.Publish(objects + Claim("c") + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish(objects + pod);
  node_.Sync();
  const auto claims = node_.manager().Objects()->claims;
  const auto* shown = claims.Find(ObjectName{"default", "c"});
  ASSERT_NE(shown, nullptr);
  EXPECT_TRUE((*shown)->status.allocation.has_value());
  node_.Publish(objects);
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_TRUE(WaitUntilFree());
  ASSERT_TRUE(node_.WaitUntil(
      "no claim", [&] { return node_.manager().Objects()->claims.empty(); }));
}

TEST_F(LocalClaimsTest, AL080bTooManyDevicesAreRefusedAtOnce) {
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(40) + GpuPod("p", 33));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kRejected));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("32"));
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(LocalClaimsTest, AL141BelowASchedulerNothingIsAllocated) {
  node_.options.policies.authority = Authority::kScheduler;
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(2) + Claim("c") + GpuPod("e", 1) +
                ClaimPod("p", "resourceClaimName: c"));
  ASSERT_TRUE(node_.WaitForReason("p", "ClaimNotReserved"));
  ASSERT_TRUE(node_.WaitForReason("e", "ExtendedResourceNotMapped"));
  EXPECT_THAT(Records(), IsEmpty());
}

TEST_F(LocalClaimsTest, AllClaimsOfAPodOrNone) {
  node_.Start();
  const std::string objects = std::string(kClass) + Slice(2) + Claim("one");
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u-p}\nspec:\n"
      "  nodeName: node-1\n"
      "  resourceClaims: [{name: a, resourceClaimName: one}, {name: b, "
      "resourceClaimName: two}]\n"
      "  containers: [{name: c, resources: {claims: [{name: a}, {name: "
      "b}]}}]\n---\n";
  node_.Publish(objects + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("two: not found"));
  EXPECT_THAT(Records(), IsEmpty());
  node_.Publish(objects + Claim("two") + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Allocated("p"), ElementsAre("gpu-0", "gpu-1"));
}

TEST_F(LocalClaimsTest, APodThatWaitsForADeviceOfAPluginHoldsNoClaim) {
  node_.Start();
  const std::string objects = std::string(kClass) + Slice(1) + kTemplate;
  const std::string source = "resourceClaimTemplateName: t";
  node_.Publish(objects + ClaimPod("p", source, "example.com/nic: 1"));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  EXPECT_THAT(Records(), IsEmpty());
  node_.Publish(objects + ClaimPod("p", source, "example.com/nic: 1") +
                ClaimPod("q", source));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
}

// A pod that has waited for long for devices has them kept for it, but not
// while it waits for something else.
TEST_F(LocalClaimsTest, APodThatWaitsForAClaimKeepsNoDevicesFromOthers) {
  constexpr char kNicName[] = "example.com/nic";
  node_.options.policies.starvation_limit = std::chrono::milliseconds(1);
  node_.Start();
  node_.plugins.Serve(kNicName, 2);
  const std::string node = "  nodeName: node-1\n";
  const std::string objects = std::string(kClass) + Slice(1) +
                              DevicePod("holder", {{kNicName, 1}}, node);
  const std::string late = DevicePod("late", {{kNicName, 1}}, node);
  std::string pod = ClaimPod("p", "resourceClaimName: c", "example.com/nic: 2");
  node_.Publish(objects + Claim("c"));
  ASSERT_TRUE(node_.WaitFor("holder", PodState::kReady));
  node_.Publish(objects + Claim("c") + pod);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  std::atomic<bool> over{false};
  node_.RunAfter(std::chrono::milliseconds(10), [&] { over = true; });
  while (!over) node_.Sync();
  node_.Publish(objects + Claim("c") + pod + late);
  ASSERT_TRUE(node_.WaitForReason("late", "BehindInLine"));
  // Its claim is gone, and it is judged again.
  pod.insert(pod.find("name: p") + 7, ", labels: {a: b}");
  node_.Publish(objects + pod + late);
  ASSERT_TRUE(node_.WaitFor("late", PodState::kReady));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr("c"));
  EXPECT_EQ(node_.PodNamed("p").state, PodState::kWaiting);
}

/// That its claims are made and given back for it is no news of the pod.
TEST_F(LocalClaimsTest, APluginThatFailsIsNotAskedAgainAtOnce) {
  node_.options.retries.first = std::chrono::hours(1);
  node_.options.retries.last = std::chrono::hours(1);
  node_.Start();
  node_.plugins.Serve("example.com/nic", 1);
  node_.plugins.Answer(
      "example.com/nic",
      [](const auto&) -> absl::StatusOr<device::ContainerEdits> {
        return absl::InternalError("broken");
      });
  const std::string objects = std::string(kClass) + Slice(1) + kTemplate;
  node_.Publish(objects + ClaimPod("p", "resourceClaimTemplateName: t",
                                   "example.com/nic: 1"));
  ASSERT_TRUE(node_.WaitForReason("p", "FailedAllocateDevices"));
  ASSERT_TRUE(WaitUntilFree());
  // Another pod comes and goes meanwhile: nothing of it is for the first one.
  const std::string pods =
      ClaimPod("p", "resourceClaimTemplateName: t", "example.com/nic: 1");
  node_.Publish(objects + pods + GpuPod("q", 1));
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  node_.Publish(objects + pods);
  ASSERT_TRUE(node_.WaitUntilGone("q"));
  ASSERT_TRUE(WaitUntilFree());
  EXPECT_THAT(node_.plugins.calls(), SizeIs(1));
}

/// The reservation is on disk, and the pod waits for something else by then.
TEST_F(LocalClaimsTest, AReservationWhoseWriteFailedIsFreeAgain) {
  node_.options.retries.first = std::chrono::hours(1);
  node_.options.retries.last = std::chrono::hours(1);
  node_.Start();
  const auto pod = [](const std::string& name) {
    return DevicePod(name, {{"example.com/nic", 1}}, "  nodeName: node-1\n");
  };
  node_.Publish(pod("p"));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  // All that is written before the reservation is written.
  node_.plugins.Serve("example.com/nic", 0);
  ASSERT_TRUE(node_.WaitForReason("p", "NotEnoughDevices"));
  ASSERT_TRUE(node_.WaitUntil("the owner of the resource is on disk", [&] {
    return !node_.store.Load().resources.empty();
  }));
  node_.store.FailReopen(true);
  node_.store.FailNext(SharedStore::Failure::kWritten);
  node_.plugins.Report("example.com/nic", HealthyDevices(1));
  ASSERT_TRUE(node_.WaitUntil("the ledger is closed", [&] {
    return !node_.manager().View()->Node().ledger_error.empty();
  }));
  EXPECT_THAT(node_.store.Load().device_holders, SizeIs(1));
  node_.store.FailReopen(false);
  node_.Publish(pod("p") + pod("q"));
  EXPECT_TRUE(node_.WaitFor("q", PodState::kReady));
}

TEST_F(LocalClaimsTest, DevicesOfADriverThatIsNotThereAreNotGiven) {
  node_.drivers.Deregister(kDriver);
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(1) + GpuPod("p", 1));
  ASSERT_TRUE(node_.WaitForReason("p", "CannotAllocateClaims"));
  EXPECT_THAT(node_.PodNamed("p").message,
              HasSubstr("DRA driver d.example.com has published devices and is "
                        "not registered"));
  node_.drivers.Register(kDriver);
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

class SearchSink final : public RecordedMetrics {
 public:
  void OnSearchFigures(const SearchFigures& figures) override {
    Add(fmt::format("{} match", figures.evaluated.matches));
  }
  void OnQueueingHint(std::string_view plugin, std::string_view event,
                      bool queues, std::chrono::nanoseconds /*took*/) override {
    if (queues) Add(fmt::format("{} wakes {}", event, plugin));
  }
};

TEST_F(LocalClaimsTest, SearchesAndWhatEndsAWaitAreCounted) {
  SearchSink sink;
  node_.metrics = &sink;
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(1) + GpuPod("p", 2));
  ASSERT_TRUE(node_.WaitForReason("p", "CannotAllocateClaims"));
  EXPECT_THAT(sink.calls(), Contains("1 match"));
  node_.Publish(std::string(kClass) + Slice(2) + GpuPod("p", 2));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(sink.calls(), Contains("devices wakes DynamicResources"));
  EXPECT_THAT(sink.calls(), Contains("2 match"));
  node_.Stop();
}

TEST_F(LocalClaimsTest, SlicesAndClassesMayComeAfterThePod) {
  node_.Start();
  node_.Publish(GpuPod("p", 1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  node_.Publish(Slice(1) + GpuPod("p", 1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kWaiting));
  node_.Publish(Slice(1) + std::string(kClass) + GpuPod("p", 1));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

TEST_F(LocalClaimsTest, ADeviceThatIsPublishedLaterEndsTheWait) {
  node_.Start();
  node_.Publish(std::string(kClass) + Slice(1) + GpuPod("p", 2));
  ASSERT_TRUE(node_.WaitForReason("p", "CannotAllocateClaims"));
  node_.Publish(std::string(kClass) + Slice(2) + GpuPod("p", 2));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
}

TEST_F(LocalClaimsTest, PodsThatWentWhileTheNodeWasDownAreReleasedOnce) {
  const std::string objects = std::string(kClass) + Slice(2);
  node_.Start();
  node_.Publish(objects + GpuPod("a", 1) + GpuPod("b", 1));
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  node_.Stop();
  node_.Publish(objects + GpuPod("b", 1) + GpuPod("c", 1));
  node_.Start();
  ASSERT_TRUE(node_.WaitFor("c", PodState::kReady));
  ASSERT_TRUE(
      node_.WaitUntil("two claims", [&] { return Records().size() == 2; }));
  EXPECT_NE(Allocated("b"), Allocated("c"));
}

/// The pod waits, and has its turn when another one is gone or the quota is
/// raised.
TEST_F(LocalClaimsTest, AL086AQuotaIsNotExceeded) {
  const auto quota = [](const std::string& hard) {
    return "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: "
           "q}\nspec: {hard: {" +
           hard + "}}\n---\n";
  };
  const std::string objects = std::string(kClass) + Slice(4);
  const std::string two = quota("gpu.deviceclass.resource.k8s.io/devices: 2");
  node_.Start();
  node_.Publish(objects + two + GpuPod("a", 2));
  ASSERT_TRUE(node_.WaitFor("a", PodState::kReady));
  node_.Publish(objects + two + GpuPod("a", 2) + GpuPod("b", 1));
  ASSERT_TRUE(node_.WaitForReason("b", "ExceededQuota"));
  EXPECT_THAT(node_.PodNamed("b").message,
              HasSubstr("exceeded quota: q, requested: "
                        "gpu.deviceclass.resource.k8s.io/devices=1, used: "
                        "gpu.deviceclass.resource.k8s.io/devices=2, limited: "
                        "gpu.deviceclass.resource.k8s.io/devices=2"));
  const std::string three = quota("gpu.deviceclass.resource.k8s.io/devices: 3");
  node_.Publish(objects + three + GpuPod("a", 2) + GpuPod("b", 1));
  ASSERT_TRUE(node_.WaitFor("b", PodState::kReady));
  node_.Publish(objects + three + GpuPod("a", 2) + GpuPod("b", 1) +
                GpuPod("c", 1));
  ASSERT_TRUE(node_.WaitForReason("c", "ExceededQuota"));
  node_.Publish(objects + three + GpuPod("b", 1) + GpuPod("c", 1));
  ASSERT_TRUE(node_.WaitFor("c", PodState::kReady));
}

/// What is allocated is on disk, or is allocated again.
TEST_F(LocalClaimsTest, AWriteThatFailsLeavesNothingBehind) {
  for (const auto failure :
       {SharedStore::Failure::kLost, SharedStore::Failure::kWritten}) {
    node_.store.FailNext(failure);
    node_.Start();
    node_.Publish(std::string(kClass) + Slice(1) + GpuPod("p", 1));
    ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
    EXPECT_THAT(Records(), SizeIs(1));
    node_.Publish(std::string(kClass) + Slice(1));
    ASSERT_TRUE(node_.WaitUntilGone("p"));
    ASSERT_TRUE(WaitUntilFree());
    node_.Stop();
  }
}

/// Each choice is made as if those before it were on disk, whatever becomes of
/// them: no device goes to two pods, and no pod waits that could have one.
TEST_F(LocalClaimsTest, PodsThatComeTogetherAreGivenDevicesTogether) {
  constexpr int kDevices = 30;
  for (const auto failure :
       {SharedStore::Failure::kNone, SharedStore::Failure::kLost,
        SharedStore::Failure::kWritten}) {
    for (const int pods : {kDevices, kDevices + 10}) {
      node_.Start();
      node_.Publish(std::string(kClass) + Slice(kDevices));
      std::string all;
      for (int i = 0; i < pods; ++i) all += GpuPod(fmt::format("p{}", i), 1);
      node_.store.FailNext(failure);
      node_.Publish(std::string(kClass) + Slice(kDevices) + all);
      const auto count = [&](PodState state) {
        const auto shown = node_.manager().View()->Pods();
        return std::count_if(
            shown.begin(), shown.end(),
            [&](const PodInfo& pod) { return pod.state == state; });
      };
      ASSERT_TRUE(node_.WaitUntil("all are decided about", [&] {
        return count(PodState::kReady) == kDevices &&
               count(PodState::kWaiting) == pods - kDevices;
      }));
      std::vector<std::string> devices;
      for (int i = 0; i < pods; ++i) {
        const auto own = Allocated(fmt::format("p{}", i));
        devices.insert(devices.end(), own.begin(), own.end());
      }
      std::sort(devices.begin(), devices.end());
      EXPECT_THAT(devices, SizeIs(kDevices));
      EXPECT_EQ(std::unique(devices.begin(), devices.end()), devices.end());
      node_.Publish(std::string(kClass) + Slice(kDevices));
      ASSERT_TRUE(WaitUntilFree());
      node_.Stop();
    }
  }
}

/// A claim that somebody allocated by hand keeps its devices from others.
TEST_F(LocalClaimsTest, AllocationsOfFilesCount) {
  node_.Start();
  node_.Publish(
      std::string(kClass) + Slice(2) + GpuPod("p", 1) +
      "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: "
      "hand, uid: u-hand}\nspec: {devices: {requests: [{name: r, exactly: "
      "{deviceClassName: gpu}}]}}\nstatus: {allocation: {devices: {results: "
      "[{request: r, driver: d.example.com, pool: node-1, device: "
      "gpu-0}]}}}\n---\n");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Allocated("p"), ElementsAre("gpu-1"));
}

}  // namespace
}  // namespace devmgr
