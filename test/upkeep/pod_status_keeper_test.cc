// SPDX-License-Identifier: Apache-2.0
#include "upkeep/pod_status_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace devmgr::upkeep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kDeletedAt[] = "2026-01-01T00:00:00Z";

class PodSink : public ObjectSink {
 public:
  void DeleteResourceSlices(const std::string&,
                            std::function<void(absl::Status)>) override {}
  bool IsNodeAgent() const override { return is_agent; }
  void SetPodStatus(const ObjectName& name, const PodUid& uid,
                    const ReportedPodStatus& status) override {
    set.push_back(name.ToString() + " " + uid.value + " " + status.phase);
    last = status;
  }
  void FinishPod(const ObjectName& name, const PodUid& uid) override {
    set.push_back(name.ToString() + " " + uid.value + " over");
  }
  bool is_agent = true;
  std::vector<std::string> set;
  ReportedPodStatus last;
};

class FakeRuntime : public RuntimeSource {
 public:
  std::shared_ptr<const RuntimeSnapshot> Snapshot() const override {
    return snapshot;
  }
  void Subscribe(std::function<void()>) override {}
  void Unsubscribe() override {}
  std::string Describe() const override { return "a fake"; }
  std::shared_ptr<const RuntimeSnapshot> snapshot =
      std::make_shared<RuntimeSnapshot>();
};

