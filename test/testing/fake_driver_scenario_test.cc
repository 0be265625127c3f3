// SPDX-License-Identifier: Apache-2.0
//
// What a fake driver does when it is told to misbehave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "testing/fake_driver_fixture.h"

namespace devmgr::testing {
namespace {

using Action = ScenarioStep::Action;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ScenarioStep Step(Action action, std::string claim = "", int times = 1) {
  ScenarioStep step;
  step.action = action;
  step.claim = std::move(claim);
  step.times = times;
  return step;
}

class FakeDriverScenarioTest : public FakeDriverFixture {
 protected:
  void SetUp() override {
    WriteClaim("c1", "uid-1", {{}});
    WriteClaim("c2", "uid-2", {{"gpu", "gpu-1"}});
    auto options = Options();
    options.crash = [this] { ++crashes_; };
    StartDriver(std::move(options));
  }

  absl::StatusOr<v1::NodePrepareResourcesResponse> PrepareBoth() {
    return Prepare({{"c1", "uid-1"}, {"c2", "uid-2"}});
  }

  std::atomic<int> crashes_ = 0;
};

TEST_F(FakeDriverScenarioTest, FailsTheWholeCallAsOftenAsTold) {
  ScenarioStep step = Step(Action::kFail, "", 2);
  step.method = "prepare";
  step.message = "boom";
  driver_->AddStep(step);
  EXPECT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  for (int i = 0; i < 2; ++i) {
    const auto answer = PrepareBoth();
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnknown);
    EXPECT_EQ(std::string(answer.status().message()), "boom");
  }
  EXPECT_THAT(driver_->PreparedClaims(), IsEmpty());
  EXPECT_TRUE(PrepareBoth().ok());
  EXPECT_EQ(Events("step").size(), 2u);
}

TEST_F(FakeDriverScenarioTest, AStepWithoutEndLastsUntilItIsCleared) {
  driver_->AddStep(Step(Action::kFail, "", 0));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(PrepareBoth().ok());
  driver_->ClearSteps();
  EXPECT_TRUE(PrepareBoth().ok());
}

TEST_F(FakeDriverScenarioTest, AStepForAClaimSparesCallsWithoutIt) {
  driver_->AddStep(Step(Action::kFail, "c2"));
  EXPECT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  EXPECT_FALSE(PrepareBoth().ok());
  EXPECT_TRUE(PrepareBoth().ok());
}

TEST_F(FakeDriverScenarioTest, FailsOneClaimAndServesTheOthers) {
  ScenarioStep step = Step(Action::kFailClaim, "c1");
  step.message = "no luck";
  driver_->AddStep(step);
  const auto answer = PrepareBoth();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->claims().at("uid-1").error(), "no luck");
  EXPECT_EQ(answer->claims().at("uid-2").error(), "");
  EXPECT_THAT(driver_->PreparedClaims(), ElementsAre("uid-2"));
}

TEST_F(FakeDriverScenarioTest, StepsAboutSeparateClaimsGoTogether) {
  driver_->AddStep(Step(Action::kFailClaim, "c1"));
  driver_->AddStep(Step(Action::kTooLittle, "c2"));
  driver_->AddStep(Step(Action::kFailClaim, "c1"));
  const auto first = PrepareBoth();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->claims().size(), 1u);
  EXPECT_NE(first->claims().at("uid-1").error(), "");
  const auto second = PrepareBoth();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->claims().size(), 2u);
  EXPECT_NE(second->claims().at("uid-1").error(), "");
}

TEST_F(FakeDriverScenarioTest, AnswersTooLittleAlthoughItDidTheWork) {
  driver_->AddStep(Step(Action::kTooLittle));
  const auto answer = PrepareBoth();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->claims().size(), 1u);
  EXPECT_EQ(answer->claims().count("uid-1"), 1u);
  EXPECT_THAT(driver_->PreparedClaims(), ElementsAre("uid-1", "uid-2"));
}

TEST_F(FakeDriverScenarioTest, AnswersForAClaimThatNobodyAskedFor) {
  driver_->AddStep(Step(Action::kUnknownClaim));
  const auto answer = PrepareBoth();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->claims().size(), 3u);
}

TEST_F(FakeDriverScenarioTest, AnswersGarbageForNamesAndStaysHonestInside) {
  ScenarioStep step = Step(Action::kGarbageNames);
  step.claim = "c1";
  step.message = "/dev/null";
  driver_->AddStep(step);
  const auto garbage = PrepareBoth();
  ASSERT_TRUE(garbage.ok()) << garbage.status();
  EXPECT_THAT(garbage->claims().at("uid-1").devices(0).cdi_device_ids(),
              ElementsAre("/dev/null"));
  EXPECT_THAT(garbage->claims().at("uid-2").devices(0).cdi_device_ids(),
              ElementsAre(HasSubstr("gpu.example.com/claim=")));
  const auto honest = PrepareBoth();
  ASSERT_TRUE(honest.ok()) << honest.status();
  EXPECT_THAT(honest->claims().at("uid-1").devices(0).cdi_device_ids(),
              ElementsAre(HasSubstr("gpu.example.com/claim=")));
}

TEST_F(FakeDriverScenarioTest, HangsUntilReleased) {
  driver_->AddStep(Step(Action::kHang));
  const auto hanging = StartPrepare({{"c1", "uid-1"}});
  ASSERT_TRUE(driver_->WaitForCalls(1, kLimit));
  // Other calls are served meanwhile.
  EXPECT_TRUE(Prepare({{"c2", "uid-2"}}).ok());
  EXPECT_FALSE(hanging->ready());
  driver_->ReleaseHanging();
  EXPECT_TRUE(hanging->Wait().ok());
}

