// SPDX-License-Identifier: Apache-2.0
//
// resolve --diff and fsck --runtime-endpoint, over a runtime that the test
// makes up.
#include <devmgr/runtime_inspection.h>
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RuntimeCommandTest : public CommandLineTest {
 protected:
  RuntimeCommandTest() {
    RuntimeContainer container;
    container.id = "0f3a77";
    container.name = "c";
    container.state = RuntimeContainer::State::kRunning;
    container.pod_uid = {"uid-p"};
    container.pod = {"default", "p"};
    runtime_.containers = {container};
    runtime_.config.oci = R"({"process": {"env": ["K=theirs"]}})";
    node_.pods = {MakePod("default", "p", PodState::kReady)};
    Give("ours");
  }
  /// The ledger gives variable K to container `c`.
  void Give(const std::string& value) {
    PodDevices answer{{"default", "p"}, {"uid-p"}, {}};
    ContainerDevices& devices = answer.containers.emplace_back();
    devices.name = "c";
    devices.env = {{"K", value, "r"}};
    node_.answer = answer;
  }
  Result Diff(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "resolve", "--diff", "0f3", "--runtime-endpoint", "unix:///run/c.sock"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
};

TEST_F(RuntimeCommandTest, DiffShowsWhatDiffers) {
  const Result result = Diff();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, AllOf(HasSubstr("differs"), HasSubstr("environment"),
                                HasSubstr("***"), Not(HasSubstr("ours"))));
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("1 difference"), HasSubstr("no annotation")));
  EXPECT_THAT(runtimes_, ElementsAre("/run/c.sock"));
  EXPECT_THAT(Diff({"--show-env"}).out,
              AllOf(HasSubstr("ours"), HasSubstr("theirs")));
  EXPECT_EQ(Diff({"-o", "name"}).out, "K\n");
}

TEST_F(RuntimeCommandTest, DiffIsADocument) {
  runtime_.containers[0].allocation = "stamp";
  const Result result = Diff({"-o", "json"});
  EXPECT_EQ(result.code, 1);
  const auto diff = nlohmann::ordered_json::parse(result.out);
  EXPECT_EQ(diff["kind"], "ContainerDiff");
  EXPECT_EQ(diff["container"]["id"], "0f3a77");
  EXPECT_EQ(diff["container"]["state"], "running");
  EXPECT_EQ(diff["container"]["pod"]["uid"], "uid-p");
  EXPECT_EQ(diff["container"]["allocation"], "stamp");
  ASSERT_EQ(diff["items"].size(), 2u);
  EXPECT_EQ(diff["items"][0]["name"], "devmgr/allocation");
  EXPECT_EQ(diff["items"][1].dump(),
            R"({"difference":"differs","what":"environment","name":"K",)"
            R"("ledger":"ours","container":"theirs"})");
}

TEST_F(RuntimeCommandTest, NoDifferenceIsDone) {
  Give("theirs");
  const Result result = Diff();
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("what the ledger says"));
  EXPECT_EQ(
      nlohmann::ordered_json::parse(Diff({"-o", "json"}).out)["items"].size(),
      0u);
}

TEST_F(RuntimeCommandTest, AnExitedContainerIsComparedAndToldToBeSo) {
  runtime_.containers[0].state = RuntimeContainer::State::kExited;
  const Result result = Diff();
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("holds nothing any more"));
}

// 1 says that something differs, so nothing else may.
TEST_F(RuntimeCommandTest, WhatCannotBeComparedIsToldWithItsReason) {
  const auto expect = [this](int code, const std::string& why) {
    const Result result = Diff();
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr(why));
  };
  const RuntimeContainer container = runtime_.containers[0];
  runtime_.containers[0].name = "debug";
  expect(3, "no container 'debug'; it has: c");
  runtime_.containers[0] = container;
  runtime_.containers[0].pod_uid = {"other"};
  expect(3, "UID 'other', which the ledger does not know");
  runtime_.containers[0].pod_uid = {};
  expect(3, "belongs to no pod");
  runtime_.containers = {container, container};
  runtime_.containers[1].id = "0f3b";
  expect(8, "0f3b");
  runtime_.containers.clear();
  expect(3, "no container '0f3'");
  runtime_.containers = {container};
  node_.pods[0].state = PodState::kWaiting;
  node_.pods[0].message = "waits for a driver";
  expect(8, "waits for a driver");
  node_.pods[0].state = PodState::kReady;
  node_.answer->uid = {"newer"};
  expect(8, "a newer pod has the name 'default/p'");
  Give("ours");
  node_.answer->containers[0].devices_released = true;
  expect(8, "given its devices back");
  Give("ours");
  runtime_.config_error = absl::FailedPreconditionError("no 'runtimeSpec'");
  expect(8, "no 'runtimeSpec'");
  runtime_.error = absl::UnavailableError("nobody there");
  expect(4, "nobody there");
}

