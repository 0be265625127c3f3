// SPDX-License-Identifier: Apache-2.0
#include "shim/sandbox_actuator.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "support/fake_device_manager.h"
#include "support/status_matchers.h"

namespace devmgr::shim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::chrono::seconds kUnknown{2};
constexpr std::chrono::seconds kReady{60};

/// One on a clock that the test moves. Calls have small numbers.
class SandboxActuatorTest : public ::testing::Test {
 protected:
  void Start(bool pods_from_source = true) {
    gate_ = std::make_unique<SandboxActuator>(manager_, book_, pods_from_source,
                                              executor_);
    gate_->OnLook();
  }

  static cri::SandboxIdentity Identity(const std::string& uid,
                                       std::uint32_t attempt = 0) {
    return {{uid}, {"ns", uid}, attempt};
  }

  /// What the source has from now on; a phase for each, by UID.
  void Source(const std::map<std::string, std::string>& phases,
              bool complete = true) {
    auto objects = std::make_shared<ObjectSnapshot>();
    objects->complete = complete;
    for (const auto& [uid, phase] : phases) {
      auto pod = std::make_shared<Pod>();
      pod->metadata.ns = "ns";
      pod->metadata.name = uid;
      pod->metadata.uid = uid;
      pod->status.phase = phase;
      objects->pods.insert_or_assign({"ns", uid}, pod);
    }
    Publish(objects);
  }
  void Publish(std::shared_ptr<const ObjectSnapshot> objects) {
    manager_.Set([&](auto& world) { world.objects = objects; });
    manager_.RemovePod({"nobody"});  // tells observers
    executor_->RunPending();
  }

  void State(const std::string& uid, PodState state,
             const std::string& reason = "") {
    PodInfo pod;
    pod.uid = {uid};
    pod.name = {"ns", uid};
    pod.state = state;
    pod.reason = reason;
    manager_.ChangePod(pod);
    executor_->RunPending();
  }

  void Run(std::uint64_t call, const std::string& uid) {
    const auto now = executor_->Now();
    gate_->Admit(
        call, Identity(uid), {now + kUnknown, now + kReady},
        [this](const absl::Status& status) { answers_.push_back(status); });
  }
  void SandboxRuns(const std::string& id, const std::string& uid,
                   std::uint32_t attempt = 0) {
    book_.AddSandbox(id, Identity(uid, attempt));
  }
  /// As Shim does it.
  void SandboxGoes(const std::string& id) {
    const auto last = book_.RemoveSandbox(id);
    if (!last.uid.value.empty()) gate_->OnLastSandboxGone(last.uid);
  }
  /// One that is Ready and has run.
  void HasRun(const std::string& id, const std::string& uid) {
    State(uid, PodState::kReady);
    Run(1, uid);
    SandboxRuns(id, uid);
    gate_->OnCallOver(1);
    ASSERT_THAT(manager_.unwanted(), IsEmpty());
  }

  /// Nobody remembers the pod.
  void StartOver(const std::string& uid) {
    gate_.reset();
    manager_.Set([](FakeDeviceManager::World& world) {
      world.wanted.clear();
      world.unwanted.clear();
    });
    manager_.RemovePod({uid});
  }

  FakeDeviceManager manager_;
  PodBook book_;
  const std::shared_ptr<ManualExecutor> executor_ =
      std::make_shared<ManualExecutor>();
  std::unique_ptr<SandboxActuator> gate_;
  std::vector<absl::Status> answers_;
};

TEST_F(SandboxActuatorTest, AnswersWhenThePodIsReady) {
  Start();
  Source({{"u", "Pending"}});
  Run(1, "u");
  EXPECT_THAT(manager_.wanted(), ElementsAre("ns/u"));
  State("u", PodState::kPreparing);
  EXPECT_THAT(answers_, IsEmpty());
  State("u", PodState::kReady);
  EXPECT_THAT(answers_, ElementsAre(IsOk()));
  EXPECT_EQ(executor_->timers(), 0U);
  State("u", PodState::kPreparing);
  EXPECT_THAT(answers_, SizeIs(1)) << "once";
}

// BO-101: what it would get may be in use by a sandbox that nobody knows of.
TEST_F(SandboxActuatorTest, WantsNothingNewWhileInDoubt) {
  Start();
  gate_->OnDoubt();
  Source({{"u", "Pending"}, {"v", "Pending"}});
  Run(1, "u");
  State("v", PodState::kReady);
  Run(2, "v");
  EXPECT_THAT(manager_.wanted(), IsEmpty());
  EXPECT_THAT(answers_, ElementsAre(IsOk())) << "v has what it gets";
  gate_->OnLook();
  EXPECT_THAT(manager_.wanted(), ElementsAre("ns/u"));
  State("u", PodState::kReady);
  EXPECT_THAT(answers_, ElementsAre(IsOk(), IsOk()));
  EXPECT_EQ(executor_->timers(), 0U);
}