TEST_F(FakeDriverScenarioTest, AHangingCallIsOverAfterARestart) {
  driver_->AddStep(Step(Action::kHang));
  const auto hanging = StartPrepare({{"c1", "uid-1"}});
  ASSERT_TRUE(driver_->WaitForCalls(1, kLimit));
  ASSERT_TRUE(driver_->Restart().ok());
  EXPECT_FALSE(hanging->Wait().ok());
  driver_->ReleaseHanging();
  EXPECT_THAT(Events("answer"), IsEmpty());
}

TEST_F(FakeDriverScenarioTest, EndsWhileACallHangs) {
  driver_->AddStep(Step(Action::kHang));
  const auto hanging = StartPrepare({{"c1", "uid-1"}});
  ASSERT_TRUE(driver_->WaitForCalls(1, kLimit));
  driver_.reset();
  EXPECT_FALSE(hanging->Wait().ok());
}

TEST_F(FakeDriverScenarioTest, DelaysOneAnswerAndNoOther) {
  ScenarioStep step = Step(Action::kDelay, "c1");
  step.delay = std::chrono::milliseconds(300);
  driver_->AddStep(step);
  const auto begin = std::chrono::steady_clock::now();
  const auto delayed = StartPrepare({{"c1", "uid-1"}});
  ASSERT_TRUE(driver_->WaitForCalls(1, kLimit));
  EXPECT_TRUE(Prepare({{"c2", "uid-2"}}).ok());
  EXPECT_TRUE(delayed->Wait().ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, step.delay);
  const auto answers = Events("answer");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0]["claims"][0]["uid"], "uid-2");
}

// As drivers with a checkpoint do.
TEST_F(FakeDriverScenarioTest, RemembersAClaimAndLeavesItsSpecFileLost) {
  driver_->AddStep(Step(Action::kRemember, "", 0));
  const auto file = root_ / "cdi" / "gpu.example.com-uid-1.json";
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  ASSERT_TRUE(std::filesystem::remove(file));
  ASSERT_TRUE(driver_->Restart().ok());
  HangUp();
  const auto again = Prepare({{"c1", "uid-1"}});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->claims().at("uid-1").devices_size(), 1);
  EXPECT_FALSE(std::filesystem::exists(file));
  ASSERT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  ASSERT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(FakeDriverScenarioTest, CrashesBeforeTheWork) {
  driver_->AddStep(Step(Action::kCrashBefore));
  const auto answer = StartPrepare({{"c1", "uid-1"}});
  ASSERT_TRUE(WaitForEvent("step"));
  EXPECT_THAT(driver_->PreparedClaims(), IsEmpty());
  EXPECT_EQ(crashes_, 1);
  EXPECT_FALSE(answer->ready());
}

TEST_F(FakeDriverScenarioTest, CrashesAfterTheWork) {
  driver_->AddStep(Step(Action::kCrashAfter));
  const auto answer = StartPrepare({{"c1", "uid-1"}});
  ASSERT_TRUE(WaitForEvent("step"));
  EXPECT_THAT(driver_->PreparedClaims(), ElementsAre("uid-1"));
  EXPECT_EQ(crashes_, 1);
  EXPECT_FALSE(answer->ready());
}

TEST_F(FakeDriverScenarioTest, DropsItsSocketUntilRestarted) {
  driver_->AddStep(Step(Action::kDropSocket));
  EXPECT_FALSE(PrepareBoth().ok());
  ASSERT_TRUE(WaitForEvent("socket-dropped"));
  EXPECT_FALSE(std::filesystem::exists(ServiceSocket()));
  EXPECT_TRUE(GetInfo().ok());
  ASSERT_TRUE(driver_->Restart().ok());
  EXPECT_TRUE(PrepareBoth().ok());
}

TEST_F(FakeDriverScenarioTest, DropsItsSocketForAWhile) {
  ScenarioStep step = Step(Action::kDropSocket);
  step.delay = std::chrono::milliseconds(20);
  driver_->AddStep(step);
  EXPECT_FALSE(PrepareBoth().ok());
  ASSERT_TRUE(WaitForEvent("socket-back"));
  HangUp();
  EXPECT_TRUE(PrepareBoth().ok());
}

TEST_F(FakeDriverScenarioTest, RegistersAgain) {
  auto hung_up = std::make_shared<PendingAnswer>();
  const auto watcher =
      Dial(RegistrationSocket(), [hung_up] { hung_up->Set(std::string()); });
  ASSERT_NE(watcher, nullptr);
  driver_->AddStep(Step(Action::kReRegister));
  EXPECT_TRUE(PrepareBoth().ok());
  EXPECT_TRUE(hung_up->Wait().ok());
  ASSERT_TRUE(WaitForEvent("registration-offered"));
  EXPECT_TRUE(GetInfo().ok());
}

TEST_F(FakeDriverScenarioTest, StepsOfTheHandshakeAreOnlyForTheHandshake) {
  ScenarioStep name = Step(Action::kGarbageNames);
  name.method = "get-info";
  name.message = "Bad_Name";
  ScenarioStep refuse = Step(Action::kFail);
  refuse.method = "notify-registration";
  driver_->AddStep(name);
  driver_->AddStep(refuse);
  driver_->AddStep(Step(Action::kFail));
  EXPECT_EQ(GetInfo()->name(), "Bad_Name");
  EXPECT_EQ(GetInfo()->name(), kDriver);
  EXPECT_FALSE(Notify(true, "").ok());
  EXPECT_TRUE(Notify(true, "").ok());
  EXPECT_FALSE(PrepareBoth().ok());
}

}  // namespace
}  // namespace devmgr::testing
