// SPDX-License-Identifier: Apache-2.0
//
// The program fake-device-plugin: flags, exit codes, events, signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "testing/fake_plugin_fixture.h"
#include "testing/program.h"

namespace devmgr::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Plugin : public Program {
 public:
  explicit Plugin(const std::vector<std::string>& arguments)
      : Program(FAKE_DEVICE_PLUGIN, arguments) {}
};

class FakeDevicePluginProgramTest : public FakePluginFixture {
 protected:
  std::vector<std::string> Flags(std::vector<std::string> more = {}) {
    std::vector<std::string> flags = {"--resource", kResource, "--root",
                                      root_.string()};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  fs::path WriteScenario(const std::string& text) {
    const auto file = root_ / "scenario.yaml";
    std::ofstream(file) << text;
    return file;
  }
};

TEST_F(FakeDevicePluginProgramTest, ServesUntilItIsTerminated) {
  StartRegistry();
  for (const int number : {SIGTERM, SIGINT}) {
    Plugin plugin(Flags());
    const auto serving = plugin.NextEvent("serving");
    ASSERT_TRUE(serving.has_value()) << plugin.ExitCode() << plugin.errors();
    EXPECT_EQ(serving->at("resource"), kResource);
    EXPECT_EQ(serving->at("devices"), 8);
    EXPECT_EQ(serving->at("socket"), Socket().string());
    EXPECT_TRUE(plugin.NextEvent("registered").has_value());
    EXPECT_TRUE(GetOptions().ok());
    plugin.Signal(number);
    EXPECT_EQ(plugin.ExitCode(), 0);
    EXPECT_EQ(plugin.errors(), "");
    EXPECT_FALSE(fs::exists(Socket()));
  }
}

TEST_F(FakeDevicePluginProgramTest, PrintsOneLinePerEvent) {
  StartRegistry();
  Plugin plugin(Flags({"--devices", "2"}));
  ASSERT_TRUE(plugin.NextEvent("registered").has_value());
  {
    const auto stream = Watch();
    EXPECT_THAT(NextList(stream.get()),
                ElementsAre("gpu-0 Healthy", "gpu-1 Healthy"));
  }
  EXPECT_TRUE(Allocate({"gpu-1"}).ok());
  EXPECT_FALSE(Allocate({"gpu-2"}).ok());
  EXPECT_EQ(plugin.NextEvent("call")->at("method"), "list-and-watch");
  const auto list = plugin.NextEvent("list");
  EXPECT_EQ(list->at("devices"), 2);
  EXPECT_EQ(list->at("healthy"), 2);
  const auto answer = plugin.NextEvent("answer");
  EXPECT_EQ(answer->at("method"), "allocate");
  EXPECT_EQ(answer->at("containers").at(0).at(0), "gpu-1");
  EXPECT_EQ(plugin.NextEvent("answer")->at("error"), "unknown device 'gpu-2'");
}

TEST_F(FakeDevicePluginProgramTest, PrintsARefusedRegistration) {
  verdict_ = absl::UnknownError("not you");
  StartRegistry();
  Plugin plugin(Flags());
  EXPECT_EQ(plugin.NextEvent("registration-refused")->at("error"), "not you");
}

TEST_F(FakeDevicePluginProgramTest, EveryFlagCounts) {
  Plugin plugin(
      Flags({"--devices", "3", "--numa", "1,0", "--register", "both",
             "--preferred", "--prestart", "--cdi", "--instance", "b"}));
  const auto serving = plugin.NextEvent("serving");
  ASSERT_TRUE(serving.has_value()) << plugin.ExitCode() << plugin.errors();
  const fs::path socket = root_ / "device-plugins" / "example.com_gpu-b.sock";
  EXPECT_EQ(serving->at("socket"), socket.string());
  EXPECT_EQ(GetInfo(serving->at("registration").get<std::string>())->endpoint(),
            socket.string());
  EXPECT_THAT(
      NextList(Watch(socket).get()),
      ElementsAre("gpu-0 Healthy@1", "gpu-1 Healthy@0", "gpu-2 Healthy@1"));
  const auto answer = Allocate({"gpu-2"}, socket);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->cdi_devices(0).name(), "example.com/gpu=gpu-2");
  StartRegistry();
  const auto request = NextRegistration();
  ASSERT_TRUE(request.has_value());
  EXPECT_TRUE(request->options().pre_start_required());
  EXPECT_TRUE(request->options().get_preferred_allocation_available());
}

TEST_F(FakeDevicePluginProgramTest, RegistersInTheDirectoryOnly) {
  Plugin plugin(Flags({"--register", "directory"}));
  const auto serving = plugin.NextEvent("serving");
  ASSERT_TRUE(serving.has_value());
  EXPECT_EQ(serving->at("socket"), serving->at("registration"));
  EXPECT_TRUE(GetInfo(serving->at("socket").get<std::string>()).ok());
}