TEST_F(SandboxActuatorTest, SaysThatItWaitsForTheRuntime) {
  Start();
  gate_->OnDoubt();
  Source({{"u", "Pending"}});
  Run(1, "u");
  gate_->OnLookFailed(absl::UnavailableError("no runtime"));
  Run(2, "u");
  executor_->Advance(kReady);
  EXPECT_THAT(
      answers_,
      ElementsAre(
          StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no runtime")),
          StatusIs(absl::StatusCode::kUnavailable, HasSubstr("what it runs"))));
  EXPECT_THAT(manager_.wanted(), IsEmpty());
}

TEST_F(SandboxActuatorTest, GivesUpInTime) {
  Start();
  Source({{"u", ""}});
  Run(1, "u");
  State("u", PodState::kWaiting, "PluginMissing");
  Run(2, "nobody knows");
  executor_->Advance(kUnknown);
  EXPECT_THAT(answers_, ElementsAre(StatusIs(absl::StatusCode::kNotFound)));
  executor_->Advance(kReady);
  EXPECT_THAT(answers_.back(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr("PluginMissing")));
  gate_->OnCallOver(1);
  EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "it keeps its place";
}

TEST_F(SandboxActuatorTest, AnswersNobodyWhoHasGone) {
  Start();
  Source({{"u", ""}});
  Run(1, "u");
  gate_->OnCallOver(1);
  State("u", PodState::kReady);
  executor_->Advance(kReady);
  EXPECT_THAT(answers_, IsEmpty());
  EXPECT_EQ(executor_->timers(), 0U);
}

// A claim that is made from a template is named in the pod's status later.
TEST_F(SandboxActuatorTest, WantsThePodAgainWhenTheSourceChangesIt) {
  Start();
  Source({{"u", ""}});
  Run(1, "u");
  State("u", PodState::kWaiting);
  EXPECT_THAT(manager_.wanted(), SizeIs(1));
  Source({{"u", "Pending"}});
  EXPECT_THAT(manager_.wanted(), SizeIs(2));
  State("u", PodState::kWaiting);
  EXPECT_THAT(manager_.wanted(), SizeIs(2));
}

TEST_F(SandboxActuatorTest, RefusesPodsThatWillNotRun) {
  Start();
  auto objects = std::make_shared<ObjectSnapshot>();
  auto malformed = std::make_shared<MalformedPod>();
  malformed->pod.metadata.uid = "m";
  objects->malformed_pods.insert_or_assign({"ns", "m"}, malformed);
  Publish(objects);
  Run(1, "m");
  Source({{"over", "Failed"}});
  State("over", PodState::kReady);
  Run(2, "over");
  State("no", PodState::kRejected, "OutOfDevices");
  Run(3, "no");
  ASSERT_THAT(answers_, SizeIs(3));
  const char* why[] = {"malformed", "has finished: Failed", "OutOfDevices"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(answers_[i], StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr(why[i])));
  }
  EXPECT_THAT(manager_.wanted(), IsEmpty());
}

TEST_F(SandboxActuatorTest, ReleasesWhatNeitherRuntimeNorSourceHas) {
  Start();
  Source({{"u", "Running"}});
  HasRun("s", "u");
  Source({});
  EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "its sandbox is there";
  SandboxGoes("s");
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u"));
}

TEST_F(SandboxActuatorTest, ReleasesWhatTheSourceDropsLater) {
  Start();
  Source({{"u", "Running"}});
  HasRun("s", "u");
  SandboxGoes("s");
  Source({{"u", "Running"}, {"another", ""}});
  Source({}, /*complete=*/false);
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
  Source({});
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u"));
  Source({{"another", ""}});
  EXPECT_THAT(manager_.unwanted(), SizeIs(1)) << "once";
}

TEST_F(SandboxActuatorTest, ReleasesWhatTheSourceCallsTerminal) {
  for (const char* phase : {"Succeeded", "Failed"}) {
    const std::string uid = phase;
    Start();
    Source({{uid, "Running"}});
    HasRun("s", uid);
    // An incomplete snapshot has seen this pod, too.
    Source({{uid, phase}}, /*complete=*/false);
    EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "its sandbox is there";
    SandboxGoes("s");
    EXPECT_THAT(manager_.unwanted(), ElementsAre(uid));
    StartOver(uid);
  }
  Start();
  Source({{"u", "Running"}});
  HasRun("s", "u");
  SandboxGoes("s");
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
  Source({{"u", "Succeeded"}});
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u"));
}

