// SPDX-License-Identifier: Apache-2.0
//
// Each way in which the fake device plugin misbehaves when told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/status.h"
#include "rpc/message.h"
#include "testing/fake_plugin_fixture.h"

namespace devmgr::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Action = ScenarioStep::Action;
using Way = FakeDevicePluginOptions::Way;

class FakePluginScenarioTest : public FakePluginFixture {
 protected:
  void SetUp() override {
    StartRegistry();
    StartPlugin();
    ASSERT_TRUE(plugin_->WaitForRegistrations(1, kPatience));
  }

  std::string EndpointOf(
      const std::optional<deviceplugin::RegisterRequest>& r) {
    return r ? r->endpoint() : "none";
  }
};

TEST_F(FakePluginScenarioTest, FailsSomeTimes) {
  auto step = Step(Action::kFail, "allocate");
  step.times = 2;
  step.message = "no such luck";
  plugin_->AddStep(step);
  for (int i = 0; i < 2; ++i) {
    const auto answer = Allocate({"gpu-0"});
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnknown);
    EXPECT_EQ(MessageOf(answer.status()), "no such luck");
  }
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_THAT(Events("step"), SizeIs(2));
}

TEST_F(FakePluginScenarioTest, FailsEveryKindOfCall) {
  StopRegistry();
  auto options = Options();
  options.way = Way::kBoth;
  StartPlugin(options);
  for (const char* method :
       {"get-options", "list-and-watch", "get-preferred-allocation", "allocate",
        "pre-start-container", "get-info", "notify-registration"}) {
    plugin_->AddStep(Step(Action::kFail, method));
  }
  EXPECT_FALSE(GetOptions().ok());
  EXPECT_FALSE(Watch()->End().ok());
  EXPECT_FALSE(Prefer({"gpu-0"}, {}, 1).ok());
  EXPECT_FALSE(Allocate({"gpu-0"}).ok());
  EXPECT_FALSE(PreStart({"gpu-0"}).ok());
  EXPECT_FALSE(GetInfo(RegistrationSocket()).ok());
  EXPECT_FALSE(Notify(RegistrationSocket(), true, "").ok());
  // Each step was for one call.
  EXPECT_TRUE(GetOptions().ok());
  EXPECT_THAT(NextList(Watch().get()), SizeIs(2));
  EXPECT_TRUE(Prefer({"gpu-0"}, {}, 1).ok());
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_TRUE(PreStart({"gpu-0"}).ok());
  EXPECT_TRUE(GetInfo(RegistrationSocket()).ok());
  EXPECT_TRUE(Notify(RegistrationSocket(), true, "").ok());
}

TEST_F(FakePluginScenarioTest, AnyIsACallAboutDevices) {
  plugin_->AddStep(Step(Action::kFail));
  EXPECT_TRUE(GetOptions().ok());
  EXPECT_THAT(NextList(Watch().get()), SizeIs(2));
  EXPECT_FALSE(PreStart({"gpu-0"}).ok());
}

TEST_F(FakePluginScenarioTest, AStepMayBeAboutOneDevice) {
  auto step = Step(Action::kFail, "allocate");
  step.device = "gpu-1";
  plugin_->AddStep(step);
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_FALSE(Allocate({"gpu-0", "gpu-1"}).ok());
  EXPECT_EQ(Events("step").front().at("device"), "gpu-1");
}

TEST_F(FakePluginScenarioTest, StepsAreForgottenWhenTold) {
  auto step = Step(Action::kFail);
  step.times = 0;
  plugin_->AddStep(step);
  EXPECT_FALSE(Allocate({"gpu-0"}).ok());
  EXPECT_FALSE(Allocate({"gpu-0"}).ok());
  plugin_->ClearSteps();
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
}

TEST_F(FakePluginScenarioTest, HangsUntilReleased) {
  plugin_->AddStep(Step(Action::kHang, "allocate"));
  const auto hanging = StartAllocate({"gpu-0"});
  ASSERT_TRUE(plugin_->WaitForCalls("allocate", 1, kPatience));
  // Others are served meanwhile.
  EXPECT_TRUE(Allocate({"gpu-1"}).ok());
  EXPECT_EQ(hanging->size(), 0u);
  plugin_->ReleaseHanging();
  EXPECT_TRUE(hanging->Take().value().ok());
}

