// SPDX-License-Identifier: Apache-2.0
#include <devmgr/testing.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace devmgr::testing {
namespace {

using ::testing::HasSubstr;

class ScenarioFileTest : public ::testing::Test {
 protected:
  ScenarioFileTest() {
    char path[] = "/tmp/devmgr-scenario-XXXXXX";
    folder_ = ::mkdtemp(path);
  }
  ~ScenarioFileTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<std::vector<ScenarioStep>> Read(const std::string& text) {
    std::ofstream(folder_ / "s.yaml") << text;
    return ReadScenario(folder_ / "s.yaml");
  }

  absl::StatusOr<std::vector<ScenarioStep>> ReadPlugin(
      const std::string& text) {
    std::ofstream(folder_ / "s.yaml") << text;
    return ReadPluginScenario(folder_ / "s.yaml");
  }

  /// The message, once the code is checked.
  std::string ErrorOf(const std::string& text) {
    const auto steps = Read(text);
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    return std::string(steps.status().message());
  }

  std::filesystem::path folder_;
};

TEST_F(ScenarioFileTest, AllFieldsAreRead) {
  const auto steps = Read(
      "steps:\n"
      "- {action: fail, method: prepare, claim: c1, times: 2, delay: 250ms,\n"
      "   message: boom}\n"
      "- action: drop-socket\n"
      "  delay: 2s\n"
      "  times: 0\n");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 2u);
  const ScenarioStep& fail = steps->at(0);
  EXPECT_EQ(fail.action, ScenarioStep::Action::kFail);
  EXPECT_EQ(fail.method, "prepare");
  EXPECT_EQ(fail.claim, "c1");
  EXPECT_EQ(fail.times, 2);
  EXPECT_EQ(fail.delay, std::chrono::milliseconds(250));
  EXPECT_EQ(fail.message, "boom");
  const ScenarioStep& drop = steps->at(1);
  EXPECT_EQ(drop.action, ScenarioStep::Action::kDropSocket);
  EXPECT_EQ(drop.method, "any");
  EXPECT_EQ(drop.times, 0);
  EXPECT_EQ(drop.delay, std::chrono::seconds(2));
}

TEST_F(ScenarioFileTest, EveryActionHasItsName) {
  const auto steps = Read(
      "steps:\n"
      "- {action: delay, delay: 1ms}\n- {action: fail}\n"
      "- {action: fail-claim}\n- {action: hang}\n- {action: too-little}\n"
      "- {action: unknown-claim}\n- {action: garbage-names}\n"
      "- {action: crash-before}\n- {action: crash-after}\n"
      "- {action: drop-socket}\n- {action: re-register}\n");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 11u);
  for (int i = 0; i < 11; ++i) {
    EXPECT_EQ(static_cast<int>(steps->at(i).action), i);
  }
}

TEST_F(ScenarioFileTest, NothingIsNoSteps) {
  for (const char* text : {"", "# nothing\n", "steps:\n", "steps: []\n"}) {
    const auto steps = Read(text);
    ASSERT_TRUE(steps.ok()) << steps.status();
    EXPECT_TRUE(steps->empty());
  }
}