TEST_F(FakeDevicePluginProgramTest, HasTheSameDevicesAfterAKill) {
  std::vector<std::string> before;
  for (int i = 0; i < 2; ++i) {
    Plugin plugin(Flags({"--devices", "3"}));
    ASSERT_TRUE(plugin.NextEvent("serving").has_value());
    const auto list = NextList(Watch().get());
    EXPECT_EQ(list.size(), 3u);
    if (i > 0) {
      EXPECT_EQ(list, before);
    }
    before = list;
    plugin.Signal(SIGKILL);
    EXPECT_EQ(plugin.ExitCode(), -SIGKILL);
  }
}

TEST_F(FakeDevicePluginProgramTest, CrashesDuringAllocate) {
  const auto file =
      WriteScenario("steps:\n- {action: crash-after, method: allocate}\n");
  Plugin plugin(Flags({"--scenario", file.string()}));
  ASSERT_TRUE(plugin.NextEvent("serving").has_value());
  EXPECT_EQ(Allocate({"gpu-0"}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(plugin.ExitCode(), 137);
  EXPECT_TRUE(fs::exists(Socket()));
  // The next one copes with the socket of the dead one.
  Plugin next(Flags());
  ASSERT_TRUE(next.NextEvent("serving").has_value());
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
}

TEST_F(FakeDevicePluginProgramTest, PrintsTheStepsItTakes) {
  const auto file = WriteScenario(
      "steps:\n- {action: fail, method: allocate, device: gpu-1}\n");
  Plugin plugin(Flags({"--scenario", file.string()}));
  ASSERT_TRUE(plugin.NextEvent("serving").has_value());
  EXPECT_FALSE(Allocate({"gpu-1"}).ok());
  const auto step = plugin.NextEvent("step");
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->at("action"), "fail");
  EXPECT_EQ(step->at("method"), "allocate");
  EXPECT_EQ(step->at("device"), "gpu-1");
}

TEST_F(FakeDevicePluginProgramTest, HelpListsTheFlags) {
  Plugin plugin({"--help"});
  EXPECT_EQ(plugin.ExitCode(), 0);
  for (const char* flag :
       {"--resource", "--root", "--devices", "--numa", "--register",
        "--preferred", "--prestart", "--cdi", "--instance", "--scenario"}) {
    EXPECT_THAT(plugin.output(), HasSubstr(flag));
  }
}

TEST_F(FakeDevicePluginProgramTest, WrongUseEndsWithTwo) {
  struct Mistake {
    std::vector<std::string> flags;
    const char* told;
  };
  for (const Mistake& mistake : {
           Mistake{{}, "--resource"},
           Mistake{{"--resource", kResource}, "--root"},
           Mistake{Flags({"--devices", "-1"}), "--devices"},
           Mistake{Flags({"--devices", "2000000"}), "--devices"},
           Mistake{Flags({"--numa", "x"}), "--numa"},
           Mistake{Flags({"--register", "pigeon"}), "--register"},
           Mistake{Flags({"--instance", "a/b"}), "instance 'a/b'"},
           Mistake{Flags({"--frobnicate"}), "--frobnicate"},
       }) {
    Plugin plugin(mistake.flags);
    EXPECT_EQ(plugin.ExitCode(), 2);
    EXPECT_THAT(plugin.errors(), HasSubstr(mistake.told));
    EXPECT_EQ(plugin.output(), "");
  }
}

TEST_F(FakeDevicePluginProgramTest, AScenarioWithAMistakeIsNamedByLine) {
  const auto file = WriteScenario("steps:\n- {action: explode}\n");
  Plugin plugin(Flags({"--scenario", file.string()}));
  EXPECT_EQ(plugin.ExitCode(), 2);
  EXPECT_THAT(plugin.errors(), HasSubstr("scenario.yaml:2"));
}

TEST_F(FakeDevicePluginProgramTest, ASecondOneEndsWithOne) {
  Plugin first(Flags());
  ASSERT_TRUE(first.NextEvent("serving").has_value());
  Plugin second(Flags());
  EXPECT_EQ(second.ExitCode(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("example.com_gpu.sock"));
  EXPECT_TRUE(GetOptions().ok());
}

TEST_F(FakeDevicePluginProgramTest, SurvivesAReaderThatLeaves) {
  Plugin plugin(Flags());
  ASSERT_TRUE(plugin.NextEvent("serving").has_value());
  plugin.CloseOutput();
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
  EXPECT_TRUE(Allocate({"gpu-0"}).ok());
}

}  // namespace
}  // namespace devmgr::testing