TEST_F(RuntimeCommandTest, DiffWantsARuntimeAndNoPod) {
  const std::vector<std::vector<std::string>> table = {
      {"resolve", "--diff", "0f3"},
      {"resolve", "--diff", ""},
      {"resolve", "p", "--diff", "0f3", "-r", "/r"},
      {"resolve", "--diff", "0f3", "-c", "c", "-r", "/r"},
      {"resolve", "--diff", "0f3", "--cdi", "-r", "/r"},
      {"resolve", "p", "-r", "/r"},
      {"resolve", "--diff", "0f3", "-r", ""},
      {"fsck", "-r", ""}};
  for (const auto& arguments : table) {
    EXPECT_EQ(Run(arguments).code, 2) << testing::PrintToString(arguments);
  }
  EXPECT_THAT(runtimes_, IsEmpty());
  variables_["CONTAINER_RUNTIME_ENDPOINT"] = "unix:///run/v.sock";
  EXPECT_EQ(Run({"resolve", "--diff", "0f3"}).code, 1);
  EXPECT_THAT(runtimes_, ElementsAre("/run/v.sock"));
}

TEST_F(RuntimeCommandTest, FsckSaysNothingOfRuntimesUnlessAsked) {
  variables_["CONTAINER_RUNTIME_ENDPOINT"] = "/run/v.sock";
  runtime_.containers[0].allocation = "stamp";
  EXPECT_EQ(Run({"fsck"}).code, 0);
  EXPECT_THAT(runtimes_, IsEmpty());
}

TEST_F(RuntimeCommandTest, FsckFindsContainersThatTheLedgerDoesNotKnow) {
  const std::vector<std::string> fsck = {"fsck", "--runtime-endpoint", "/r"};
  EXPECT_EQ(Run(fsck).code, 0);
  runtime_.containers[0].allocation = "stamp";
  const Result different = Run(fsck);
  EXPECT_EQ(different.code, 1);
  EXPECT_THAT(different.out, AllOf(HasSubstr("different-allocation"),
                                   HasSubstr("container/default/p/c")));
  node_.fsck->findings = {{"absent-driver", false, "driver/d", "away", "", ""}};
  node_.pods.clear();
  const Result result = Run({"fsck", "-r", "/r", "-o", "json"});
  EXPECT_EQ(result.code, 1);
  const auto report = nlohmann::ordered_json::parse(result.out);
  ASSERT_EQ(report["findings"].size(), 2u);
  EXPECT_EQ(report["findings"][0]["check"], "unaccounted-container");
  EXPECT_EQ(report["findings"][0]["severity"], "error");
  EXPECT_EQ(report["findings"][1]["check"], "absent-driver");
}

// A container that was made past the shim.
TEST_F(RuntimeCommandTest, FsckLooksIntoContainersWithoutMark) {
  runtime_.config.cdi_devices = {"v.com/c=1"};
  runtime_.containers[0].pod_uid = {"uid-q"};
  EXPECT_EQ(Run({"fsck", "-r", "/r"}).code, 0);  // Nobody knows that device.
  node_.answer->containers[0].cdi_devices = {{"v.com/c=1", {}}};
  const Result result = Run({"fsck", "-r", "/r"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("unaccounted-container"), HasSubstr("v.com/c=1"),
                    HasSubstr("pod 'default/p'")));
  runtime_.containers[0].pod_uid = {"uid-p"};
  EXPECT_EQ(Run({"fsck", "-r", "/r"}).code, 0);

  runtime_.config_error = absl::FailedPreconditionError("has no 'info'");
  const Result unread = Run({"fsck", "-r", "/r"});
  EXPECT_EQ(unread.code, 0);
  EXPECT_THAT(unread.out, AllOf(HasSubstr("unreadable-container"),
                                HasSubstr("has no 'info'")));
  runtime_.config_error = absl::NotFoundError("it has ended");
  EXPECT_THAT(Run({"fsck", "-r", "/r"}).out, IsEmpty());
}

// A container ends, and its pod is forgotten, while both are looked at.
TEST_F(RuntimeCommandTest, FsckLooksTwice) {
  runtime_.containers[0].allocation = "stamp";
  node_.pods.clear();
  runtime_.on_list = [this] { runtime_.containers.clear(); };
  EXPECT_EQ(Run({"fsck", "-r", "/r"}).code, 0);
}

TEST_F(RuntimeCommandTest, FsckThatCannotAskTheRuntimeHasFailed) {
  node_.fsck->findings = {{"absent-driver", false, "driver/d", "away", "", ""}};
  runtime_.error = absl::UnavailableError("nobody there");
  const Result result = Run({"fsck", "-r", "/r"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.out, HasSubstr("driver/d"));
  runtime_.error = absl::InternalError("broken");
  EXPECT_EQ(Run({"fsck", "-r", "/r"}).code, 8);
}

}  // namespace
}  // namespace devmgr::ctl