TEST_F(ScenarioFileTest, MistakesAreToldWithFileLineAndField) {
  struct Mistake {
    const char* text;
    const char* told;
  };
  for (const Mistake& mistake : {
           Mistake{"steps: [\n", "s.yaml:"},
           Mistake{"- 1\n", "s.yaml:1: not a mapping"},
           Mistake{"step: []\n", "s.yaml:1: step: unknown field"},
           Mistake{"steps: {}\n", "s.yaml:1: steps: not a list"},
           Mistake{"steps: []\nsteps: []\n", "s.yaml:2: steps: given twice"},
           Mistake{"steps:\n- 7\n", "s.yaml:2: steps[0]: not a mapping"},
           Mistake{"steps:\n- {action: hang}\n- {action: explode}\n",
                   "s.yaml:3: steps[1].action: unknown action 'explode'"},
           Mistake{"steps:\n- {method: prepare}\n",
                   "steps[0]: has no 'action'"},
           Mistake{"steps:\n- action: hang\n  method: allocate\n",
                   "s.yaml:3: steps[0].method: unknown method 'allocate'"},
           Mistake{"steps:\n- action: hang\n  time: 1\n",
                   "s.yaml:3: steps[0].time: unknown field"},
           Mistake{"steps:\n- action: hang\n  action: hang\n",
                   "s.yaml:3: steps[0].action: given twice"},
           Mistake{"steps:\n- action: [hang]\n", "not a single value"},
           Mistake{"steps:\n- {action: hang, times: -1}\n",
                   "steps[0].times: '-1' is not a count"},
           Mistake{"steps:\n- {action: hang, times: 99999999999}\n",
                   "steps[0].times"},
           Mistake{"steps:\n- {action: fail, delay: 5}\n",
                   "steps[0].delay: '5' is not a duration"},
           Mistake{"steps:\n- {action: fail, delay: 5m}\n", "steps[0].delay"},
           Mistake{"steps:\n- {action: fail, delay: ms}\n", "steps[0].delay"},
           Mistake{"steps:\n- {action: delay}\n", "needs a 'delay'"},
           Mistake{"steps:\n- {action: hang, method: get-info, claim: c}\n",
                   "carry no claim"},
           Mistake{"steps:\n- {action: too-little, method: get-info}\n",
                   "does not go with method get-info"},
           Mistake{"steps: []\n---\nsteps: []\n", "one document"},
       }) {
    EXPECT_THAT(ErrorOf(mistake.text), HasSubstr(mistake.told));
  }
}

TEST_F(ScenarioFileTest, APluginHasStepsOfItsOwn) {
  const auto steps = ReadPlugin(
      "steps:\n"
      "- {action: flap-device, device: gpu-1, after: 2s, delay: 1ms, count: "
      "3}\n"
      "- {action: set-devices, count: 655360}\n"
      "- {action: drop-stream, method: allocate, message: lost}\n"
      "- {action: fail, method: list-and-watch, times: 2}\n");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 4u);
  EXPECT_EQ(steps->at(0).action, ScenarioStep::Action::kFlapDevice);
  EXPECT_EQ(steps->at(0).device, "gpu-1");
  EXPECT_EQ(steps->at(0).after, std::chrono::seconds(2));
  EXPECT_EQ(steps->at(0).count, 3);
  EXPECT_EQ(steps->at(1).count, 655'360);
  EXPECT_EQ(steps->at(2).message, "lost");
  EXPECT_EQ(steps->at(3).method, "list-and-watch");
}

TEST_F(ScenarioFileTest, EveryActionOfAPluginHasItsName) {
  const auto steps = ReadPlugin(
      "steps:\n"
      "- {action: garbage-bytes}\n- {action: unknown-device}\n"
      "- {action: duplicate-ids}\n- {action: unknown-health}\n"
      "- {action: garbage-ids}\n- {action: garbage-numa}\n"
      "- {action: set-devices, count: 1}\n"
      "- {action: flap-device, device: d}\n- {action: drop-stream}\n"
      "- {action: restart}\n- {action: rolling-upgrade}\n"
      "- {action: take-over}\n"
      "- {action: delay, delay: 1s}\n- {action: fail}\n- {action: hang}\n"
      "- {action: too-little}\n- {action: garbage-names}\n"
      "- {action: crash-before}\n- {action: crash-after}\n"
      "- {action: drop-socket}\n- {action: re-register}\n");
  ASSERT_TRUE(steps.ok()) << steps.status();
  const int first = static_cast<int>(ScenarioStep::Action::kGarbageBytes);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(static_cast<int>(steps->at(i).action),
              first + static_cast<int>(i));
  }
}