TEST_F(FakePluginScenarioTest, ConnectedWithoutAList) {
  plugin_->AddStep(Step(Action::kHang, "list-and-watch"));
  const auto stream = Watch();
  ASSERT_TRUE(plugin_->WaitForCalls("list-and-watch", 1, kPatience));
  // Changes do not get through either.
  plugin_->SetHealth("gpu-0", "Unhealthy");
  EXPECT_THAT(Events("list"), SizeIs(0));
  plugin_->ReleaseHanging();
  EXPECT_THAT(NextList(stream.get()),
              ElementsAre("gpu-0 Unhealthy", "gpu-1 Healthy"));
}

TEST_F(FakePluginScenarioTest, IsSlow) {
  auto step = Step(Action::kDelay, "allocate");
  step.delay = milliseconds(50);
  plugin_->AddStep(step);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(50));
}

TEST_F(FakePluginScenarioTest, AnswersTooLittle) {
  auto step = Step(Action::kTooLittle);
  step.times = 2;
  plugin_->AddStep(step);
  EXPECT_EQ(MessageOf(Allocate({"gpu-0"}).status()), "0 containers");
  EXPECT_EQ(MessageOf(Prefer({"gpu-0"}, {}, 1).status()), "0 containers");
}

TEST_F(FakePluginScenarioTest, PrefersADeviceOfNobody) {
  plugin_->AddStep(Step(Action::kUnknownDevice));
  EXPECT_THAT(*Prefer({"gpu-0"}, {}, 1),
              ElementsAre("gpu-0", "nobodys-device"));
  auto step = Step(Action::kUnknownDevice);
  step.message = "gpu-9";
  plugin_->AddStep(step);
  EXPECT_THAT(*Prefer({"gpu-0"}, {}, 1), ElementsAre("gpu-0", "gpu-9"));
}

TEST_F(FakePluginScenarioTest, GivesWhatNoRuntimeTakes) {
  plugin_->AddStep(Step(Action::kGarbageNames));
  const auto answer = Allocate({"gpu-0"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->envs().count(""), 1u);
  EXPECT_EQ(answer->mounts(0).container_path(), "not/absolute");
  EXPECT_EQ(answer->devices(0).permissions(), "everything");
  EXPECT_EQ(answer->cdi_devices(0).name(), "not a CDI name");
}

TEST_F(FakePluginScenarioTest, IntroducesItselfAsAnother) {
  auto options = Options();
  options.way = Way::kBoth;
  StartPlugin(options);
  plugin_->AddStep(Step(Action::kGarbageNames, "get-info"));
  EXPECT_EQ(GetInfo(RegistrationSocket())->name(), "Not_A_Resource");
  EXPECT_EQ(GetInfo(RegistrationSocket())->name(), kResource);
}

TEST_F(FakePluginScenarioTest, AnswersWithBytesThatAreNoMessage) {
  for (const char* method : {"get-options", "allocate", "list-and-watch"}) {
    plugin_->AddStep(Step(Action::kGarbageBytes, method));
  }
  EXPECT_EQ(GetOptions().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Allocate({"gpu-0"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()).front(), HasSubstr("are not a"));
}

TEST_F(FakePluginScenarioTest, ListsADeviceTwice) {
  plugin_->AddStep(Step(Action::kDuplicateIds));
  const auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()),
              ElementsAre("gpu-0 Healthy", "gpu-1 Healthy", "gpu-0 Unhealthy"));
  // All lists of this stream, none of the next.
  plugin_->SetHealth("gpu-1", "Unhealthy");
  EXPECT_THAT(NextList(stream.get()), SizeIs(3));
  EXPECT_THAT(NextList(Watch().get()), SizeIs(2));
}

TEST_F(FakePluginScenarioTest, ListsAnUnknownHealth) {
  plugin_->AddStep(Step(Action::kUnknownHealth));
  EXPECT_THAT(NextList(Watch().get()),
              ElementsAre("gpu-0 Degraded", "gpu-1 Degraded"));
  auto step = Step(Action::kUnknownHealth);
  step.message = "HEALTHY";
  plugin_->AddStep(step);
  EXPECT_THAT(NextList(Watch().get()),
              ElementsAre("gpu-0 HEALTHY", "gpu-1 HEALTHY"));
}

