// SPDX-License-Identifier: Apache-2.0
//
// What pods and embedders learn when devices stop working, and what follows.
#include <chrono>
#include <deque>

#include "common/mutex.h"
#include "manager/device_fixture.h"
#include "manager/health_names.h"
#include "support/mailbox.h"
#include "support/status_matchers.h"

namespace devmgr {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

device::Device With(const std::string& id, device::Health health) {
  return {id, health, {}};
}

class DeviceHealthTest : public DeviceNodeTest {
 protected:
  class Listener : public DeviceManagerObserver {
   public:
    void OnResourceHealth(const std::vector<PodUid>& pods) override {
      told.push_back(pods);
    }
    std::vector<std::vector<PodUid>> told;  ///< On the manager's thread.
  };

  void TearDown() override { listening_.reset(); }

  void Start(int pods) {
    node_.Start();
    listening_ = node_.manager().Observe(listener_);
    node_.plugins.Serve(kGpu, pods);
    std::string all;
    for (int i = 0; i < pods; ++i) {
      all += DevicePod("p" + std::to_string(i), {{kGpu, 1}});
    }
    node_.Publish(all);
    for (int i = 0; i < pods; ++i) {
      ASSERT_TRUE(node_.WaitFor("p" + std::to_string(i), PodState::kReady));
    }
    Told();
  }

  /// What the plugin tells of the devices `0`, `1`, ...
  void Report(const std::vector<device::Health>& healths) {
    std::vector<device::Device> devices;
    for (std::size_t i = 0; i < healths.size(); ++i) {
      devices.push_back(With(std::to_string(i), healths[i]));
    }
    node_.plugins.Report(kGpu, std::move(devices));
  }

  /// Since the last call; all that was reported before has been heard.
  std::vector<std::vector<PodUid>> Told() {
    std::vector<std::vector<PodUid>> told;
    // Once for what was reported, once for what that made to be told.
    node_.Sync();
    node_.RunAndWait([&] { told = std::exchange(listener_.told, {}); });
    return told;
  }

  /// `id=health` of all devices of a pod.
  std::vector<std::string> StatusOf(const std::string& pod) {
    std::vector<std::string> all;
    for (const auto& container : node_.PodNamed(pod).allocated_resources) {
      for (const ResourceStatus& resource : container.resources) {
        for (const ResourceHealth& device : resource.resources) {
          all.push_back(container.container.value + "/" + resource.name + "/" +
                        device.resource_id + "=" +
                        std::string(device.health.name()));
        }
      }
    }
    return all;
  }

