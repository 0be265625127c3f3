// SPDX-License-Identifier: Apache-2.0
//
// What an embedder may do and may not: observers that come and go, calls from
// the manager's own thread, and pods that it wants.
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manager/manager_fixture.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// Calls `act` whenever a pod changes.
struct Acting : DeviceManagerObserver {
  explicit Acting(std::function<void(const PodInfo&)> on_pod)
      : act(std::move(on_pod)) {}
  void OnPod(const PodInfo& pod, bool) override { act(pod); }
  const std::function<void(const PodInfo&)> act;
};

Pod ClaimlessPod(const std::string& name) {
  Pod pod;
  pod.metadata.ns = "default";
  pod.metadata.name = name;
  pod.metadata.uid = "u-" + name;
  pod.spec.containers = {{"c", {}, ""}};
  return pod;
}

class EmbedderTest : public ManagerTest {
 protected:
  /// Changes pod `p`.
  void PrepareP() {
    ASSERT_THAT(node_.manager().AdmitPod(ClaimlessPod("p")), IsOk());
    ASSERT_THAT(node_.manager().PreparePod(PodUid{"u-p"}), IsOk());
    node_.Sync();
  }
};

TEST_F(EmbedderTest, AnObserverHearsUntilItsHandleIsGone) {
  node_.Start();
  std::atomic<int> heard = 0;
  Acting observer([&](const PodInfo&) { ++heard; });
  auto observation = node_.manager().Observe(observer);
  node_.Publish(PodYaml("p", "u-p", {}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Sync();
  EXPECT_GT(heard, 0);
  observation.reset();
  const int before = heard;
  node_.Publish("");
  ASSERT_TRUE(node_.WaitUntilGone("p"));
  node_.Sync();
  EXPECT_EQ(heard, before);
}

TEST_F(EmbedderTest, AHandleMayOutliveItsManager) {
  node_.Start();
  Acting observer([](const PodInfo&) {});
  const auto observation = node_.manager().Observe(observer);
  node_.Stop();
}

// The second observer is gone when the first returns: it hears nothing more.
TEST_F(EmbedderTest, AnObserverMayEndAnother) {
  node_.Start(/*with_actuator=*/false);
  std::unique_ptr<Observation> second_observation;
  int second_heard = 0;
  Acting first([&](const PodInfo&) { second_observation.reset(); });
  auto second =
      std::make_unique<Acting>([&](const PodInfo&) { ++second_heard; });
  const auto observation = node_.manager().Observe(first);
  second_observation = node_.manager().Observe(*second);
  PrepareP();
  EXPECT_EQ(second_heard, 0);
  EXPECT_EQ(second_observation, nullptr);
}

TEST_F(EmbedderTest, ObserversOfTheHostHearOfTheFirstChange) {
  node_.Start();
  node_.Publish(PodYaml("p", "u-p", {}));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Stop();
  std::vector<std::string> reasons;  // On the manager's thread.
  struct Listener : DeviceManagerObserver {
    explicit Listener(std::vector<std::string>& to) : all(to) {}
    void OnEvent(const EventInfo& event) override {
      all.push_back(event.reason);
    }
    std::vector<std::string>& all;
  } listener(reasons);
  node_.options.feature_gates["DynamicResourceAllocation"] = false;
  node_.observers = {&listener};
  node_.Start();
  node_.RunAndWait(
      [&] { EXPECT_THAT(reasons, Contains("FeatureGatesAgainstLock")); });
  node_.Stop();
}

// It would wait for its own thread. Every method that waits, each in an
// observer and in a completion.
TEST_F(EmbedderTest, ACallThatWaitsIsRefusedOnTheManagersThread) {
  node_.Start(/*with_actuator=*/false);
  std::vector<absl::Status> refused;
  const auto call_all = [&] {
    DeviceManager& manager = node_.manager();
    Maintenance& maintenance = manager.maintenance();
    const PodUid uid{"u-p"};
    refused = {manager.AdmitPod(ClaimlessPod("q")).status(),
               manager.PreparePod(uid),
               manager.UnpreparePod(uid),
               manager.ReleasePod(uid),
               manager.EndPod(uid),
               manager.BeforeContainerStart(uid, "c"),
               manager.ReleaseInitContainers(uid),
               maintenance.ForceReleaseClaim({"default", "c"}, "why"),
               maintenance.HandOverResource("example.com/gpu",
                                            ResourceOwner::kAutomatic, "why"),
               maintenance.ConfirmSource("why"),
               maintenance.FreeHolder("id", "why"),
               maintenance.Fsck(FsckMode::kRepair).status()};
  };
  Acting observer([&](const PodInfo&) { call_all(); });
  auto observation = node_.manager().Observe(observer);
  PrepareP();
  ASSERT_EQ(refused.size(), 12u);
  for (const absl::Status& status : refused) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(MessageOf(refused[0]), HasSubstr("own thread"));
  observation.reset();
  refused.clear();
  std::promise<void> done;
  node_.manager().StartReleasePod(PodUid{"u-p"}, [&](const absl::Status&) {
    call_all();
    done.set_value();
  });
  done.get_future().get();
  for (const absl::Status& status : refused) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_EQ(refused.size(), 12u);
}

// As a metrics collector, an observer or a completion may look at all of it.
TEST_F(EmbedderTest, ViewsAnswerOnTheManagersThread) {
  node_.Start(/*with_actuator=*/false);
  std::optional<std::size_t> pods;
  Acting observer(
      [&](const PodInfo&) { pods = node_.manager().View()->Pods().size(); });
  const auto observation = node_.manager().Observe(observer);
  PrepareP();
  EXPECT_EQ(pods, 1u);
}

TEST_F(EmbedderTest, WantedPodsAreDrivenAndStayWantedOverARestart) {
  node_.options.actuate = Actuate::kWanted;
  node_.Start();
  EXPECT_EQ(node_.manager().View()->Node().actuate, Actuate::kWanted);
  ASSERT_THAT(node_.manager().WantPod(ClaimlessPod("p")), IsOk());
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.Publish(PodYaml("q", "u-q", {}));
  node_.Restart();
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
  EXPECT_EQ(node_.PodNamed("q").uid.value, "") << "it is the source's only";
  ASSERT_THAT(node_.manager().UnwantPod(PodUid{"u-p"}), IsOk());
  EXPECT_TRUE(node_.WaitUntilGone("p"));
  EXPECT_THAT(node_.manager().UnwantPod(PodUid{"u-p"}), IsOk()) << "again";
}

TEST_F(EmbedderTest, PodsCannotBeWantedOfAManagerThatTakesNone) {
  for (const bool follows : {true, false}) {
    node_.Start(follows);
    const std::string why = follows ? "kSource" : "kNone";
    EXPECT_THAT(
        node_.manager().WantPod(ClaimlessPod("p")),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why)));
    EXPECT_THAT(
        node_.manager().UnwantPod(PodUid{"u-p"}),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(why)));
    node_.Stop();
  }
}

TEST_F(EmbedderTest, APodWithoutUidCannotBeWanted) {
  node_.options.actuate = Actuate::kWanted;
  node_.Start();
  Pod pod = ClaimlessPod("p");
  pod.metadata.uid.clear();
  EXPECT_THAT(
      node_.manager().WantPod(pod),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("default/p")));
}

}  // namespace
}  // namespace devmgr
