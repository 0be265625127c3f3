// SPDX-License-Identifier: Apache-2.0
//
// A node that allocates claims itself: a pod that wants claims and devices of
// plugins gets both in one batch, or neither.
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <utility>

#include "manager/device_fixture.h"
#include "manager/driver_names.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kGpuObjects[] =
    "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: "
    "gpu}\nspec: {extendedResourceName: example.com/gpu, selectors: [{cel: "
    "{expression: 'device.driver == \"d.example.com\"'}}]}\n---\n"
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: "
    "{name: t}\nspec: {spec: {devices: {requests: [{name: r, exactly: "
    "{deviceClassName: gpu}}]}}}\n---\n";

std::string SliceOfGpus(int devices) {
  std::string text =
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: "
      "s}\nspec:\n  driver: d.example.com\n  nodeName: node-1\n  pool: {name: "
      "node-1, generation: 1, resourceSliceCount: 1}\n  devices: [";
  for (int i = 0; i < devices; ++i) text += fmt::format("{{name: d-{}}}, ", i);
  return text + "]\n---\n";
}

/// A claim of the template, one device of the class by the resource, and one of
/// the plugin.
std::string BothPod(const std::string& name) {
  return fmt::format(
      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, uid: u-{0}}}\nspec:\n"
      "  nodeName: node-1\n"
      "  resourceClaims: [{{name: own, resourceClaimTemplateName: t}}]\n"
      "  containers: [{{name: c, resources: {{claims: [{{name: own}}], limits: "
      "{{example.com/gpu: 1, example.com/nic: 1}}}}}}]\n---\n",
      name);
}

/// The write of this number fails, and is on disk or not; and so do all that
/// follow, if the node has died of it.
struct DiskOutage {
  std::atomic<int> write{0};  ///< 0: none.
  std::atomic<bool> is_kept{false};
  std::atomic<bool> is_fatal{false};
  std::atomic<int> count{0};

  bool IsOver() const { return is_fatal && write > 0 && count >= write; }
};

class StoreWithOutage final : public checkpoint::LedgerStore {
 public:
  StoreWithOutage(std::unique_ptr<checkpoint::LedgerStore> store,
                  DiskOutage& outage)
      : store_(std::move(store)), outage_(outage) {}

  absl::StatusOr<state::State> Load() override { return store_->Load(); }
  absl::Status Append(std::span<const state::Batch> batches) override {
    const bool was_over = outage_.IsOver();
    const bool fails = was_over || ++outage_.count == outage_.write;
    if (!fails) return store_->Append(batches);
    if (!was_over && outage_.is_kept) {
      DEVMGR_RETURN_IF_ERROR(store_->Append(batches));
    }
    return UnavailableError("input/output error");
  }
  absl::StatusOr<state::State> Reopen() override {
    if (outage_.IsOver()) return UnavailableError("the disk is gone");
    return store_->Load();
  }
  absl::StatusOr<std::vector<state::Batch>> History(std::uint64_t after,
                                                    std::size_t most) override {
    return store_->History(after, most);
  }

 private:
  const std::unique_ptr<checkpoint::LedgerStore> store_;
  DiskOutage& outage_;
};

class WholePodTest : public DeviceNodeTest {
 protected:
  WholePodTest() {
    node_.options.node_name = "node-1";
    node_.drivers.Register(kDriver);
  }

  void StartWith(int nics, plugin::PluginOptions options = {}) {
    node_.Start();
    node_.plugins.Serve(kNic, nics, options);
  }

  std::vector<DecisionInfo> DecisionsAbout(const std::string& pod) {
    std::vector<DecisionInfo> about;
    const auto history = node_.manager().maintenance().History(0);
    for (const DecisionInfo& decision : *history) {
      if (decision.pods == std::vector<std::string>{"default/" + pod}) {
        about.push_back(decision);
      }
    }
    return about;
  }
  std::vector<OpenDecisionKind> KindsAbout(const std::string& pod) {
    std::vector<OpenDecisionKind> kinds;
    for (const auto& decision : DecisionsAbout(pod)) {
      kinds.push_back(decision.kind);
    }
    return kinds;
  }
  std::size_t Claims() { return node_.store.Load().local_claims.size(); }
};

TEST_F(WholePodTest, ClaimsAndDevicesOfPluginsAreOneBatch) {
  StartWith(1);
  node_.Publish(kGpuObjects + SliceOfGpus(2) + BothPod("p"));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(
      KindsAbout("p"),
      ElementsAre(DecisionKind::kReserve, DecisionKind::kAllocated,
                  DecisionKind::kPrepareIntent, DecisionKind::kPrepareResult));
  EXPECT_THAT(DecisionsAbout("p")[0].claims, SizeIs(2));
  EXPECT_EQ(Claims(), 2u);
  EXPECT_THAT(Held("p", kNic), SizeIs(1));
  EXPECT_THAT(node_.Resolve("p", "c"), SizeIs(3));
  EXPECT_THAT(MessagesOf("ClaimsAllocated"), SizeIs(1));
  node_.Publish(kGpuObjects + SliceOfGpus(2));
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  ASSERT_TRUE(node_.WaitUntil("no claims", [&] { return Claims() == 0; }));
}

