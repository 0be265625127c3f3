// SPDX-License-Identifier: Apache-2.0
//
// The program fake-dra-driver: flags, exit codes, events, signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "testing/fake_driver_fixture.h"
#include "testing/program.h"

namespace devmgr::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Driver : public Program {
 public:
  explicit Driver(const std::vector<std::string>& arguments)
      : Program(FAKE_DRA_DRIVER, arguments) {}
};

class FakeDraDriverProgramTest : public FakeDriverFixture {
 protected:
  std::vector<std::string> Flags(std::vector<std::string> more = {}) {
    std::vector<std::string> flags = {"--name", kDriver, "--root",
                                      root_.string()};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
};

TEST_F(FakeDraDriverProgramTest, ServesUntilItIsTerminated) {
  for (const int number : {SIGTERM, SIGINT}) {
    Driver program(Flags({"--pool", "p", "--devices", "2"}));
    const auto serving = program.NextEvent("serving");
    ASSERT_TRUE(serving.has_value()) << program.ExitCode() << program.errors();
    EXPECT_EQ(serving->at("pool"), "p");
    EXPECT_EQ(serving->at("devices"), 2);
    EXPECT_TRUE(GetInfo().ok());
    ASSERT_TRUE(Notify(true, "").ok());
    EXPECT_TRUE(program.NextEvent("registered").has_value());
    program.Signal(number);
    EXPECT_EQ(program.ExitCode(), 0);
    EXPECT_EQ(program.errors(), "");
    EXPECT_FALSE(std::filesystem::exists(ServiceSocket()));
    EXPECT_FALSE(std::filesystem::exists(RegistrationSocket()));
  }
}

TEST_F(FakeDraDriverProgramTest, PrintsARefusedRegistration) {
  Driver program(Flags());
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  ASSERT_TRUE(Notify(false, "not you").ok());
  const auto refused = program.NextEvent("registration-refused");
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->at("error"), "not you");
}

TEST_F(FakeDraDriverProgramTest, OffersTheServicesInTheOrderGiven) {
  Driver program(Flags({"--api", "v1beta1,v1"}));
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  EXPECT_THAT(GetInfo()->supported_versions(),
              ElementsAre("v1beta1.DRAPlugin", "v1.DRAPlugin"));
}

TEST_F(FakeDraDriverProgramTest, CanBeADriverOfAnyTime) {
  Driver program(Flags({"--api", "v1alpha4,v1alpha2,v1alpha1"}));
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  EXPECT_THAT(GetInfo()->supported_versions(),
              ElementsAre("v1alpha3.NodeService", "1.0.0"));
}

TEST_F(FakeDraDriverProgramTest, HelpListsTheFlags) {
  Driver program({"--help"});
  EXPECT_EQ(program.ExitCode(), 0);
  for (const char* flag :
       {"--name", "--root", "--api", "--pool", "--devices", "--scenario"}) {
    EXPECT_THAT(program.output(), HasSubstr(flag));
  }
}

TEST_F(FakeDraDriverProgramTest, WrongUseEndsWithTwo) {
  for (const auto& flags : std::vector<std::vector<std::string>>{
           {},
           {"--name", "a"},
           Flags({"--api", "v7"}),
           Flags({"--devices", "-1"}),
           Flags({"--frobnicate"}),
           {"--name", "a/b", "--root", root_.string()}}) {
    Driver program(flags);
    EXPECT_EQ(program.ExitCode(), 2);
    EXPECT_NE(program.errors(), "");
    EXPECT_EQ(program.output(), "");
  }
}

TEST_F(FakeDraDriverProgramTest, AScenarioWithAMistakeIsNamedByLine) {
  const auto file = root_ / "scenario.yaml";
  std::ofstream(file) << "steps:\n- {action: explode}\n";
  Driver program(Flags({"--scenario", file.string()}));
  EXPECT_EQ(program.ExitCode(), 2);
  EXPECT_THAT(program.errors(), HasSubstr("scenario.yaml:2"));
}

TEST_F(FakeDraDriverProgramTest, ASecondOneEndsWithOne) {
  Driver first(Flags());
  ASSERT_TRUE(first.NextEvent("serving").has_value());
  Driver second(Flags());
  EXPECT_EQ(second.ExitCode(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("dra.sock"));
  EXPECT_TRUE(GetInfo().ok());
}

TEST_F(FakeDraDriverProgramTest, CrashesWhereTheScenarioSays) {
  const auto file = root_ / "scenario.yaml";
  std::ofstream(file) << "steps:\n- {action: crash-after, method: prepare}\n";
  WriteClaim("c1", "uid-1", {{}});
  {
    Driver program(Flags({"--scenario", file.string()}));
    ASSERT_TRUE(program.NextEvent("serving").has_value());
    EXPECT_FALSE(Prepare({{"c1", "uid-1"}}).ok());
    EXPECT_EQ(program.ExitCode(), 137);
  }
  // Sockets and files of the dead process are there; the next one copes.
  EXPECT_TRUE(std::filesystem::exists(ServiceSocket()));
  EXPECT_THAT(FilesIn("cdi"), ElementsAre("gpu.example.com-uid-1.json"));
  RemoveManifest("c1");
  Driver program(Flags());
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  HangUp();
  ASSERT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  EXPECT_THAT(FilesIn("cdi"), IsEmpty());
}

TEST_F(FakeDraDriverProgramTest, SurvivesAReaderThatLeaves) {
  WriteClaim("c1", "uid-1", {{}});
  Driver program(Flags());
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  program.CloseOutput();
  EXPECT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  EXPECT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
}

}  // namespace
}  // namespace devmgr::testing
