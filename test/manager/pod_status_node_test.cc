// SPDX-License-Identifier: Apache-2.0
//
// A manager as the agent of its node: what it says of pods, and when their
// objects can go.
#include <devmgr/pod_status.h>

#include <optional>
#include <string>

#include "manager/manager_fixture.h"
#include "support/mailbox.h"
#include "support/scripted_runtime.h"

namespace devmgr {
namespace {

using State = RuntimeContainer::State;

constexpr char kDeletedAt[] = "'2026-01-01T00:00:00Z'";

/// Keeps what it is asked for, as text.
class AgentSink final : public ObjectSink {
 public:
  void DeleteResourceSlices(const std::string&,
                            std::function<void(absl::Status)> done) override {
    done(absl::OkStatus());
  }
  bool IsNodeAgent() const override { return true; }
  void SetPodStatus(const ObjectName& name, const PodUid& uid,
                    const ReportedPodStatus& status) override {
    asked.Put(name.name + " " + uid.value + " " + status.phase +
              (status.reason.empty() ? "" : " " + status.reason));
  }
  void FinishPod(const ObjectName& name, const PodUid& uid) override {
    asked.Put(name.name + " " + uid.value + " over");
  }
  Mailbox<std::string> asked;
};

class PodStatusNodeTest : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    node_.runtime = &runtime_;
    node_.object_sink = &sink_;
  }
  void TearDown() override { node_.Stop(); }

  /// The pod `p`, of a server that knows this of it.
  static std::string AgentPodYaml(const std::string& phase,
                                  const std::string& deleted_at = "") {
    std::string text =
        PodYaml("p", "u-p", {"c1"}, "status: {phase: " + phase + "}\n");
    if (!deleted_at.empty()) {
      const std::string uid = "uid: u-p";
      text.replace(text.find(uid), uid.size(),
                   uid + ", deletionTimestamp: " + deleted_at);
    }
    return ClaimYaml("c1", "u-c", {kDriver}, {"u-p"}) + text;
  }
  std::string Asked() { return sink_.asked.Take().value_or("nothing"); }

  ScriptedRuntime runtime_;
  AgentSink sink_;
};

TEST_F(PodStatusNodeTest, APodFromItsStartToItsLastDeletion) {
  node_.Start();
  runtime_.Runs({});
  node_.Publish(AgentPodYaml("Pending"));
  EXPECT_EQ(Asked(), "p u-p Pending");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  runtime_.Runs({{"u-p", State::kRunning}});
  EXPECT_EQ(Asked(), "p u-p Running");
  node_.Publish(AgentPodYaml("Running", kDeletedAt));
  node_.Sync();
  EXPECT_TRUE(node_.WaitFor("p", PodState::kReady));
  runtime_.Runs({{"u-p", State::kExited}});
  EXPECT_EQ(Asked(), "p u-p Succeeded");
  // The server has it: what the pod holds is released, and then it goes.
  node_.Publish(AgentPodYaml("Succeeded", kDeletedAt));
  EXPECT_EQ(Asked(), "p u-p over");
  EXPECT_EQ(node_.drivers.calls(),
            (std::vector<FakeDrivers::Call>{Prepare(kDriver, {"c1"}),
                                            Unprepare(kDriver, {"c1"})}));
}

TEST_F(PodStatusNodeTest, ADriverThatIsAwayKeepsThePodsObject) {
  node_.Start();
  runtime_.Runs({{"u-p", State::kRunning}});
  node_.Publish(AgentPodYaml("Running"));
  EXPECT_EQ(Asked(), "p u-p Running");
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReady));
  node_.drivers.Deregister(kDriver);
  runtime_.Runs({});
  node_.Publish(AgentPodYaml("Failed", kDeletedAt));
  ASSERT_TRUE(node_.WaitFor("p", PodState::kReleasing));
  node_.drivers.Register(kDriver);
  std::string last = Asked();
  // The end of what ran may have been said before.
  while (last == "p u-p Pending" || last == "p u-p Running") last = Asked();
  EXPECT_EQ(last, "p u-p over");
}

}  // namespace
}  // namespace devmgr