TEST_F(SandboxActuatorTest, ReleasesAPodWhoseNameIsAnothers) {
  Start();
  Source({{"u", "Running"}});
  HasRun("s", "u");
  SandboxGoes("s");
  auto objects = std::make_shared<ObjectSnapshot>();
  auto newer = std::make_shared<Pod>();
  newer->metadata.uid = "newer";
  objects->pods.insert_or_assign({"ns", "u"}, newer);
  Publish(objects);
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u"));
}

TEST_F(SandboxActuatorTest, KeepsAPodWhoseManifestTurnsBad) {
  Start();
  Source({{"u", "Running"}});
  HasRun("s", "u");
  auto objects = std::make_shared<ObjectSnapshot>();
  objects->complete = true;
  auto malformed = std::make_shared<MalformedPod>();
  malformed->pod.metadata.uid = "u";
  objects->malformed_pods.insert_or_assign({"ns", "u"}, malformed);
  Publish(objects);
  SandboxGoes("s");
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
}

TEST_F(SandboxActuatorTest, ReleasesAPodThatNeverCameToRun) {
  Start();
  Source({{"u", ""}});
  Run(1, "u");
  Source({});
  EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "somebody runs it";
  gate_->OnCallOver(1);
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u"));
}

TEST_F(SandboxActuatorTest, AnOldSandboxSaysNothingOfANewerAttempt) {
  for (const bool from_source : {true, false}) {
    Start(from_source);
    Source({});
    HasRun("s-0", "u");
    Run(2, "u");
    SandboxGoes("s-0");
    EXPECT_THAT(manager_.unwanted(), IsEmpty()) << "a call is under way";
    SandboxRuns("s-1", "u", 1);
    gate_->OnCallOver(2);
    SandboxGoes("s-0");
    EXPECT_THAT(manager_.unwanted(), IsEmpty());
    SandboxGoes("s-1");
    EXPECT_THAT(manager_.unwanted(), ElementsAre("u"));
    StartOver("u");
  }
}

// What a runtime runs stays allocated.
TEST_F(SandboxActuatorTest, APodWithoutSandboxIsReleasedIfTheSourceLacksItToo) {
  State("kept", PodState::kReady);
  State("over", PodState::kReady);
  State("runs", PodState::kReady);
  State("done", PodState::kReady);
  Source({{"kept", "Running"}, {"done", "Succeeded"}});
  SandboxRuns("s", "runs");
  Start();
  EXPECT_THAT(manager_.unwanted(), ElementsAre("done", "over"));
  manager_.RemovePod({"done"});
  manager_.RemovePod({"over"});
  gate_->OnDoubt();
  SandboxGoes("s");
  EXPECT_THAT(manager_.unwanted(), SizeIs(2)) << "another may be there";
  gate_->OnLook();
  EXPECT_THAT(manager_.unwanted(), ElementsAre("done", "over", "runs"));
}

TEST_F(SandboxActuatorTest, WithoutASourceTheLastSandboxDecides) {
  State("given", PodState::kReady);
  Start(/*pods_from_source=*/false);
  Source({{"u", "Running"}});
  HasRun("s", "u");
  EXPECT_THAT(manager_.wanted(), IsEmpty()) << "that is the giver's";
  SandboxRuns("s-2", "given");
  gate_->OnLook();
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
  SandboxGoes("s");
  EXPECT_THAT(manager_.unwanted(), ElementsAre("u"));
}

TEST_F(SandboxActuatorTest, WithoutASourceWhatNeverRanKeepsItsPlace) {
  State("given", PodState::kReady);
  Start(/*pods_from_source=*/false);
  Run(1, "given");
  gate_->OnCallOver(1);
  gate_->OnLook();
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
}

// The answer about a newer sandbox was lost.
TEST_F(SandboxActuatorTest, WithoutASourceADoubtIsClearedFirst) {
  Start(/*pods_from_source=*/false);
  HasRun("s-0", "u");
  HasRun("t-0", "t");
  gate_->OnDoubt();
  SandboxGoes("s-0");
  SandboxGoes("t-0");
  EXPECT_THAT(manager_.unwanted(), IsEmpty());
  SandboxRuns("s-1", "u", 1);
  gate_->OnLook();
  EXPECT_THAT(manager_.unwanted(), ElementsAre("t"));
}

}  // namespace
}  // namespace devmgr::shim