TEST_F(FakePluginScenarioTest, ListsIdsThatAreNone) {
  plugin_->AddStep(Step(Action::kGarbageIds));
  EXPECT_THAT(
      NextList(Watch().get()),
      ElementsAre("gpu-0 Healthy", "gpu-1 Healthy", " Healthy",
                  std::string(64, 'x') + " Healthy", "\xff\xfe Healthy"));
}

TEST_F(FakePluginScenarioTest, ListsNumaNodesThatDoNotExist) {
  plugin_->AddStep(Step(Action::kGarbageNuma));
  EXPECT_THAT(NextList(Watch().get()).front(), HasSubstr("@-1,4096,9223372"));
}

TEST_F(FakePluginScenarioTest, HasManyDevices) {
  const auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()), SizeIs(2));
  auto step = Step(Action::kSetDevices);
  step.count = 60'000;
  plugin_->AddStep(step);
  EXPECT_THAT(NextList(Watch().get()), SizeIs(60'000));
  EXPECT_THAT(NextList(stream.get()), SizeIs(60'000));
  // They are really there.
  EXPECT_TRUE(Allocate({"gpu-59999"}).ok());
}

TEST_F(FakePluginScenarioTest, HasMoreDevicesThanAnyNode) {
  auto step = Step(Action::kSetDevices);
  step.count = 655'360;
  plugin_->AddStep(step);
  const auto bytes = Watch()->Next();
  ASSERT_TRUE(bytes.has_value());
  const auto list = rpc::Decode<deviceplugin::ListAndWatchResponse>(*bytes);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->devices_size(), 655'360);
  EXPECT_EQ(list->devices(655'359).id(), "gpu-655359");
}

TEST_F(FakePluginScenarioTest, LosesDevicesWhileTheyAreAllocated) {
  const auto stream = Watch();
  NextList(stream.get());
  auto step = Step(Action::kSetDevices, "allocate");
  step.count = 0;
  step.delay = milliseconds(1);
  plugin_->AddStep(step);
  EXPECT_TRUE(Allocate({"gpu-1"}).ok());
  EXPECT_THAT(NextList(stream.get()), SizeIs(0));
}

TEST_F(FakePluginScenarioTest, SetsDevicesSomeTimeAfterTheCall) {
  auto step = Step(Action::kSetDevices);
  step.count = 3;
  step.after = milliseconds(1);
  plugin_->AddStep(step);
  const auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()), SizeIs(2));
  EXPECT_THAT(NextList(stream.get()), SizeIs(3));
}

TEST_F(FakePluginScenarioTest, FlapsADevice) {
  auto step = Step(Action::kFlapDevice);
  step.device = "gpu-1";
  step.count = 2;
  step.after = milliseconds(1);
  step.delay = milliseconds(1);
  plugin_->AddStep(step);
  const auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()), Contains("gpu-1 Healthy"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(NextList(stream.get()), Contains("gpu-1 Unhealthy"));
    EXPECT_THAT(NextList(stream.get()), Contains("gpu-1 Healthy"));
  }
}

TEST_F(FakePluginScenarioTest, FlapsADeviceThatIsAllocated) {
  const auto stream = Watch();
  NextList(stream.get());
  auto step = Step(Action::kFlapDevice, "allocate");
  step.device = "gpu-1";
  plugin_->AddStep(step);
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_TRUE(Allocate({"gpu-1"}).ok());
  EXPECT_THAT(NextList(stream.get()), Contains("gpu-1 Unhealthy"));
  EXPECT_THAT(NextList(stream.get()), Contains("gpu-1 Healthy"));
}

TEST_F(FakePluginScenarioTest, DropsTheStream) {
  plugin_->AddStep(Step(Action::kDropStream));
  auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()), SizeIs(2));
  EXPECT_TRUE(stream->End().ok());

  auto step = Step(Action::kDropStream, "allocate");
  step.message = "lost";
  plugin_->AddStep(step);
  stream = Watch();
  EXPECT_THAT(NextList(stream.get()), SizeIs(2));
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_EQ(stream->End().error_message(), "lost");
  // The plugin lives on.
  EXPECT_THAT(NextList(Watch().get()), SizeIs(2));
}

TEST_F(FakePluginScenarioTest, DropsItsSocketAndComesBackWithoutAWord) {
  auto step = Step(Action::kDropSocket, "allocate");
  step.delay = milliseconds(1);
  plugin_->AddStep(step);
  EXPECT_EQ(Allocate({"gpu-0"}).status().code(),
            absl::StatusCode::kUnavailable);
  ASSERT_TRUE(WaitForEvent("socket-back"));
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_EQ(registrations_.size(), 1u);
}