class PodStatusKeeperTest : public ::testing::Test {
 protected:
  void Start(bool has_runtime = true) {
    PodStatusKeeper::Parts parts{executor_, events_, &sink_};
    parts.runtime = has_runtime ? &runtime_ : nullptr;
    parts.node_name = "n1";
    parts.objects = [this] {
      return std::make_shared<const ObjectSnapshot>(objects_);
    };
    parts.pod_info = [this](const PodUid& uid) -> std::optional<PodInfo> {
      const auto found = infos_.find(uid.value);
      if (found == infos_.end()) return std::nullopt;
      return found->second;
    };
    parts.now = [] { return WallTime(std::chrono::seconds(1'700'000'000)); };
    keeper_.emplace(std::move(parts));
    keeper_->Start();
    Pass();
  }
  void Pass() { executor_.Advance(PodStatusKeeper::kPause); }
  std::vector<std::string> Set() {
    Pass();
    return std::exchange(sink_.set, {});
  }
  /// The source has the pod `ns/NAME` with the UID `u-NAME`.
  void PutPod(const std::string& name, const std::string& phase = "Pending",
              const std::string& deleted_at = "") {
    Pod pod;
    pod.metadata.ns = "ns";
    pod.metadata.name = name;
    pod.metadata.uid = "u-" + name;
    pod.metadata.deletion_timestamp = deleted_at;
    pod.status.phase = phase;
    pod.spec.containers.resize(1);
    pod.spec.containers[0].name = "c";
    objects_.pods.insert_or_assign({"ns", name},
                                   std::make_shared<const Pod>(std::move(pod)));
    objects_.complete = true;
  }
  void PutInfo(const std::string& name, PodState state = PodState::kReady) {
    PodInfo info;
    info.name = {"ns", name};
    info.uid = PodUid{"u-" + name};
    info.state = state;
    info.reason = state == PodState::kRejected ? "NoDevices" : "";
    infos_["u-" + name] = info;
  }
  /// The runtime runs the container of these pods.
  void Run(const std::vector<std::string>& names,
           RuntimeContainer::State state = RuntimeContainer::State::kRunning) {
    auto snapshot = std::make_shared<RuntimeSnapshot>();
    snapshot->known = true;
    for (const std::string& name : names) {
      PodRun run;
      run.containers.resize(1);
      run.containers[0].name = "c";
      run.containers[0].state = state;
      snapshot->pods[PodUid{"u-" + name}] =
          std::make_shared<const PodRun>(std::move(run));
    }
    runtime_.snapshot = std::move(snapshot);
    if (keeper_) keeper_->OnRuntime();
  }

  ManualExecutor executor_;
  std::vector<std::string> heard_;
  events::EventLog events_{
      executor_, 100, [] { return WallTime(); },
      [this](const EventInfo& event) {
        heard_.push_back(event.reason + " " + event.object.ToString());
      }};
  PodSink sink_;
  FakeRuntime runtime_;
  ObjectSnapshot objects_;
  std::map<std::string, PodInfo> infos_;  ///< By UID.
  std::optional<PodStatusKeeper> keeper_;
};

TEST_F(PodStatusKeeperTest, SetsTheStatusAsTheRuntimeSays) {
  PutPod("a");
  PutInfo("a");
  Run({});
  Start();
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Pending"));
  Run({"a"});
  EXPECT_THAT(sink_.set, IsEmpty()) << "not at once";
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Running"));
  EXPECT_THAT(heard_, IsEmpty());
}

TEST_F(PodStatusKeeperTest, SetsWhatIsTheSameOnlyOnce) {
  PutPod("a");
  PutPod("b");
  PutInfo("a");
  PutInfo("b");
  Run({"a", "b"});
  Start();
  EXPECT_THAT(Set(), SizeIs(2));
  Run({"a", "b"});
  PutPod("a", "Running");
  keeper_->OnObjects();
  keeper_->OnPods({PodUid{"u-a"}, PodUid{"u-b"}, PodUid{"u-c"}});
  EXPECT_THAT(Set(), IsEmpty());
}

TEST_F(PodStatusKeeperTest, NothingIsSetWhileTheRuntimeIsNotKnown) {
  PutPod("a");
  PutInfo("a");
  Start();
  EXPECT_THAT(Set(), IsEmpty());
  Run({"a"});
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Running"));
  runtime_.snapshot = std::make_shared<RuntimeSnapshot>();
  keeper_->OnRuntime();
  EXPECT_THAT(Set(), IsEmpty()) << "the last one stays";
  Run({"a"});
  EXPECT_THAT(Set(), IsEmpty());
}

TEST_F(PodStatusKeeperTest, FollowsTheHealthOfDevices) {
  PutPod("a");
  PutInfo("a");
  Run({"a"});
  Start();
  EXPECT_THAT(Set(), SizeIs(1));
  infos_["u-a"].allocated_resources = {
      {"c", {{"v.com/gpu", {{"gpu-1", DeviceHealth::kUnhealthy, "", {}}}}}}};
  keeper_->OnPods({PodUid{"u-a"}});
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Running"));
  ASSERT_THAT(sink_.last.containers[0].allocated_resources, SizeIs(1));
}

TEST_F(PodStatusKeeperTest, ARejectedPodFailsAlsoWithoutARuntime) {
  PutPod("a");
  PutInfo("a", PodState::kRejected);
  PutPod("b");
  PutInfo("b");
  Start(/*has_runtime=*/false);
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Failed"));
  EXPECT_EQ(sink_.last.reason, "NoDevices");
  EXPECT_THAT(heard_, ElementsAre("RuntimeNotConfigured n1"));
}

TEST_F(PodStatusKeeperTest, APodThatIsToFailFailsWhenNothingOfItRuns) {
  PutPod("a");
  PutInfo("a");
  Run({"a"});
  Start();
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Running"));
  keeper_->OnAction({PodAction::Kind::kFail,
                     PodUid{"u-a"},
                     {"ns", "a"},
                     "DeviceUnhealthy",
                     "hot"});
  EXPECT_THAT(Set(), IsEmpty());
  Run({"a"}, RuntimeContainer::State::kExited);
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Failed"));
  EXPECT_EQ(sink_.last.reason, "DeviceUnhealthy");
}

TEST_F(PodStatusKeeperTest, APodIsOverWhenItIsStoppedSaidAndReleased) {
  PutPod("a", "Running", kDeletedAt);
  PutInfo("a");
  Run({"a"});
  Start();
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Running"));
  Run({"a"}, RuntimeContainer::State::kExited);
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a Succeeded"));
  PutPod("a", "Succeeded", kDeletedAt);
  keeper_->OnObjects();
  EXPECT_THAT(Set(), IsEmpty()) << "it holds devices";
  infos_.clear();
  keeper_->OnPods({PodUid{"u-a"}});
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a over"));
  keeper_->OnPods({PodUid{"u-a"}});
  EXPECT_THAT(Set(), IsEmpty()) << "once";
}

TEST_F(PodStatusKeeperTest, APodThatEndedWhileNothingRanHereIsOver) {
  PutPod("a", "Failed", kDeletedAt);
  Start();
  EXPECT_THAT(Set(), IsEmpty()) << "what runs is not known";
  Run({});
  EXPECT_THAT(Set(), ElementsAre("ns/a u-a over"));
}

TEST_F(PodStatusKeeperTest, AnotherPodOfTheNameIsAnother) {
  PutPod("a");
  PutInfo("a");
  Run({"a"});
  Start();
  EXPECT_THAT(Set(), SizeIs(1));
  Pod pod = *objects_.pods.at(ObjectName{"ns", "a"});
  pod.metadata.uid = "u-b";
  objects_.pods.insert_or_assign({"ns", "a"}, std::make_shared<const Pod>(pod));
  PutInfo("b");
  keeper_->OnObjects();
  EXPECT_THAT(Set(), ElementsAre("ns/a u-b Pending"));
}

// What it was said of stays known, so that nothing is said twice.
TEST_F(PodStatusKeeperTest, APodStaysKnownWhileItsManifestIsMended) {
  PutPod("a");
  PutInfo("a");
  Run({"a"});
  Start();
  EXPECT_THAT(Set(), SizeIs(1));
  MalformedPod malformed;
  malformed.pod = *objects_.pods.at(ObjectName{"ns", "a"});
  objects_.pods.clear();
  objects_.malformed_pods.insert_or_assign(
      {"ns", "a"}, std::make_shared<const MalformedPod>(malformed));
  keeper_->OnObjects();
  objects_.malformed_pods.clear();
  PutPod("a");
  keeper_->OnObjects();
  EXPECT_THAT(Set(), IsEmpty());
}

TEST_F(PodStatusKeeperTest, AnIncompleteSourceForgetsNothing) {
  PutPod("a");
  PutPod("b");
  PutInfo("a");
  PutInfo("b");
  Run({"a", "b"});
  Start();
  EXPECT_THAT(Set(), SizeIs(2));
  objects_.complete = false;
  objects_.pods.clear();
  keeper_->OnObjects();
  PutPod("a");
  objects_.complete = false;
  keeper_->OnObjects();
  EXPECT_THAT(Set(), IsEmpty());
  // Now it is complete, and `b` is gone; when that comes back it is a new one.
  objects_.complete = true;
  keeper_->OnObjects();
  PutPod("b");
  keeper_->OnObjects();
  EXPECT_THAT(Set(), ElementsAre("ns/b u-b Running"));
}

TEST_F(PodStatusKeeperTest, NothingIsDoneWhereThisIsNotTheAgent) {
  sink_.is_agent = false;
  PutPod("a");
  PutInfo("a", PodState::kRejected);
  Run({"a"});
  Start(/*has_runtime=*/false);
  keeper_->OnObjects();
  keeper_->OnPods({PodUid{"u-a"}});
  EXPECT_THAT(Set(), IsEmpty());
  EXPECT_THAT(heard_, IsEmpty());
}

}  // namespace
}  // namespace devmgr::upkeep