TEST_F(WholePodTest, WithoutTheDeviceOfThePluginNoClaimIsEverWritten) {
  StartWith(0);
  node_.Publish(kGpuObjects + SliceOfGpus(2) + BothPod("p"));
  ASSERT_TRUE(node_.WaitForReason("p", "NotEnoughDevices"));
  EXPECT_THAT(node_.PodNamed("p").message, HasSubstr(kNic));
  EXPECT_EQ(Claims(), 0u);
  EXPECT_THAT(KindsAbout("p"), ElementsAre(DecisionKind::kSeen));
  node_.plugins.Report(kNic, HealthyDevices(1));
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

TEST_F(WholePodTest, WithoutTheClaimNoDeviceOfThePluginIsEverReserved) {
  StartWith(1);
  node_.Publish(kGpuObjects + SliceOfGpus(1) + BothPod("p"));
  ASSERT_TRUE(node_.WaitForReason("p", "CannotAllocateClaims"));
  EXPECT_THAT(Held("p", kNic), IsEmpty());
  EXPECT_THAT(KindsAbout("p"), ElementsAre(DecisionKind::kSeen));
  EXPECT_THAT(node_.plugins.calls(), IsEmpty());
  node_.Publish(kGpuObjects + SliceOfGpus(2) + BothPod("p"));
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
}

/// One of them gets the only device of the plugin, whichever claims there are
/// for the other ones.
TEST_F(WholePodTest, PodsThatComeTogetherTakeNothingFromEachOther) {
  constexpr int kPods = 8;
  StartWith(kPods / 2);
  std::string pods;
  for (int i = 0; i < kPods; ++i) pods += BothPod(fmt::format("p{}", i));
  node_.Publish(kGpuObjects + SliceOfGpus(2 * kPods) + pods);
  const auto count = [&](PodState state) {
    int pods_in_state = 0;
    for (const PodInfo& pod : node_.manager().View()->Pods()) {
      if (pod.state == state) ++pods_in_state;
    }
    return pods_in_state;
  };
  ASSERT_TRUE(node_.WaitUntil("all are decided about", [&] {
    return count(PodState::kReady) == kPods / 2 &&
           count(PodState::kWaiting) == kPods / 2;
  }));
  EXPECT_EQ(Claims(), static_cast<std::size_t>(kPods));
}

/// The plugin's preference is awaited, and another pod has the claims by then.
TEST_F(WholePodTest, AClaimThatIsGoneMeanwhileIsWaitedFor) {
  plugin::PluginOptions options;
  options.preferred_allocation = true;
  node_.plugins.AnswerPreferred(
      kNic,
      [](const plugin::PreferredRequest& request)
          -> absl::StatusOr<std::vector<DeviceId>> {
        return std::vector<DeviceId>{request.available.back()};
      });
  StartWith(4, options);
  node_.plugins.Hold(kNic);
  node_.Publish(kGpuObjects + SliceOfGpus(2) + BothPod("p"));
  ASSERT_TRUE(node_.plugins.WaitForCalls(1));
  const std::string other = DevicePod("q", {{kGpu, 1}}, "  nodeName: node-1\n");
  node_.Publish(kGpuObjects + SliceOfGpus(2) + BothPod("p") + other);
  ASSERT_TRUE(node_.WaitFor("q", PodState::kReady));
  node_.plugins.Let(kNic);
  ASSERT_TRUE(node_.WaitForReason("p", "CannotAllocateClaims"));
  EXPECT_EQ(Claims(), 1u);
  EXPECT_THAT(Held("p", kNic), IsEmpty());
  node_.Publish(kGpuObjects + SliceOfGpus(2) + BothPod("p"));
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_THAT(Held("p", kNic), ElementsAre("3"));
}

/// At each write from the pod's file to its answer: the disk fails, with what
/// was written kept or lost, and the node goes on or dies.
TEST_F(WholePodTest, AnOutageAtAnyWriteLeavesBothOrNeither) {
  constexpr int kMostWrites = 8;
  DiskOutage outage;
  node_.open_store = [&] {
    return std::make_unique<StoreWithOutage>(node_.store.Open(), outage);
  };
  for (int mode = 0; mode < 4; ++mode) {
    outage.is_kept = (mode & 1) != 0;
    outage.is_fatal = (mode & 2) != 0;
    for (int write = 1; write <= kMostWrites; ++write) {
      SCOPED_TRACE(fmt::format("mode {} write {}", mode, write));
      StartWith(1);
      node_.Publish(kGpuObjects + SliceOfGpus(2));
      node_.Sync();
      outage.count = 0;
      outage.write = write;
      node_.Publish(kGpuObjects + SliceOfGpus(2) + BothPod("p"));
      ASSERT_TRUE(node_.WaitUntil("an end", [&] {
        return node_.PodNamed("p").state == PodState::kReady ||
               !node_.manager().View()->Node().ledger_error.empty();
      }));
      if (outage.IsOver()) {
        node_.Stop();
        EXPECT_THAT(state::CheckInvariants(node_.store.Load()), IsEmpty());
        EXPECT_EQ(Claims() == 2, Held("p", kNic).size() == 1);
        EXPECT_TRUE(Claims() == 0 || Claims() == 2);
        outage.write = 0;
        StartWith(1);
      }
      ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
      EXPECT_EQ(Claims(), 2u);
      EXPECT_THAT(Held("p", kNic), SizeIs(1));
      outage.write = 0;
      node_.Publish(kGpuObjects + SliceOfGpus(2));
      ASSERT_TRUE(node_.WaitUntilGone("p"));
      ASSERT_TRUE(node_.WaitUntil("no claims", [&] { return Claims() == 0; }));
      node_.Stop();
    }
  }
}

}  // namespace
}  // namespace devmgr