TEST_F(ScenarioFileTest, MistakesInAPluginsStepsAreTold) {
  struct Mistake {
    const char* step;
    const char* told;
  };
  for (const Mistake& mistake : {
           Mistake{"{action: fail-claim}", "unknown action 'fail-claim'"},
           Mistake{"{action: fail, claim: c}", "claim: unknown field; known"},
           Mistake{"{action: fail, method: prepare}",
                   "unknown method 'prepare'; known are any, "},
           Mistake{"{action: duplicate-ids, method: allocate}",
                   "duplicate-ids does not go with method allocate"},
           Mistake{"{action: set-devices}", "needs a 'count'"},
           Mistake{"{action: set-devices, count: 1000001}",
                   "count is 1000001, more than 1000000"},
           Mistake{"{action: set-devices, count: few}",
                   "count: 'few' is not a count"},
           Mistake{"{action: flap-device}", "needs a 'device'"},
           Mistake{"{action: fail, count: 2}", "no use for 'count'"},
           Mistake{"{action: fail, after: 1s}", "no use for 'after'"},
           Mistake{"{action: restart, after: soon}",
                   "after: 'soon' is not a duration"},
           Mistake{"{action: fail, method: get-options, device: d}",
                   "carry no device"},
           Mistake{"{action: duplicate-ids, device: d}", "carry no device"},
       }) {
    const auto steps = ReadPlugin(std::string("steps:\n- ") + mistake.step);
    EXPECT_EQ(steps.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(steps.status().message());
    EXPECT_THAT(message, HasSubstr("s.yaml:2: steps[0]"));
    EXPECT_THAT(message, HasSubstr(mistake.told));
  }
}

TEST_F(ScenarioFileTest, ADriverHasNoStepsOfAPlugin) {
  EXPECT_THAT(ErrorOf("steps:\n- {action: restart}\n"),
              HasSubstr("unknown action 'restart'"));
  EXPECT_THAT(ErrorOf("steps:\n- {action: fail, device: d}\n"),
              HasSubstr("carry no device"));
  EXPECT_THAT(ErrorOf("steps:\n- {action: fail, count: 2}\n"),
              HasSubstr("count: unknown field"));
}

TEST_F(ScenarioFileTest, AStepOfADriverSetsTheHealthOfADevice) {
  const auto steps = Read(
      "steps:\n- {action: set-health, device: gpu-0, after: 2s, message: "
      "'Unhealthy: too hot'}\n");
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(steps->at(0).action, ScenarioStep::Action::kSetHealth);
  EXPECT_EQ(steps->at(0).device, "gpu-0");
  EXPECT_EQ(steps->at(0).after, std::chrono::seconds(2));
  EXPECT_EQ(steps->at(0).message, "Unhealthy: too hot");
  EXPECT_THAT(ErrorOf("steps:\n- {action: set-health}\n"),
              HasSubstr("needs a 'device'"));
}

TEST_F(ScenarioFileTest, AStepOfADriverHasItAnswerFromMemory) {
  const auto steps = Read("steps:\n- {action: remember, times: 0}\n");
  ASSERT_TRUE(steps.ok()) << steps.status();
  EXPECT_EQ(steps->at(0).action, ScenarioStep::Action::kRemember);
  EXPECT_THAT(ErrorOf("steps:\n- {action: remember, method: unprepare}\n"),
              HasSubstr("does not go with method unprepare"));
}

TEST_F(ScenarioFileTest, AMissingFileIsNamed) {
  const auto steps = ReadScenario(folder_ / "absent.yaml");
  EXPECT_EQ(steps.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(steps.status().message()), HasSubstr("absent.yaml"));
}

TEST_F(ScenarioFileTest, AFolderIsNoScenario) {
  EXPECT_FALSE(ReadScenario(folder_).ok());
}

TEST_F(ScenarioFileTest, AHugeFileIsRefused) {
  EXPECT_THAT(ErrorOf(std::string(2 * 1024 * 1024, '#')),
              HasSubstr("more than"));
}

}  // namespace
}  // namespace devmgr::testing