TEST_F(FakePluginScenarioTest, DropsItsSocketForGood) {
  plugin_->AddStep(Step(Action::kDropSocket, "list-and-watch"));
  EXPECT_FALSE(Watch()->End().ok());
  ASSERT_TRUE(WaitForEvent("socket-dropped"));
  EXPECT_FALSE(fs::exists(Socket()));
  ASSERT_TRUE(plugin_->Restart().ok());
  EXPECT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
}

TEST_F(FakePluginScenarioTest, EndsAndComesBackAsAProcess) {
  for (const int delay : {0, 1}) {
    auto step = Step(Action::kRestart);
    step.delay = milliseconds(delay);
    step.times = 2;
    plugin_->AddStep(step);
  }
  for (std::size_t i = 2; i <= 5; ++i) {
    const auto stream = Watch();
    EXPECT_THAT(NextList(stream.get()), SizeIs(2));
    EXPECT_FALSE(stream->End().ok());
    ASSERT_TRUE(plugin_->WaitForRegistrations(i, kPatience));
  }
  const auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()), SizeIs(2));
  EXPECT_THAT(Events("serving"), SizeIs(5));
}

TEST_F(FakePluginScenarioTest, StaysAwayWhileItIsDown) {
  auto step = Step(Action::kRestart, "allocate");
  step.delay = std::chrono::hours(1);
  plugin_->AddStep(step);
  const auto stream = Watch();
  NextList(stream.get());
  ASSERT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_FALSE(stream->End().ok());
  plugin_->Devices();  // Behind the work of the step.
  EXPECT_FALSE(fs::exists(Socket()));
  // What is told to come back by hand comes back once.
  ASSERT_TRUE(plugin_->Restart().ok());
  EXPECT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
}

TEST_F(FakePluginScenarioTest, RegistersOnceMoreAtTheSamePath) {
  plugin_->AddStep(Step(Action::kReRegister));
  const auto stream = Watch();
  NextList(stream.get());
  ASSERT_TRUE(plugin_->WaitForRegistrations(2, kPatience));
  EXPECT_EQ(EndpointOf(NextRegistration()), EndpointOf(NextRegistration()));
  plugin_->SetHealth("gpu-0", "Unhealthy");
  EXPECT_THAT(NextList(stream.get()), Contains("gpu-0 Unhealthy"));
}

TEST_F(FakePluginScenarioTest, OffersItselfOnceMoreInTheDirectory) {
  for (const Way way : {Way::kBoth, Way::kDirectory}) {
    auto options = Options();
    options.way = way;
    StartPlugin(options);
    const fs::path socket =
        way == Way::kBoth ? RegistrationSocket()
                          : root_ / "plugins_registry" / "example.com_gpu.sock";
    plugin_->AddStep(Step(Action::kReRegister, "allocate"));
    const auto connection = rpc::Dial(*runtime_, socket, [] {});
    ASSERT_TRUE(connection.ok());
    Mailbox<bool> gone;
    const auto watching =
        rpc::Dial(*runtime_, socket, [&gone] { gone.Put(true); });
    ASSERT_TRUE(watching.ok());
    EXPECT_TRUE(
        Allocate({"gpu-0"}, way == Way::kBoth ? Socket() : socket).ok());
    EXPECT_TRUE(gone.Take());
    plugin_->Devices();  // Behind the work of the step.
    EXPECT_TRUE(GetInfo(socket).ok());
  }
}

TEST_F(FakePluginScenarioTest, IsUpgradedBesideTheOldOne) {
  NextRegistration();
  const auto stream = Watch();
  NextList(stream.get());
  auto step = Step(Action::kRollingUpgrade, "allocate");
  step.delay = milliseconds(1);
  plugin_->AddStep(step);
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  const std::string endpoint = EndpointOf(NextRegistration());
  EXPECT_EQ(endpoint, "example.com_gpu-2.sock");
  const auto second = Watch(root_ / "device-plugins" / endpoint);
  EXPECT_THAT(NextList(second.get()), SizeIs(2));
  ASSERT_TRUE(WaitForEvent("ended"));
  EXPECT_FALSE(stream->End().ok());
  plugin_->Devices();  // Behind the work of the step.
  EXPECT_FALSE(fs::exists(Socket()));
  // The second one goes on, and a restart keeps its name.
  plugin_->SetHealth("gpu-0", "Unhealthy");
  EXPECT_THAT(NextList(second.get()), Contains("gpu-0 Unhealthy"));
  ASSERT_TRUE(plugin_->Restart().ok());
  EXPECT_EQ(EndpointOf(NextRegistration()), endpoint);
}