  Listener listener_;
  std::unique_ptr<Observation> listening_;
};

// DP-115, DP-118
TEST_F(DeviceHealthTest, AHolderIsToldOnceAndSeesItInItsStatus) {
  Start(3);
  EXPECT_THAT(StatusOf("p1"), ElementsAre("c/example.com/gpu/1=Healthy"));
  Report({kGood, kBad, kGood});
  EXPECT_THAT(Told(), ElementsAre(ElementsAre(PodUid{"u-p1"})));
  EXPECT_THAT(StatusOf("p1"), ElementsAre("c/example.com/gpu/1=Unhealthy"));
  EXPECT_THAT(StatusOf("p0"), ElementsAre("c/example.com/gpu/0=Healthy"));
  EXPECT_THAT(MessagesOf("DeviceUnhealthy"),
              ElementsAre(AllOf(HasSubstr("'1'"), HasSubstr(kGpu))));
  Report({kGood, kGood, kGood});
  Told();
  EXPECT_THAT(MessagesOf("DeviceHealthy"),
              ElementsAre(AllOf(HasSubstr("'1'"), HasSubstr(kGpu))));
  // It does not work again when its plugin has gone.
  Report({kGood, kGood, kBad});
  Told();
  node_.plugins.Lose(kGpu);
  Told();
  EXPECT_THAT(MessagesOf("DeviceHealthy"), SizeIs(1));
}

TEST_F(DeviceHealthTest, EachChangeOfPluginsIsOneEvent) {
  Start(1);
  EXPECT_THAT(MessagesOf("PluginConnected"),
              ElementsAre("a device plugin is connected"));
  // The newest one serves; then it goes, and the older one does.
  node_.plugins.Serve(kGpu, 1);
  node_.plugins.Lose(kGpu);
  node_.Sync();
  EXPECT_THAT(MessagesOf("PluginConnected"),
              Contains("a device plugin is connected, beside 1 that is "
                       "already"));
  EXPECT_THAT(MessagesOf("PluginInstanceGone"),
              ElementsAre(HasSubstr("connection lost")));
  EXPECT_THAT(MessagesOf("PluginGone"), IsEmpty()) << "it is served";
}

// DP-117
TEST_F(DeviceHealthTest, TheSameListTellsNobody) {
  Start(3);
  for (int i = 0; i < 200; ++i) Report({kGood, kGood, kGood});
  EXPECT_THAT(Told(), IsEmpty());
}

// DP-119
TEST_F(DeviceHealthTest, WithTheGateOffNobodyIsTold) {
  node_.options.feature_gates["ResourceHealthStatus"] = false;
  Start(2);
  Report({kGood, kBad});
  EXPECT_THAT(Told(), IsEmpty());
  EXPECT_THAT(StatusOf("p1"), IsEmpty());
}

TEST_F(DeviceHealthTest, WhatIsWrongWithAListIsShown) {
  Start(1);
  std::vector<device::Device> devices = HealthyDevices(30);
  for (device::Device& device : devices) device.numa_nodes = {-1};
  devices[0].id = std::string(64, 'x');
  devices[2].id = "1";
  node_.plugins.Report(kGpu, std::move(devices));
  node_.Sync();
  const std::vector<std::string> texts = MessagesOf("DeviceListProblem");
  EXPECT_THAT(texts, AllOf(Contains(HasSubstr("the definition says 63")),
                           Contains("device '1': there is no NUMA node -1"),
                           Contains("device '1' is listed twice")));
}

// W-16, W-18: nothing is lost, however much happens at once.
TEST_F(DeviceHealthTest, WhatHappensAtOnceIsToldAtOnce) {
  Start(3);
  node_.RunAndWait([&] {
    Report({kBad, kGood, kGood});
    Report({kGood, kBad, kBad});
    Report({kBad, kGood, kBad});
  });
  std::vector<PodUid> all;
  for (const auto& pods : Told())
    all.insert(all.end(), pods.begin(), pods.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(all.size(), 3u);
  node_.plugins.Lose(kGpu);
  EXPECT_THAT(Told(), ElementsAre(ElementsAre(PodUid{"u-p0"}, PodUid{"u-p1"},
                                              PodUid{"u-p2"})));
  EXPECT_THAT(StatusOf("p0"), ElementsAre("c/example.com/gpu/0=Unknown"));
}

// DP-120, DP-122 to DP-125: what pod-resources asks for.
TEST_F(DeviceHealthTest, WhatIsHeldAndWhatWorksIsTold) {
  Start(1);
  const auto held = [&] {
    return *node_.manager().View()->HeldDevices(node_.UidOf("p0"), "c");
  };
  EXPECT_THAT(held(), ElementsAre(ResourceDevices{kGpu, {{"0", {}}}}));
  Report({kGood, kGood, kBad});
  Told();
  EXPECT_THAT(node_.manager().View()->AllocatableDevices(),
              ElementsAre(ResourceDevices{kGpu, {{"0", {}}, {"1", {}}}}));
  Report({kGood, kGood, kGood});
  Told();
  EXPECT_THAT(
      node_.manager().View()->AllocatableDevices(),
      ElementsAre(ResourceDevices{kGpu, {{"0", {}}, {"1", {}}, {"2", {}}}}));
  node_.plugins.Lose(kGpu);
  Told();
  EXPECT_THAT(node_.manager().View()->AllocatableDevices(), IsEmpty());
  EXPECT_THAT(held(), ElementsAre(ResourceDevices{kGpu, {{"0", {}}}}));
  EXPECT_THAT(node_.manager().View()->HeldDevices(PodUid{"none"}, "c"),
              StatusIs(absl::StatusCode::kNotFound));
}

class HealthPolicyTest : public DeviceHealthTest {
 protected:
  void SetUp() override {
    node_.options.health.policies[kGpu] = HealthPolicy::kFail;
    node_.options.health.unhealthy_for = std::chrono::milliseconds(1);
    node_.act_on_pod = [this](const PodAction& action) {
      actions_.Put(action);
    };
  }
  Mailbox<PodAction> actions_;
};

// AL-192
TEST_F(HealthPolicyTest, APodIsToFailWhenItsDeviceStaysBroken) {
  Start(2);
  Report({kGood, kBad});
  const auto action = actions_.Take();
  ASSERT_TRUE(action.has_value());
  EXPECT_EQ(action->kind, PodAction::Kind::kFail);
  EXPECT_EQ(action->pod, PodUid{"u-p1"});
  EXPECT_EQ(action->name, (ObjectName{"default", "p1"}));
  EXPECT_EQ(action->reason, "DeviceUnhealthy");
  EXPECT_THAT(action->message, HasSubstr("'1'"));
  EXPECT_THAT(MessagesOf("PodToFail"), ElementsAre(action->message));
  // It must not start on it again either.
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p1"), "c"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("does not work")));
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p0"), "c"),
              IsOk());
}

// AL-193
TEST_F(HealthPolicyTest, WhenMostAreBrokenNobodyFails) {
  Start(2);
  Report({kBad, kBad});
  ASSERT_TRUE(node_.WaitUntil("it is held back", [&] {
    return !MessagesOf("HealthActionsHeldBack").empty();
  }));
  Told();
  EXPECT_THAT(MessagesOf("PodToFail"), IsEmpty());
}

TEST_F(HealthPolicyTest, OtherResourcesAreOnlyReported) {
  node_.options.health.policies.clear();
  Start(2);
  Report({kGood, kBad});
  Told();
  EXPECT_THAT(MessagesOf("DeviceUnhealthy"), ElementsAre(HasSubstr("'1'")));
  EXPECT_THAT(node_.manager().BeforeContainerStart(node_.UidOf("p1"), "c"),
              IsOk());
}

// AL-192: what is only Unknown, since its plugin is gone, fails no pod.
TEST_F(HealthPolicyTest, APluginThatIsGoneFailsNoPod) {
  Start(2);
  node_.plugins.Lose(kGpu);
  Told();
  node_.plugins.Serve(kGpu, 2);
  Report({kGood, kBad});
  const auto action = actions_.Take();
  ASSERT_TRUE(action.has_value());
  EXPECT_EQ(action->pod, PodUid{"u-p1"});
  EXPECT_THAT(MessagesOf("PodToFail"), SizeIs(1));
  EXPECT_THAT(MessagesOf("HealthActionsHeldBack"), IsEmpty());
}

class ReplacePolicyTest : public DeviceHealthTest {
 protected:
  ReplacePolicyTest() {
    node_.options.health.policies[kGpu] = HealthPolicy::kReplace;
  }
  absl::Status BeforeStart(const std::string& pod) {
    return node_.manager().BeforeContainerStart(node_.UidOf(pod), "c");
  }
  std::vector<std::string> ReplacedMessages() {
    std::vector<std::string> messages;
    const auto history = node_.manager().maintenance().History(0);
    for (const DecisionInfo& decision : *history) {
      if (decision.kind == DecisionKind::kReplaced) {
        messages.push_back(decision.message);
      }
    }
    return messages;
  }
};

// AL-194
TEST_F(ReplacePolicyTest, AL194AContainerThatStartsAgainGetsAnotherDevice) {
  Start(1);
  Report({kGood, kGood});
  ASSERT_THAT(BeforeStart("p0"), IsOk());
  const auto before = node_.Resolve("p0", "c");
  EXPECT_THAT(Held("p0", kGpu), ElementsAre("0"));
  Report({kBad, kGood});
  Told();
  // It runs with it, and nothing changes.
  EXPECT_EQ(node_.Resolve("p0", "c"), before);
  EXPECT_THAT(ReplacedMessages(), IsEmpty());
  EXPECT_THAT(node_.PodNamed("p0").state, PodState::kReady);

  EXPECT_THAT(BeforeStart("p0"), IsOk());
  EXPECT_THAT(Held("p0", kGpu), ElementsAre("1"));
  EXPECT_THAT(node_.Resolve("p0", "c"), ElementsAre("example.com/gpu=1"));
  EXPECT_THAT(ReplacedMessages(),
              ElementsAre("container 'c' starts again and gives back what does "
                          "not work: 0 of example.com/gpu"));
  // Once is enough.
  EXPECT_THAT(BeforeStart("p0"), IsOk());
  EXPECT_THAT(ReplacedMessages(), SizeIs(1));
  node_.Restart();
  EXPECT_THAT(node_.Resolve("p0", "c"), ElementsAre("example.com/gpu=1"));
}

TEST_F(ReplacePolicyTest, WithoutAnotherDeviceItKeepsItsOwn) {
  Start(2);
  const auto before = node_.Resolve("p0", "c");
  Report({kBad, kGood});
  Told();
  EXPECT_THAT(BeforeStart("p0"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("there is no other one for it now")));
  EXPECT_THAT(Held("p0", kGpu), ElementsAre("0"));
  EXPECT_EQ(node_.Resolve("p0", "c"), before);
  EXPECT_THAT(ReplacedMessages(), IsEmpty());
  // It works again: so it starts with it.
  Report({kGood, kGood});
  Told();
  EXPECT_THAT(BeforeStart("p0"), IsOk());
  EXPECT_THAT(Held("p0", kGpu), ElementsAre("0"));
}

/// Killed after the device was given back, and before the other one was had.
TEST_F(ReplacePolicyTest, ARestartGoesOnWithIt) {
  Start(1);
  Report({kBad, kGood});
  Told();
  node_.plugins.Hold(kGpu);
  absl::Status cancelled = absl::OkStatus();
  bool ended = false;
  node_.manager().StartBeforeContainerStart(node_.UidOf("p0"), "c",
                                            [&](const absl::Status& status) {
                                              cancelled = status;
                                              ended = true;
                                            });
  ASSERT_TRUE(node_.WaitUntil("given back",
                              [&] { return !ReplacedMessages().empty(); }));
  node_.Stop();
  node_.plugins.Let(kGpu);
  EXPECT_TRUE(ended);
  EXPECT_FALSE(cancelled.ok());
  node_.Start();
  node_.plugins.Serve(kGpu, 0);
  Report({kBad, kGood});
  Told();
  EXPECT_THAT(BeforeStart("p0"), IsOk());
  EXPECT_THAT(Held("p0", kGpu), ElementsAre("1"));
  EXPECT_THAT(node_.Resolve("p0", "c"), ElementsAre("example.com/gpu=1"));
}

}  // namespace
}  // namespace devmgr