TEST_F(FakePluginScenarioTest, BothServeDuringAnUpgrade) {
  NextRegistration();
  auto step = Step(Action::kRollingUpgrade);
  step.delay = std::chrono::hours(1);
  plugin_->AddStep(step);
  const auto first = Watch();
  EXPECT_THAT(NextList(first.get()), SizeIs(2));
  const fs::path path =
      root_ / "device-plugins" / EndpointOf(NextRegistration());
  const auto second = Watch(path);
  EXPECT_THAT(NextList(second.get()), SizeIs(2));
  plugin_->SetHealth("gpu-1", "Unhealthy");
  EXPECT_THAT(NextList(first.get()), Contains("gpu-1 Unhealthy"));
  EXPECT_THAT(NextList(second.get()), Contains("gpu-1 Unhealthy"));
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_TRUE(Allocate({"gpu-0"}, path).ok());
}

TEST_F(FakePluginScenarioTest, TakesOverThePathOfTheOldOne) {
  NextRegistration();
  auto step = Step(Action::kTakeOver);
  step.delay = std::chrono::hours(1);
  plugin_->AddStep(step);
  const auto first = Watch();
  EXPECT_THAT(NextList(first.get()), SizeIs(2));
  EXPECT_EQ(EndpointOf(NextRegistration()), "example.com_gpu.sock");
  // Who connects now gets the new one; the old one keeps what it has.
  const auto second = Watch();
  EXPECT_THAT(NextList(second.get()), SizeIs(2));
  plugin_->SetHealth("gpu-1", "Unhealthy");
  EXPECT_THAT(NextList(first.get()), Contains("gpu-1 Unhealthy"));
  EXPECT_THAT(NextList(second.get()), Contains("gpu-1 Unhealthy"));
  plugin_->Stop();
  EXPECT_FALSE(fs::exists(Socket()));
}

TEST_F(FakePluginScenarioTest, TheOldOneEndsAfterATakeOver) {
  plugin_->AddStep(Step(Action::kTakeOver));
  const auto first = Watch();
  EXPECT_THAT(NextList(first.get()), SizeIs(2));
  EXPECT_FALSE(first->End().ok());
  ASSERT_TRUE(WaitForEvent("ended"));
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
}

TEST_F(FakePluginScenarioTest, CrashesBeforeAndAfterItsWork) {
  auto options = Options();
  Mailbox<bool> crashes;
  options.crash = [&crashes] { crashes.Put(true); };
  StartPlugin(options);
  for (const Action action : {Action::kCrashBefore, Action::kCrashAfter}) {
    plugin_->AddStep(Step(action, "allocate"));
    const auto answers = StartAllocate({"gpu-0"});
    EXPECT_TRUE(crashes.Take());
    EXPECT_EQ(answers->size(), 0u);
  }
  auto step = Step(Action::kCrashAfter, "list-and-watch");
  step.after = milliseconds(1);
  plugin_->AddStep(step);
  const auto stream = Watch();
  EXPECT_THAT(NextList(stream.get()), SizeIs(2));
  EXPECT_TRUE(crashes.Take());
}

TEST_F(FakePluginScenarioTest, AnswersOfCallsThatARestartOvertookAreDropped) {
  plugin_->AddStep(Step(Action::kHang, "allocate"));
  const auto hanging = StartAllocate({"gpu-0"});
  ASSERT_TRUE(plugin_->WaitForCalls("allocate", 1, kPatience));
  ASSERT_TRUE(plugin_->Restart().ok());
  EXPECT_EQ(hanging->Take().value().status().code(),
            absl::StatusCode::kUnavailable);
  plugin_->ReleaseHanging();
  EXPECT_THAT(Events("answer"), SizeIs(0));
}

TEST_F(FakePluginScenarioTest, StartsWithAScenario) {
  auto options = Options();
  options.scenario = {Step(Action::kFail, "get-options")};
  StartPlugin(options);
  EXPECT_FALSE(GetOptions().ok());
  EXPECT_TRUE(GetOptions().ok());
}

}  // namespace
}  // namespace devmgr::testing
